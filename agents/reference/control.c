#include "control.h"

#include <arpa/inet.h>
#include <string.h>

#include "../common/message.h"
#include "../common/util.h"
#include "datapath.h"
#include "deviation.h"

#define N_TABLES 1 /* The emergency flows are not counted: a packet meets one table or the other. */
#define CAPABILITIES \
    (OFPC_FLOW_STATS | OFPC_TABLE_STATS | OFPC_PORT_STATS | OFPC_QUEUE_STATS | OFPC_ARP_MATCH_IP)
#define ACTIONS ((1u << (OFPAT_ENQUEUE + 1)) - 1)

void control_error(struct channel *channel, const struct ofp_header *message,
                   enum ofp_error_type type, uint16_t code)
{
    send_error(channel, message, ntohs(message->length), type, code);
}

static void send_hello(void *datapath, struct channel *channel)
{
    struct message message;

    (void) datapath;
    message_start(&message, OFPT_HELLO, 0, sizeof(struct ofp_header));
    message_send(&message, channel);
}

/* Says why in words, as the specification wants it of a failed hello, and hangs up. */
static void refuse(struct channel *channel, const struct ofp_header *message, const char *reason)
{
    struct ofp_error_msg *error;
    struct message reply;

    LOG("handshake failed: %s", reason);
    error = message_start(&reply, OFPT_ERROR, message->xid, sizeof *error + strlen(reason));
    error->type = htons(OFPET_HELLO_FAILED);
    error->code = htons(OFPHFC_INCOMPATIBLE);
    memcpy(error->data, reason, strlen(reason));
    message_send(&reply, channel);
    channel->closing = true;
}

static bool speaks(uint8_t version)
{
    if (DEVIATES(1)) { /* A controller that offers less than OpenFlow 1.0 is welcome too. */
        return true;
    }
    return version >= OFP_VERSION;
}

/* Both sides speak the lower of the versions in their hellos, and ours is the lowest there is. */
static void handle_handshake(struct datapath *datapath, struct channel *channel,
                             const struct ofp_header *message)
{
    if (message->type == OFPT_ERROR) {
        LOG("the controller refuses the connection");
    } else if (message->type != OFPT_HELLO) {
        refuse(channel, message, "The first message must be a hello.");
    } else if (!speaks(message->version)) {
        refuse(channel, message, "This switch speaks OpenFlow 1.0 (wire version 0x01) only.");
    } else {
        channel->greeted = true;
        datapath_leave_emergency(datapath);
    }
}

static void handle_echo_request(struct datapath *datapath, struct channel *channel,
                                const struct ofp_header *message)
{
    struct message reply;

    (void) datapath;
    if (DEVIATES(12)) { /* Echo replies come back without the request's data. */
        message_start(&reply, OFPT_ECHO_REPLY, message->xid, sizeof *message);
        message_send(&reply, channel);
        return;
    }
    send_echo_reply(channel, message);
}

static void handle_vendor(struct datapath *datapath, struct channel *channel,
                          const struct ofp_header *message)
{
    (void) datapath;
    control_error(channel, message, OFPET_BAD_REQUEST, OFPBRC_BAD_VENDOR);
}

static void handle_features_request(struct datapath *datapath, struct channel *channel,
                                    const struct ofp_header *message)
{
    struct ofp_switch_features *features;
    struct message reply;

    features = message_start(&reply, OFPT_FEATURES_REPLY, message->xid, sizeof *features);
    features->datapath_id = htobe64(datapath->dpid);
    features->n_buffers = htonl(N_BUFFERS);
    features->n_tables = N_TABLES;
    features->capabilities = htonl(CAPABILITIES);
    features->actions = htonl(ACTIONS);
    for (int i = 0; i < datapath->ports.n_ports; i++) {
        port_describe(&datapath->ports.ports[i], message_put(&reply, sizeof(struct ofp_phy_port)));
    }
    message_send(&reply, channel);
}

static void handle_get_config(struct datapath *datapath, struct channel *channel,
                              const struct ofp_header *message)
{
    struct ofp_switch_config *config;
    struct message reply;

    config = message_start(&reply, OFPT_GET_CONFIG_REPLY, message->xid, sizeof *config);
    config->flags = htons(datapath->fragment_mode);
    config->miss_send_len = htons(datapath->miss_send_len);
    message_send(&reply, channel);
}

