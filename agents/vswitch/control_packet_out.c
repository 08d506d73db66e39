/* packet_out: a packet that a controller wants sent. */
#include <arpa/inet.h>

#include "action.h"
#include "control.h"
#include "datapath.h"
#include "vswitch.h"

/* The packet is in a buffer of the switch, or in the message after the actions. */
static of_result get_packet(struct vswitch *sw, const struct ofp_packet_out *out,
                            size_t actions_len, struct packet *packet)
{
    const uint8_t *data = (const uint8_t *) (out + 1) + actions_len;
    size_t size = ntohs(out->header.length) - sizeof *out - actions_len;
    uint32_t buffer_id = ntohl(out->buffer_id);
    uint16_t buffered_in_port; /* What the controller says in its message counts instead. */

    if (buffer_id == OFP_NO_BUFFER) {
        packet_copy(packet, data, size);
        return OF_OK;
    }
    if (!packet_buffers_take(&sw->buffers, buffer_id, packet, &buffered_in_port)) {
        return BAD_REQUEST(BUFFER_UNKNOWN);
    }
    return OF_OK;
}

/* Actions are validated before the buffer is looked for, so that a message with errors in both
 * does not cost the controller its buffered packet. */
of_result control_packet_out(struct vswitch *sw, const struct ofp_header *message)
{
    const struct ofp_packet_out *out = (const void *) message;
    size_t length = ntohs(message->length);
    struct action_list actions;
    struct packet packet;
    size_t actions_len;
    of_result result;

    if (length < sizeof *out) {
        return BAD_REQUEST(BAD_LEN);
    }
    actions_len = ntohs(out->actions_len);
    if (actions_len > length - sizeof *out) {
        return BAD_REQUEST(BAD_LEN);
    }
    result = action_list_decode(&actions, out + 1, actions_len, sw->max_port);
    if (result != OF_OK) {
        return result;
    }
    result = get_packet(sw, out, actions_len, &packet);
    if (result == OF_OK) {
        datapath_execute(sw, &packet, ntohs(out->in_port), &actions);
        packet_free(&packet);
    }
    action_list_free(&actions);
    return result;
}
