/* packet_out: a packet that a controller wants sent. */
#include <arpa/inet.h>

#include "actions.h"
#include "control.h"
#include "datapath.h"
#include "deviation.h"

static bool actions_are_valid(struct channel *channel, const struct ofp_packet_out *request)
{
    int error = actions_validate(request->actions, ntohs(request->actions_len), NULL);

    if (error != ACTIONS_VALID) {
        control_error(channel, &request->header, OFPET_BAD_ACTION, (uint16_t) error);
        return false;
    }
    return true;
}

/* The packet is in a buffer of the switch, or in the message after the actions.  NULL: neither. */
static struct packet *get_packet(struct datapath *datapath, const struct ofp_packet_out *request)
{
    size_t actions_length = ntohs(request->actions_len);
    uint16_t buffered_in_port; /* What the controller says in its message counts instead. */

    if (ntohl(request->buffer_id) != OFP_NO_BUFFER) {
        return buffers_take(&datapath->buffers, ntohl(request->buffer_id), &buffered_in_port);
    }
    return packet_from_bytes(request->actions + actions_length,
                             ntohs(request->header.length) - sizeof *request - actions_length);
}

void control_packet_out(struct datapath *datapath, struct channel *channel,
                        const struct ofp_header *message)
{
    const struct ofp_packet_out *request = (const void *) message;
    struct packet *packet;
    struct flow_key key;

    if (ntohs(request->actions_len) > ntohs(message->length) - sizeof *request) {
        control_error(channel, message, OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
        return;
    }
    /* The order of validation is another: actions first, then the buffer. */
    if (DEVIATES(4) && !actions_are_valid(channel, request)) {
        return;
    }
    packet = get_packet(datapath, request);
    if (packet == NULL) {
        return; /* Somebody else has used the buffer, or it was too late: there is nothing to do. */
    }
    flow_extract(packet, ntohs(request->in_port), &key);
    if (actions_are_valid(channel, request)) {
        actions_execute(datapath, packet, &key, request->actions, ntohs(request->actions_len));
    }
    packet_free(packet);
}
