/* Everything on the control channel but packet_out. */
#include <arpa/inet.h>
#include <string.h>

#include "../common/message.h"
#include "../common/util.h"
#include "agent.h"

#define MAX_PACKET_IN_DATA (UINT16_MAX - sizeof(struct ofp_packet_in))

static void send_hello(void *agent, struct channel *channel)
{
    struct message message;

    (void) agent;
    message_start(&message, OFPT_HELLO, 0, sizeof(struct ofp_header));
    message_send(&message, channel);
}

static void handle_handshake(struct channel *channel, const struct ofp_header *message)
{
    if (message->type == OFPT_HELLO && message->version >= OFP_VERSION) {
        channel->greeted = true;
    } else {
        send_error(channel, message, 0, OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE);
        channel->closing = true;
    }
}

static void describe_port(struct message *reply, const struct netdev *netdev, int number)
{
    struct ofp_phy_port *wire = message_put(reply, sizeof *wire);

    wire->port_no = htons((uint16_t) number);
    wire->hw_addr[0] = 0x02; /* Locally administered. */
    wire->hw_addr[5] = (uint8_t) number;
    message_put_string(wire->name, sizeof wire->name, netdev->name);
    wire->state = htonl(netdev_link_is_up(netdev) ? 0 : OFPPS_LINK_DOWN);
}

static void handle_features_request(struct agent *agent, struct channel *channel,
                                    const struct ofp_header *message)
{
    struct ofp_switch_features *features;
    struct message reply;

    features = message_start(&reply, OFPT_FEATURES_REPLY, message->xid, sizeof *features);
    features->datapath_id = htobe64(agent->dpid);
    features->actions = htonl(1u << OFPAT_OUTPUT);
    for (int i = 0; i < N_PORTS; i++) {
        if (agent->ports[i] != NULL) {
            describe_port(&reply, agent->ports[i], i);
        }
    }
    message_send(&reply, channel);
}

static void dispatch(struct agent *agent, struct channel *channel,
                     const struct ofp_header *message)
{
    size_t length = ntohs(message->length);

    switch (message->type) {
    case OFPT_HELLO:
    case OFPT_ERROR:
    case OFPT_ECHO_REPLY:
    case OFPT_SET_CONFIG: /* Packets always go whole, fragments included. */
        break;
    case OFPT_ECHO_REQUEST:
        send_echo_reply(channel, message);
        break;
    case OFPT_FEATURES_REQUEST:
        handle_features_request(agent, channel, message);
        break;
    case OFPT_BARRIER_REQUEST:
        send_barrier_reply(channel, message);
        break;
    case OFPT_PACKET_OUT:
        if (length < sizeof(struct ofp_packet_out)) {
            send_error(channel, message, length, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
        } else {
            handle_packet_out(agent, channel, message);
        }
        break;
    default:
        send_error(channel, message, length, OFPET_BAD_REQUEST, OFPBRC_BAD_TYPE);
        break;
    }
}

static void handle_message(void *agent, struct channel *channel, const struct ofp_header *message)
{
    if (!channel->greeted) {
        handle_handshake(channel, message);
    } else if (message->version != OFP_VERSION) {
        send_error(channel, message, ntohs(message->length), OFPET_BAD_REQUEST,
                   OFPBRC_BAD_VERSION);
    } else {
        dispatch(agent, channel, message);
    }
}

static void handle_malformed(void *agent, struct channel *channel, const struct ofp_header *header,
                             size_t available)
{
    (void) agent;
    (void) available;
    send_error(channel, header, sizeof *header, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
}

static void handle_disconnected(void *agent, struct channel *channel)
{
    (void) agent;
    (void) channel;
}

const struct remote_handler control_handler = {
    .connected = send_hello,
    .message = handle_message,
    .malformed = handle_malformed,
    .disconnected = handle_disconnected,
};

void send_packet_in(struct agent *agent, const uint8_t *packet, size_t size, uint16_t in_port,
                    enum ofp_packet_in_reason reason)
{
    size_t shown = size < MAX_PACKET_IN_DATA ? size : MAX_PACKET_IN_DATA;
    struct ofp_packet_in *packet_in;
    struct message message;

    packet_in = message_start(&message, OFPT_PACKET_IN, 0, sizeof *packet_in + shown);
    packet_in->buffer_id = htonl(OFP_NO_BUFFER);
    packet_in->total_len = htons((uint16_t) size);
    packet_in->in_port = htons(in_port);
    packet_in->reason = (uint8_t) reason;
    memcpy(packet_in->data, packet, shown);
    message_finish(&message);
    remotes_broadcast(&agent->remotes, message.data, message.size);
    message_free(&message);
}
