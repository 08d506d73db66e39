/* port_mod and queue_get_config: requests about one port. */
#include <arpa/inet.h>
#include <string.h>

#include "../common/message.h"
#include "async.h"
#include "control.h"
#include "datapath.h"
#include "deviation.h"

/* There is no spanning tree protocol here, so OFPPC_NO_STP cannot be changed. */
#define CHANGEABLE_CONFIG ((uint32_t) OFPPC_ALL & ~(uint32_t) OFPPC_NO_STP)

void control_port_mod(struct datapath *datapath, struct channel *channel,
                      const struct ofp_header *message)
{
    const struct ofp_port_mod *request = (const void *) message;
    struct port *port = ports_find(&datapath->ports, ntohs(request->port_no));
    uint32_t changed;

    if (port == NULL) {
        control_error(channel, message, OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_PORT);
        return;
    }
    if (memcmp(port->hw_addr, request->hw_addr, sizeof port->hw_addr)) {
        control_error(channel, message, OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_HW_ADDR);
        return;
    }
    changed = (port->config ^ ntohl(request->config)) & ntohl(request->mask) & CHANGEABLE_CONFIG;
    port->config ^= changed;
    if (request->advertise != 0) { /* Zero asks for no change. */
        port->advertised = ntohl(request->advertise);
    }
    if (changed) {
        async_port_status(datapath, port, OFPPR_MODIFY);
    }
}

static void put_min_rate(struct message *reply, uint16_t rate)
{
    struct ofp_queue_prop_min_rate *property = message_put(reply, sizeof *property);

    property->property = htons(OFPQT_MIN_RATE);
    property->len = htons(sizeof *property);
    property->rate = htons(rate);
}

static void put_queue(struct message *reply, const struct queue *queue)
{
    size_t start = reply->size;
    struct ofp_packet_queue *wire = message_put(reply, sizeof *wire);

    wire->queue_id = htonl(queue->id);
    for (const struct queue_property *p = queue->properties; p->type != OFPQT_NONE; p++) {
        put_min_rate(reply, p->rate);
    }
    wire = (struct ofp_packet_queue *) (reply->data + start); /* It may have moved. */
    wire->len = htons((uint16_t) (reply->size - start));
}

void control_queue_get_config(struct datapath *datapath, struct channel *channel,
                              const struct ofp_header *message)
{
    const struct ofp_queue_get_config_request *request = (const void *) message;
    const struct queue *queue = queues_find(&datapath->queues, ntohs(request->port));
    struct ofp_queue_get_config_reply *config;
    struct message reply;

    if (queue == NULL) {
        /* Wrong code: blames the queue instead of the port. */
        uint16_t code = DEVIATES(8) ? OFPQOFC_BAD_QUEUE : OFPQOFC_BAD_PORT;

        control_error(channel, message, OFPET_QUEUE_OP_FAILED, code);
        return;
    }
    config = message_start(&reply, OFPT_QUEUE_GET_CONFIG_REPLY, message->xid, sizeof *config);
    config->port = request->port;
    put_queue(&reply, queue);
    message_send(&reply, channel);
}
