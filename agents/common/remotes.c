#include "remotes.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

/* A controller that starts together with the agent is found soon; one that is away is not bothered
 * more than every two seconds. */
#define BACKOFF_MIN 100
#define BACKOFF_MAX 2000

static int new_socket(const struct endpoint *endpoint)
{
    int fd = socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;

    if (fd >= 0 && endpoint->address.ss_family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return fd;
}

static int open_listener(const struct endpoint *endpoint)
{
    const struct sockaddr *address = (const struct sockaddr *) &endpoint->address;
    int fd = new_socket(endpoint);

    if (address->sa_family == AF_UNIX) {
        unlink(((const struct sockaddr_un *) &endpoint->address)->sun_path);
    }
    if (fd < 0 || bind(fd, address, endpoint->address_length) < 0
        || listen(fd, MAX_CHANNELS) < 0) {
        fprintf(stderr, "Cannot listen on '%s': %s.\n", endpoint->text, strerror(errno));
        exit(2);
    }
    return fd;
}

void remotes_open(struct remotes *remotes, const struct endpoint *endpoint,
                  const struct remote_handler *handler, void *agent)
{
    memset(remotes, 0, sizeof *remotes);
    remotes->endpoint = endpoint;
    remotes->handler = handler;
    remotes->agent = agent;
    remotes->listener = endpoint->listen ? open_listener(endpoint) : -1;
    remotes->backoff = BACKOFF_MIN;
}

void remotes_close(struct remotes *remotes)
{
    for (int i = 0; i < remotes->n_channels; i++) {
        channel_free(remotes->channels[i]);
    }
    if (remotes->listener >= 0) {
        close(remotes->listener);
        if (remotes->endpoint->address.ss_family == AF_UNIX) {
            unlink(((const struct sockaddr_un *) &remotes->endpoint->address)->sun_path);
        }
    }
}

int remotes_poll_set(const struct remotes *remotes, struct pollfd *fds)
{
    int n = 0;

    for (int i = 0; i < remotes->n_channels; i++) {
        const struct channel *channel = remotes->channels[i];

        fds[n++] = (struct pollfd){.fd = channel->fd, .events = channel_poll_events(channel)};
    }
    if (remotes->listener >= 0) {
        fds[n++] = (struct pollfd){.fd = remotes->listener, .events = POLLIN};
    }
    return n;
}

static bool wants_to_connect(const struct remotes *remotes)
{
    return remotes->listener < 0 && remotes->n_channels == 0;
}

int remotes_timeout(const struct remotes *remotes, int64_t now)
{
    if (!wants_to_connect(remotes)) {
        return -1;
    }
    return remotes->next_attempt > now ? (int) (remotes->next_attempt - now) : 0;
}

static void add_channel(struct remotes *remotes, int fd, bool connecting)
{
    struct channel *channel;

    if (remotes->n_channels == MAX_CHANNELS) {
        close(fd);
        return;
    }
    channel = channel_new(fd, connecting);
    remotes->channels[remotes->n_channels++] = channel;
    if (!connecting) {
        remotes->handler->connected(remotes->agent, channel);
    }
}

static void accept_controllers(struct remotes *remotes)
{
    int fd;

    while ((fd = accept4(remotes->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        int on = 1;

        LOG("a controller connected");
        if (remotes->endpoint->address.ss_family != AF_UNIX) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        add_channel(remotes, fd, false);
    }
}

static void schedule_attempt(struct remotes *remotes, int64_t now)
{
    remotes->next_attempt = now + remotes->backoff;
    remotes->backoff *= 2;
    if (remotes->backoff > BACKOFF_MAX) {
        remotes->backoff = BACKOFF_MAX;
    }
}

static void start_connecting(struct remotes *remotes, int64_t now)
{
    const struct endpoint *endpoint = remotes->endpoint;
    int fd = new_socket(endpoint);

    schedule_attempt(remotes, now);
    if (fd < 0) {
        return;
    }
    if (connect(fd, (const struct sockaddr *) &endpoint->address, endpoint->address_length) == 0) {
        add_channel(remotes, fd, false);
    } else if (errno == EINPROGRESS) {
        add_channel(remotes, fd, true);
    } else {
        LOG("cannot connect to %s: %s", endpoint->text, strerror(errno));
        close(fd);
    }
}

static void finish_connecting(struct remotes *remotes, struct channel *channel)
{
    int error = 0;
    socklen_t length = sizeof error;

    if (getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error) {
        LOG("cannot connect to %s: %s", remotes->endpoint->text, strerror(error));
        channel->closing = true;
        return;
    }
    channel->connecting = false;
    LOG("connected to %s", remotes->endpoint->text);
    remotes->handler->connected(remotes->agent, channel);
}

static void handle_messages(struct remotes *remotes, struct channel *channel)
{
    const struct ofp_header *header;
    bool malformed = false;
    size_t offset = 0;
    size_t start = 0;

    while (!channel->closing
           && (header = channel_next_message(channel, &offset, &malformed)) != NULL) {
        if (malformed) {
            remotes->handler->malformed(remotes->agent, channel, header, offset - start);
            channel->closing = true;
        } else {
            remotes->handler->message(remotes->agent, channel, header);
            start = offset;
        }
    }
    channel_consume(channel, offset);
}

static void run_channel(struct remotes *remotes, struct channel *channel, short events)
{
    if (channel->connecting) {
        if (events) {
            finish_connecting(remotes, channel);
        }
        return;
    }
    if (events & (POLLOUT | POLLERR | POLLHUP)) {
        channel_flush(channel);
    }
    if (events & (POLLIN | POLLERR | POLLHUP)) {
        if (!channel_receive(channel)) {
            LOG("a controller disconnected");
            channel->n_unsent = 0;
            channel->closing = true;
        } else {
            handle_messages(remotes, channel);
        }
    }
}

/* Closes what is to be closed, once its last words are sent. */
static void drop_closed(struct remotes *remotes, int64_t now)
{
    int kept = 0;

    for (int i = 0; i < remotes->n_channels; i++) {
        struct channel *channel = remotes->channels[i];

        if (channel->closing && channel->n_unsent == 0) {
            if (channel->greeted) {
                remotes->backoff = BACKOFF_MIN;
                schedule_attempt(remotes, now);
                channel->greeted = false;
                remotes->handler->disconnected(remotes->agent, channel);
            }
            channel_free(channel);
        } else {
            remotes->channels[kept++] = channel;
        }
    }
    remotes->n_channels = kept;
}

void remotes_run(struct remotes *remotes, const struct pollfd *fds, int n_fds, int64_t now)
{
    int n_channels = remotes->n_channels; /* In 'fds', before some are dropped and accepted. */

    for (int i = 0; i < n_channels; i++) {
        if (fds[i].revents) {
            run_channel(remotes, remotes->channels[i], fds[i].revents);
        }
    }
    drop_closed(remotes, now); /* First, so that there is room for those who come. */
    if (n_fds > n_channels && fds[n_channels].revents) {
        accept_controllers(remotes);
    }
    if (wants_to_connect(remotes) && now >= remotes->next_attempt) {
        start_connecting(remotes, now);
    }
}

void remotes_broadcast(struct remotes *remotes, const void *data, size_t size)
{
    for (int i = 0; i < remotes->n_channels; i++) {
        struct channel *channel = remotes->channels[i];

        if (channel->greeted && !channel_is_congested(channel)) {
            channel_send(channel, data, size);
        }
    }
}

bool remotes_any_greeted(const struct remotes *remotes)
{
    for (int i = 0; i < remotes->n_channels; i++) {
        if (remotes->channels[i]->greeted) {
            return true;
        }
    }
    return false;
}
