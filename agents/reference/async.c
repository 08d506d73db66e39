#include "async.h"

#include <arpa/inet.h>

#include "../common/message.h"
#include "../common/util.h"

#define MAX_PACKET_IN_DATA (UINT16_MAX - sizeof(struct ofp_packet_in))

void async_packet_in(struct datapath *datapath, const struct packet *packet, uint16_t in_port,
                     enum ofp_packet_in_reason reason, uint16_t max_len)
{
    struct ofp_packet_in *header;
    struct packet *message;
    uint32_t buffer_id;

    if (!remotes_any_greeted(&datapath->remotes)) {
        return; /* Nobody would ever empty the buffer. */
    }
    buffer_id = buffers_save(&datapath->buffers, packet, in_port, clock_ms());
    message = packet_clone(packet);
    if (message->size > MAX_PACKET_IN_DATA) {
        message->size = MAX_PACKET_IN_DATA;
    }
    if (buffer_id != OFP_NO_BUFFER && message->size > max_len) {
        message->size = max_len;
    }
    header = packet_push(message, sizeof *header);
    header->header.version = OFP_VERSION;
    header->header.type = OFPT_PACKET_IN;
    header->header.length = htons((uint16_t) message->size);
    header->header.xid = 0;
    header->buffer_id = htonl(buffer_id);
    header->total_len = htons((uint16_t) packet->size);
    header->in_port = htons(in_port);
    header->reason = (uint8_t) reason;
    header->pad = 0;
    remotes_broadcast(&datapath->remotes, message->data, message->size);
    packet_free(message);
}

static void broadcast(struct datapath *datapath, struct message *message)
{
    message_finish(message);
    remotes_broadcast(&datapath->remotes, message->data, message->size);
    message_free(message);
}

void async_flow_removed(void *datapath, const struct flow *flow,
                        enum ofp_flow_removed_reason reason)
{
    int64_t duration = clock_ms() - flow->created;
    struct ofp_flow_removed *removed;
    struct message message;

    if (!flow->send_flow_removed) {
        return;
    }
    removed = message_start(&message, OFPT_FLOW_REMOVED, 0, sizeof *removed);
    match_to_wire(&flow->match, &removed->match);
    removed->cookie = htobe64(flow->cookie);
    removed->priority = htons(flow->priority);
    removed->reason = (uint8_t) reason;
    removed->duration_sec = htonl((uint32_t) (duration / 1000));
    removed->duration_nsec = htonl((uint32_t) (duration % 1000) * 1000000);
    removed->idle_timeout = htons(flow->idle_timeout);
    removed->packet_count = htobe64(flow->packet_count);
    removed->byte_count = htobe64(flow->byte_count);
    broadcast(datapath, &message);
}

void async_port_status(struct datapath *datapath, const struct port *port,
                       enum ofp_port_reason reason)
{
    struct ofp_port_status *status;
    struct message message;

    status = message_start(&message, OFPT_PORT_STATUS, 0, sizeof *status);
    status->reason = (uint8_t) reason;
    port_describe(port, &status->desc);
    broadcast(datapath, &message);
}
