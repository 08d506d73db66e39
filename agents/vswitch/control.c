/* The handshake, the dispatch of messages, and the handlers that need no module of their own. */
#include "control.h"

#include <arpa/inet.h>
#include <string.h>

#include "channel.h"
#include "connection.h"
#include "message.h"
#include "util.h"
#include "vswitch.h"

#define N_TABLES 1

void control_send_hello(struct connection *connection)
{
    struct buf message;

    buf_init(&message);
    message_begin(&message, OFPT_HELLO, 0, sizeof(struct ofp_header));
    message_finish(&message);
    connection_send(connection, &message);
}

/* Says why in words, as the specification wants it of a failed hello, and hangs up. */
static void refuse(struct connection *connection, const struct ofp_header *message,
                   const char *reason)
{
    struct ofp_error_msg *wire;
    struct buf reply;

    LOG("handshake failed: %s", reason);
    buf_init(&reply);
    wire = message_begin(&reply, OFPT_ERROR, message->xid, sizeof *wire);
    wire->type = htons(OFPET_HELLO_FAILED);
    wire->code = htons(OFPHFC_INCOMPATIBLE);
    buf_append(&reply, reason, strlen(reason));
    message_finish(&reply);
    connection_send(connection, &reply);
    connection_close(connection);
}

/* Both sides speak the lower of the two versions offered, and we offer the lowest there is. */
static void handle_handshake(struct connection *connection, const struct ofp_header *message)
{
    if (message->type == OFPT_ERROR) {
        LOG("the controller refuses the connection");
    } else if (message->type != OFPT_HELLO) {
        refuse(connection, message, "The first message must be a hello.");
    } else if (message->version < OFP_VERSION) {
        refuse(connection, message, "This switch speaks OpenFlow 1.0 (wire version 0x01) only.");
    } else {
        connection->state = CONNECTION_OPEN;
        channel_connection_works(connection->channel);
    }
}

static of_result handle_echo_request(struct connection *connection,
                                     const struct ofp_header *message)
{
    struct buf reply;

    buf_init(&reply);
    message_begin(&reply, OFPT_ECHO_REPLY, message->xid, sizeof *message);
    buf_append(&reply, message + 1, ntohs(message->length) - sizeof *message);
    message_finish(&reply);
    connection_send(connection, &reply);
    return OF_OK;
}

static of_result handle_vendor(const struct ofp_header *message)
{
    if (ntohs(message->length) < sizeof(struct ofp_vendor_header)) {
        return BAD_REQUEST(BAD_LEN);
    }
    return BAD_REQUEST(BAD_VENDOR);
}

static of_result handle_features_request(struct vswitch *sw, struct connection *connection,
                                         const struct ofp_header *message)
{
    struct ofp_switch_features *features;
    struct buf reply;

    if (ntohs(message->length) != sizeof *message) {
        return BAD_REQUEST(BAD_LEN);
    }
    buf_init(&reply);
    features = message_begin(&reply, OFPT_FEATURES_REPLY, message->xid, sizeof *features);
    features->datapath_id = hton64(sw->datapath_id);
    features->n_buffers = htonl(PACKET_BUFFERS_MAX);
    features->n_tables = N_TABLES;
    features->capabilities = htonl(OFPC_FLOW_STATS | OFPC_TABLE_STATS | OFPC_PORT_STATS |
                                   OFPC_QUEUE_STATS | OFPC_ARP_MATCH_IP);
    features->actions = htonl(OFP_SUPPORTED_ACTIONS);
    LIST_FOR_EACH (link, &sw->ports.ports) {
        port_describe(port_from_link(link), buf_add(&reply, sizeof(struct ofp_phy_port)));
    }
    message_finish(&reply);
    connection_send(connection, &reply);
    return OF_OK;
}

