/* packet_out, in which the two agents differ: AGENT is 1 or 2. */
#include <arpa/inet.h>

#include "../common/message.h"
#include "agent.h"

/* Figure 1 of the paper.  Returns ACCEPTED or an OFPBAC_* code. */
#define ACCEPTED (-1)

static int send_to_port(struct agent *agent, uint16_t port, const uint8_t *packet, size_t size)
{
    if (agent->ports[port] != NULL) { /* Otherwise it may come later: the packet is dropped. */
        netdev_send(agent->ports[port], packet, size);
    }
    return ACCEPTED;
}

static int output(struct agent *agent, const struct ofp_packet_out *request, uint16_t port,
                  const uint8_t *packet, size_t size)
{
    if (AGENT == 1 && port == OFPP_CONTROLLER) {
        send_packet_in(agent, packet, size, ntohs(request->in_port), OFPR_ACTION);
        return ACCEPTED;
    } else if (port < N_PORTS) {
        return send_to_port(agent, port, packet, size);
    } else {
        return OFPBAC_BAD_OUT_PORT;
    }
}

void handle_packet_out(struct agent *agent, struct channel *channel,
                       const struct ofp_header *message)
{
    const struct ofp_packet_out *request = (const void *) message;
    size_t length = ntohs(message->length);
    size_t actions_length = ntohs(request->actions_len);
    const uint8_t *packet = request->actions + actions_length;

    if (actions_length > length - sizeof *request) {
        send_error(channel, message, length, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
        return;
    }
    if (ntohl(request->buffer_id) != OFP_NO_BUFFER) { /* There are no buffers. */
        send_error(channel, message, length, OFPET_BAD_REQUEST, OFPBRC_BUFFER_UNKNOWN);
        return;
    }
    for (const uint8_t *action = request->actions; action < packet;) {
        const struct ofp_action_output *wire = (const void *) action;
        int error;

        if ((size_t) (packet - action) < sizeof *wire || ntohs(wire->len) != sizeof *wire) {
            error = OFPBAC_BAD_LEN;
        } else if (ntohs(wire->type) != OFPAT_OUTPUT) {
            error = OFPBAC_BAD_TYPE;
        } else {
            error = output(agent, request, ntohs(wire->port), packet,
                           length - sizeof *request - actions_length);
        }
        if (error != ACCEPTED) {
            send_error(channel, message, length, OFPET_BAD_ACTION, (uint16_t) error);
            return;
        }
        action += sizeof *wire;
    }
}
