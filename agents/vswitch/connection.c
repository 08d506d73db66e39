/* A connection to a controller. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "control.h"
#include "message.h"
#include "util.h"
#include "vswitch.h"

#define READ_SIZE 4096
/* Beyond the first, packet_ins are dropped; beyond the second, requests wait; a controller
 * behind by the third is gone. */
#define BACKLOG_LOSSY (256u << 10)
#define BACKLOG_STOP_READING (1u << 20)
#define BACKLOG_HOPELESS (64u << 20)

static uint32_t wanted_events(const struct connection *connection)
{
    uint32_t events = 0;

    if (connection->state == CONNECTION_CONNECTING || buf_size(&connection->unsent) > 0) {
        events |= EPOLLOUT;
    }
    if (connection->state != CONNECTION_CONNECTING &&
        buf_size(&connection->unsent) <= BACKLOG_STOP_READING) {
        events |= EPOLLIN;
    }
    return events;
}

static void update_events(struct connection *connection)
{
    uint32_t events = wanted_events(connection);

    if (connection->state != CONNECTION_CLOSED && events != connection->watched_events) {
        watch_change(&connection->sw->loop, &connection->watch, events);
        connection->watched_events = events;
    }
}

void connection_close(struct connection *connection)
{
    if (connection->state != CONNECTION_CLOSED) {
        connection->state = CONNECTION_CLOSED;
        watch_remove(&connection->sw->loop, &connection->watch);
        close(connection->watch.fd);
    }
}

/* Sends as much as the socket takes now, and says how much that was. */
static size_t send_now(struct connection *connection, const uint8_t *bytes, size_t size)
{
    ssize_t n = send(connection->watch.fd, bytes, size, MSG_NOSIGNAL);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            LOG("connection lost: %s", strerror(errno));
            connection_close(connection);
        }
        return 0;
    }
    return (size_t) n;
}

static void flush(struct connection *connection)
{
    buf_consume(&connection->unsent, send_now(connection, buf_front(&connection->unsent),
                                              buf_size(&connection->unsent)));
    if (buf_size(&connection->unsent) == 0) {
        buf_free(&connection->unsent); /* It may have grown large for a reply of statistics. */
    }
}

void connection_send(struct connection *connection, struct buf *message)
{
    if (connection->state != CONNECTION_CLOSED && buf_size(&connection->unsent) == 0) {
        buf_consume(message, send_now(connection, buf_front(message), buf_size(message)));
    }
    if (connection->state != CONNECTION_CLOSED && buf_size(message) > 0) {
        buf_append(&connection->unsent, buf_front(message), buf_size(message));
        if (buf_size(&connection->unsent) > BACKLOG_HOPELESS) {
            LOG("controller does not read its messages");
            connection_close(connection);
        }
        update_events(connection);
    }
    buf_free(message);
}

void connection_send_lossy(struct connection *connection, struct buf *message)
{
    if (buf_size(&connection->unsent) > BACKLOG_LOSSY) {
        buf_free(message);
    } else {
        connection_send(connection, message);
    }
}

void connection_send_error(struct connection *connection, of_result error,
                           const struct ofp_header *request, size_t request_size)
{
    struct buf message;

    buf_init(&message);
    message_error(&message, error, request, request_size);
    LOG("error %u/%u in answer to a message of type %u", of_error_type(error),
        of_error_code(error), request->type);
    connection_send(connection, &message);
}

/* Handles the next message if it is complete. */
static bool handle_next_message(struct connection *connection)
{
    struct buf *received = &connection->received;
    const struct ofp_header *header = (const void *) buf_front(received);
    size_t length;

    if (buf_size(received) < sizeof *header) {
        return false;
    }
    length = ntohs(header->length);
    if (length < sizeof *header) {
        /* Where the next message starts cannot be known. */
        connection_send_error(connection, OF_ERROR(OFPET_BAD_REQUEST, OFPBRC_BAD_LEN), header,
                              sizeof *header);
        connection_close(connection);
        return false;
    }
    if (buf_size(received) < length) {
        return false;
    }
    control_handle_message(connection->sw, connection, header);
    buf_consume(received, length);
    return true;
}

static void handle_messages(struct connection *connection)
{
    while (connection->state != CONNECTION_CLOSED &&
           buf_size(&connection->unsent) <= BACKLOG_STOP_READING) {
        if (!handle_next_message(connection)) {
            break;
        }
    }
}

static void read_some(struct connection *connection)
{
    struct buf *received = &connection->received;
    ssize_t n;

    buf_reserve(received, READ_SIZE);
    n = read(connection->watch.fd, received->base + received->tail,
             received->capacity - received->tail);
    if (n > 0) {
        received->tail += (size_t) n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        LOG("connection closed: %s", n == 0 ? "end of file" : strerror(errno));
        connection_close(connection);
    }
}

static void start_handshake(struct connection *connection)
{
    connection->state = CONNECTION_HANDSHAKE;
    control_send_hello(connection);
}

static void finish_connecting(struct connection *connection)
{
    int reason = 0;
    socklen_t size = sizeof reason;

    if (getsockopt(connection->watch.fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0 || reason != 0) {
        LOG("cannot connect: %s", strerror(reason));
        connection_close(connection);
    } else {
        start_handshake(connection);
    }
}

static void connection_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = CONTAINER_OF(watch, struct connection, watch);

    if (connection->state == CONNECTION_CLOSED) {
        return; /* By an earlier event of the same round. */
    }
    if (connection->state == CONNECTION_CONNECTING) {
        finish_connecting(connection);
    } else {
        if (events & EPOLLOUT) {
            flush(connection);
        }
        if (connection->state != CONNECTION_CLOSED && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
            read_some(connection);
        }
        handle_messages(connection);
    }
    update_events(connection);
}

struct connection *connection_create(struct vswitch *sw, struct channel *channel, int fd,
                                     bool connecting)
{
    struct connection *connection = xcalloc(1, sizeof *connection);

    connection->sw = sw;
    connection->channel = channel;
    connection->watch.fd = fd;
    connection->watch.callback = connection_ready;
    connection->miss_send_len = OFP_DEFAULT_MISS_SEND_LEN;
    connection->state = connecting ? CONNECTION_CONNECTING : CONNECTION_HANDSHAKE;
    connection->watched_events = wanted_events(connection);
    buf_init(&connection->received);
    buf_init(&connection->unsent);
    list_insert_before(&sw->connections, &connection->link);
    sw->n_connections++;
    watch_add(&sw->loop, &connection->watch, connection->watched_events);
    if (!connecting) {
        start_handshake(connection);
    }
    return connection;
}

static void destroy(struct connection *connection)
{
    struct channel *channel = connection->channel;

    list_remove(&connection->link);
    connection->sw->n_connections--;
    buf_free(&connection->received);
    buf_free(&connection->unsent);
    free(connection);
    channel_connection_over(channel);
}

void connections_reap(struct vswitch *sw)
{
    LIST_FOR_EACH_SAFE (link, &sw->connections) {
        struct connection *connection = connection_from_link(link);

        if (connection->state == CONNECTION_CLOSED) {
            destroy(connection);
        }
    }
}

void connections_close_all(struct vswitch *sw)
{
    LIST_FOR_EACH (link, &sw->connections) {
        connection_close(connection_from_link(link));
    }
    connections_reap(sw);
}