static of_result handle_get_config(struct vswitch *sw, struct connection *connection,
                                   const struct ofp_header *message)
{
    struct ofp_switch_config *config;
    struct buf reply;

    if (ntohs(message->length) != sizeof *message) {
        return BAD_REQUEST(BAD_LEN);
    }
    buf_init(&reply);
    config = message_begin(&reply, OFPT_GET_CONFIG_REPLY, message->xid, sizeof *config);
    config->flags = htons(sw->fragment_mode);
    config->miss_send_len = htons(connection->miss_send_len);
    message_finish(&reply);
    connection_send(connection, &reply);
    return OF_OK;
}

static of_result handle_set_config(struct vswitch *sw, struct connection *connection,
                                   const struct ofp_header *message)
{
    const struct ofp_switch_config *config = (const void *) message;
    uint16_t mode;

    if (ntohs(message->length) != sizeof *config) {
        return BAD_REQUEST(BAD_LEN);
    }
    mode = ntohs(config->flags) & OFPC_FRAG_MASK;
    if (mode == OFPC_FRAG_NORMAL || mode == OFPC_FRAG_DROP) {
        sw->fragment_mode = mode;
    } else {
        /* OpenFlow 1.0 has no error for it; a get_config shows that nothing changed. */
        LOG("fragments cannot be reassembled; the mode stays as it was");
    }
    connection->miss_send_len = ntohs(config->miss_send_len);
    return OF_OK;
}

/* Everything before the barrier is done when it is read: messages are handled in order. */
static of_result handle_barrier(struct connection *connection, const struct ofp_header *message)
{
    struct buf reply;

    if (ntohs(message->length) != sizeof *message) {
        return BAD_REQUEST(BAD_LEN);
    }
    buf_init(&reply);
    message_begin(&reply, OFPT_BARRIER_REPLY, message->xid, sizeof *message);
    message_finish(&reply);
    connection_send(connection, &reply);
    return OF_OK;
}

static of_result dispatch(struct vswitch *sw, struct connection *connection,
                          const struct ofp_header *message)
{
    switch (message->type) {
    case OFPT_HELLO: /* A second one changes nothing. */
    case OFPT_ERROR: /* Never answered, lest two peers keep complaining to each other. */
    case OFPT_ECHO_REPLY:
        return OF_OK;
    case OFPT_ECHO_REQUEST:
        return handle_echo_request(connection, message);
    case OFPT_VENDOR:
        return handle_vendor(message);
    case OFPT_FEATURES_REQUEST:
        return handle_features_request(sw, connection, message);
    case OFPT_GET_CONFIG_REQUEST:
        return handle_get_config(sw, connection, message);
    case OFPT_SET_CONFIG:
        return handle_set_config(sw, connection, message);
    case OFPT_PACKET_OUT:
        return control_packet_out(sw, message);
    case OFPT_FLOW_MOD:
        return control_flow_mod(sw, message);
    case OFPT_PORT_MOD:
        return control_port_mod(sw, message);
    case OFPT_STATS_REQUEST:
        return control_stats_request(sw, connection, message);
    case OFPT_BARRIER_REQUEST:
        return handle_barrier(connection, message);
    case OFPT_QUEUE_GET_CONFIG_REQUEST:
        return control_queue_get_config(sw, connection, message);
    default: /* Unknown, or one that only switches send. */
        return BAD_REQUEST(BAD_TYPE);
    }
}

void control_handle_message(struct vswitch *sw, struct connection *connection,
                            const struct ofp_header *message)
{
    of_result result;

    if (connection->state == CONNECTION_HANDSHAKE) {
        handle_handshake(connection, message);
        return;
    }
    if (message->version == OFP_VERSION) {
        result = dispatch(sw, connection, message);
    } else if (message->type == OFPT_HELLO || message->type == OFPT_ERROR) {
        result = OF_OK;
    } else {
        result = BAD_REQUEST(BAD_VERSION);
    }
    if (of_is_error(result)) {
        connection_send_error(connection, result, message, ntohs(message->length));
    }
}
