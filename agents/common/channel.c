#include "channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

/* More than the longest message, so that there is always room to receive the rest of one. */
#define RECEIVE_CAPACITY 65536

/* A peer that asks but does not read its answers is not read from beyond this, so that it cannot
 * make the queue grow without end. */
#define CONGESTION_LIMIT (256 * 1024)

struct channel *channel_new(int fd, bool connecting)
{
    struct channel *channel = xcalloc(sizeof *channel);

    channel->fd = fd;
    channel->connecting = connecting;
    channel->received = xmalloc(RECEIVE_CAPACITY);
    return channel;
}

void channel_free(struct channel *channel)
{
    close(channel->fd);
    free(channel->received);
    free(channel->unsent);
    free(channel);
}

short channel_poll_events(const struct channel *channel)
{
    short events = 0;

    if (channel->connecting) {
        return POLLOUT;
    }
    if (channel->n_unsent > 0) {
        events |= POLLOUT;
    }
    if (!channel_is_congested(channel) && !channel->closing) {
        events |= POLLIN;
    }
    return events;
}

/* Returns how many bytes the socket took; a broken connection marks the channel as closing. */
static size_t send_now(struct channel *channel, const uint8_t *data, size_t size)
{
    size_t sent = 0;

    while (sent < size) {
        ssize_t n = send(channel->fd, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            sent += (size_t) n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            channel->closing = true;
            return size;
        }
    }
    return sent;
}

void channel_send(struct channel *channel, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    size_t sent = 0;

    if (channel->closing) {
        return;
    }
    if (channel->n_unsent == 0 && !channel->connecting) {
        sent = send_now(channel, bytes, size);
    }
    if (sent < size) {
        channel->unsent = xrealloc(channel->unsent, channel->n_unsent + size - sent);
        memcpy(channel->unsent + channel->n_unsent, bytes + sent, size - sent);
        channel->n_unsent += size - sent;
    }
}

bool channel_is_congested(const struct channel *channel)
{
    return channel->n_unsent > CONGESTION_LIMIT;
}

void channel_flush(struct channel *channel)
{
    size_t sent;

    if (channel->n_unsent == 0) {
        return;
    }
    sent = send_now(channel, channel->unsent, channel->n_unsent);
    channel->n_unsent -= sent;
    if (channel->n_unsent > 0) {
        memmove(channel->unsent, channel->unsent + sent, channel->n_unsent);
    } else {
        free(channel->unsent);
        channel->unsent = NULL;
    }
}

bool channel_receive(struct channel *channel)
{
    ssize_t n = recv(channel->fd, channel->received + channel->n_received,
                     RECEIVE_CAPACITY - channel->n_received, MSG_DONTWAIT);

    if (n > 0) {
        channel->n_received += (size_t) n;
        return true;
    }
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

const struct ofp_header *channel_next_message(const struct channel *channel, size_t *offset,
                                              bool *malformed)
{
    const struct ofp_header *header = (const void *) (channel->received + *offset);
    size_t available = channel->n_received - *offset;
    size_t length;

    if (available < sizeof *header) {
        return NULL;
    }
    length = ntohs(header->length);
    if (length < sizeof *header) {
        *malformed = true;
        *offset = channel->n_received;
        return header;
    }
    if (available < length) {
        return NULL;
    }
    *offset += length;
    return header;
}

void channel_consume(struct channel *channel, size_t size)
{
    channel->n_received -= size;
    if (channel->n_received > 0) {
        memmove(channel->received, channel->received + size, channel->n_received);
    }
}