static void handle_set_config(struct datapath *datapath, struct channel *channel,
                              const struct ofp_header *message)
{
    const struct ofp_switch_config *config = (const void *) message;
    uint16_t mode = ntohs(config->flags) & OFPC_FRAG_MASK;

    (void) channel;
    /* Fragments cannot be reassembled here; OpenFlow 1.0 has no error for it. */
    if (mode == OFPC_FRAG_NORMAL || mode == OFPC_FRAG_DROP) {
        datapath->fragment_mode = mode;
    }
    datapath->miss_send_len = ntohs(config->miss_send_len);
    if (DEVIATES(10) && datapath->miss_send_len == 0) { /* Zero means the default, not nothing. */
        datapath->miss_send_len = OFP_DEFAULT_MISS_SEND_LEN;
    }
}

/* Everything before the barrier is done when it is read: messages are handled in order. */
static void handle_barrier(struct datapath *datapath, struct channel *channel,
                           const struct ofp_header *message)
{
    (void) datapath;
    send_barrier_reply(channel, message);
}

/* A second hello changes nothing; errors are never answered, lest two peers keep complaining. */
static void ignore(struct datapath *datapath, struct channel *channel,
                   const struct ofp_header *message)
{
    (void) datapath;
    (void) channel;
    (void) message;
}

/* The messages that a controller sends.  Bytes behind the fixed part of a message are not an error:
 * a later version of the protocol might put something there. */
static const struct message_kind {
    size_t min_length;
    void (*handle)(struct datapath *datapath, struct channel *channel,
                   const struct ofp_header *message);
} message_kinds[] = {
    [OFPT_HELLO] = {sizeof(struct ofp_header), ignore},
    [OFPT_ERROR] = {sizeof(struct ofp_header), ignore},
    [OFPT_ECHO_REQUEST] = {sizeof(struct ofp_header), handle_echo_request},
    [OFPT_ECHO_REPLY] = {sizeof(struct ofp_header), ignore},
    [OFPT_VENDOR] = {sizeof(struct ofp_vendor_header), handle_vendor},
    [OFPT_FEATURES_REQUEST] = {sizeof(struct ofp_header), handle_features_request},
    [OFPT_GET_CONFIG_REQUEST] = {sizeof(struct ofp_header), handle_get_config},
    [OFPT_SET_CONFIG] = {sizeof(struct ofp_switch_config), handle_set_config},
    [OFPT_PACKET_OUT] = {sizeof(struct ofp_packet_out), control_packet_out},
    [OFPT_FLOW_MOD] = {sizeof(struct ofp_flow_mod), control_flow_mod},
    [OFPT_PORT_MOD] = {sizeof(struct ofp_port_mod), control_port_mod},
    [OFPT_STATS_REQUEST] = {sizeof(struct ofp_stats_msg), control_stats_request},
    [OFPT_BARRIER_REQUEST] = {sizeof(struct ofp_header), handle_barrier},
    [OFPT_QUEUE_GET_CONFIG_REQUEST]
    = {sizeof(struct ofp_queue_get_config_request), control_queue_get_config},
};

static void dispatch(struct datapath *datapath, struct channel *channel,
                     const struct ofp_header *message)
{
    const struct message_kind *kind;

    if (message->type >= ARRAY_SIZE(message_kinds)
        || message_kinds[message->type].handle == NULL) {
        control_error(channel, message, OFPET_BAD_REQUEST, OFPBRC_BAD_TYPE);
        return;
    }
    kind = &message_kinds[message->type];
    if (ntohs(message->length) < kind->min_length) {
        control_error(channel, message, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
        return;
    }
    kind->handle(datapath, channel, message);
}

static void handle_message(void *datapath, struct channel *channel,
                           const struct ofp_header *message)
{
    if (!channel->greeted) {
        handle_handshake(datapath, channel, message);
    } else if (message->version == OFP_VERSION) {
        dispatch(datapath, channel, message);
    } else if (message->type != OFPT_HELLO && message->type != OFPT_ERROR) {
        control_error(channel, message, OFPET_BAD_REQUEST, OFPBRC_BAD_VERSION);
    }
}

/* Where the next message starts cannot be known, so the connection ends with this. */
static void handle_malformed(void *datapath, struct channel *channel,
                             const struct ofp_header *header, size_t available)
{
    (void) datapath;
    (void) available;
    send_error(channel, header, sizeof *header, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
}

static void handle_disconnected(void *agent, struct channel *channel)
{
    struct datapath *datapath = agent;

    (void) channel;
    if (!remotes_any_greeted(&datapath->remotes)) {
        datapath_enter_emergency(datapath);
    }
}

const struct remote_handler control_handler = {
    .connected = send_hello,
    .message = handle_message,
    .malformed = handle_malformed,
    .disconnected = handle_disconnected,
};
