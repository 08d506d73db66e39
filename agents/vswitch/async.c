/* Messages that the switch sends on its own account. */
#include "async.h"

#include <arpa/inet.h>

#include "connection.h"
#include "message.h"
#include "util.h"
#include "vswitch.h"

struct packet_in {
    const struct packet *packet;
    uint32_t buffer_id;
    uint16_t in_port;
    enum ofp_packet_in_reason reason;
    uint16_t max_len; /* Of an action; for a miss, each controller has its own. */
};

static bool any_controller(const struct vswitch *sw)
{
    LIST_FOR_EACH (link, &sw->connections) {
        if (connection_from_link(link)->state == CONNECTION_OPEN) {
            return true;
        }
    }
    return false;
}

/* How much of the frame to send: all of it, if it is not kept in a buffer. */
static size_t data_size(const struct packet_in *in, uint16_t max_len)
{
    size_t whole = MIN(in->packet->len, MESSAGE_MAX - sizeof(struct ofp_packet_in));

    return in->buffer_id == OFP_NO_BUFFER ? whole : MIN(whole, (size_t) max_len);
}

static void send_packet_in(struct connection *connection, const struct packet_in *in)
{
    uint16_t max_len = in->reason == OFPR_NO_MATCH ? connection->miss_send_len : in->max_len;
    struct buf message;
    struct ofp_packet_in *wire;

    buf_init(&message);
    buf_reserve(&message, sizeof *wire + in->packet->len);
    wire = message_begin(&message, OFPT_PACKET_IN, 0, sizeof *wire);
    wire->buffer_id = htonl(in->buffer_id);
    wire->total_len = htons((uint16_t) in->packet->len);
    wire->in_port = htons(in->in_port);
    wire->reason = (uint8_t) in->reason;
    buf_append(&message, in->packet->data, data_size(in, max_len));
    message_finish(&message);
    connection_send_lossy(connection, &message);
}

static void packet_in(struct vswitch *sw, struct packet_in *in)
{
    if (!any_controller(sw)) {
        return; /* Nobody would ever empty the buffer. */
    }
    in->buffer_id = packet_buffers_save(&sw->buffers, in->packet, in->in_port);
    LIST_FOR_EACH (link, &sw->connections) {
        struct connection *connection = connection_from_link(link);

        if (connection->state == CONNECTION_OPEN) {
            send_packet_in(connection, in);
        }
    }
}

void async_packet_in_miss(struct vswitch *sw, const struct packet *packet, uint16_t in_port)
{
    struct packet_in in = {.packet = packet, .in_port = in_port, .reason = OFPR_NO_MATCH};

    packet_in(sw, &in);
}

void async_packet_in_action(struct vswitch *sw, const struct packet *packet, uint16_t in_port,
                            uint16_t max_len)
{
    struct packet_in in = {
        .packet = packet, .in_port = in_port, .reason = OFPR_ACTION, .max_len = max_len};

    packet_in(sw, &in);
}

/* Sends a copy of a finished message to every controller. */
static void broadcast(struct vswitch *sw, const struct buf *message)
{
    LIST_FOR_EACH (link, &sw->connections) {
        struct connection *connection = connection_from_link(link);

        if (connection->state == CONNECTION_OPEN) {
            struct buf copy;

            buf_init(&copy);
            buf_append(&copy, buf_front(message), buf_size(message));
            connection_send(connection, &copy);
        }
    }
}

void async_flow_removed(struct vswitch *sw, const struct flow *flow,
                        enum ofp_flow_removed_reason reason)
{
    uint64_t duration = time_msec() - flow->created;
    struct ofp_flow_removed *wire;
    struct buf message;

    buf_init(&message);
    wire = message_begin(&message, OFPT_FLOW_REMOVED, 0, sizeof *wire);
    match_to_wire(&flow->rule.match, &wire->match);
    wire->cookie = hton64(flow->cookie);
    wire->priority = htons(flow_priority(flow));
    wire->reason = (uint8_t) reason;
    wire->duration_sec = htonl((uint32_t) (duration / 1000));
    wire->duration_nsec = htonl((uint32_t) (duration % 1000) * 1000000);
    wire->idle_timeout = htons(flow->idle_timeout);
    wire->packet_count = hton64(flow->packets);
    wire->byte_count = hton64(flow->bytes);
    message_finish(&message);
    broadcast(sw, &message);
    buf_free(&message);
}

void async_port_status(struct vswitch *sw, const struct port *port, enum ofp_port_reason reason)
{
    struct ofp_port_status *wire;
    struct buf message;

    buf_init(&message);
    wire = message_begin(&message, OFPT_PORT_STATUS, 0, sizeof *wire);
    wire->reason = (uint8_t) reason;
    port_describe(port, &wire->desc);
    message_finish(&message);
    broadcast(sw, &message);
    buf_free(&message);
}
