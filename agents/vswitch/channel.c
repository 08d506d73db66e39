/* Listening for controllers, and connecting to one until it answers. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "util.h"
#include "vswitch.h"

#define BACKOFF_FIRST_MSEC 250
#define BACKOFF_MAX_MSEC 8000
#define MAX_CONNECTIONS 64
#define LISTEN_BACKLOG 16

/* Requests are answered at once, and a controller that vanished is noticed in the end. */
static void tune_socket(const struct channel *channel, int fd)
{
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (channel->address.storage.ss_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
}

static int open_socket(const struct channel *channel)
{
    int family = channel->address.storage.ss_family;

    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void controller_arrives(struct watch *watch, uint32_t events)
{
    struct channel *channel = CONTAINER_OF(watch, struct channel, listener);
    int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void) events;
    if (fd < 0) {
        return;
    }
    if (channel->sw->n_connections >= MAX_CONNECTIONS) {
        LOG("too many connections");
        close(fd);
        return;
    }
    tune_socket(channel, fd);
    connection_create(channel->sw, channel, fd, false);
}

void channel_listen(struct channel *channel, struct vswitch *sw, const char *where)
{
    const struct sockaddr *address = (const struct sockaddr *) &channel->address.storage;
    int on = 1;
    int fd;

    channel->sw = sw;
    channel->listening = true;
    address_parse(&channel->address, where);
    fd = open_socket(channel);
    if (fd < 0) {
        fatal("cannot listen on %s: %s", where, strerror(errno));
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    address_unlink(&channel->address); /* Left behind by a switch that was killed. */
    if (bind(fd, address, channel->address.size) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        fatal("cannot listen on %s: %s", where, strerror(errno));
    }
    channel->listener.fd = fd;
    channel->listener.callback = controller_arrives;
    watch_add(&sw->loop, &channel->listener, EPOLLIN);
}

static void schedule_retry(struct channel *channel)
{
    timer_start_once(&channel->retry, channel->backoff_msec);
    channel->backoff_msec = MIN(channel->backoff_msec * 2, (uint64_t) BACKOFF_MAX_MSEC);
}

static void try_to_connect(struct channel *channel)
{
    const struct sockaddr *address = (const struct sockaddr *) &channel->address.storage;
    int fd = open_socket(channel);

    if (fd < 0) {
        schedule_retry(channel);
        return;
    }
    tune_socket(channel, fd);
    if (connect(fd, address, channel->address.size) == 0) {
        connection_create(channel->sw, channel, fd, false);
    } else if (errno == EINPROGRESS) {
        connection_create(channel->sw, channel, fd, true);
    } else {
        LOG("cannot connect: %s", strerror(errno));
        close(fd);
        schedule_retry(channel);
    }
}

static void retry_connecting(struct timer *timer)
{
    try_to_connect(CONTAINER_OF(timer, struct channel, retry));
}

void channel_connect(struct channel *channel, struct vswitch *sw, const char *where)
{
    channel->sw = sw;
    channel->listening = false;
    channel->backoff_msec = BACKOFF_FIRST_MSEC;
    address_parse(&channel->address, where);
    timer_open(&sw->loop, &channel->retry, retry_connecting);
    try_to_connect(channel);
}

void channel_close(struct channel *channel)
{
    if (channel->listening) {
        watch_remove(&channel->sw->loop, &channel->listener);
        close(channel->listener.fd);
        address_unlink(&channel->address);
    } else {
        timer_close(&channel->sw->loop, &channel->retry);
    }
}

void channel_connection_works(struct channel *channel)
{
    channel->backoff_msec = BACKOFF_FIRST_MSEC;
}

void channel_connection_over(struct channel *channel)
{
    if (!channel->listening) {
        schedule_retry(channel);
    }
}
