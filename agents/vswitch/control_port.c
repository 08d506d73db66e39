/* port_mod and queue_get_config: requests about one port. */
#include <arpa/inet.h>
#include <string.h>

#include "action.h"
#include "async.h"
#include "connection.h"
#include "control.h"
#include "message.h"
#include "vswitch.h"

/* There is no spanning tree protocol here, so OFPPC_NO_STP cannot be changed. */
#define CHANGEABLE_CONFIG                                                                    \
    (OFPPC_PORT_DOWN | OFPPC_NO_RECV | OFPPC_NO_RECV_STP | OFPPC_NO_FLOOD | OFPPC_NO_FWD | \
     OFPPC_NO_PACKET_IN)

of_result control_port_mod(struct vswitch *sw, const struct ofp_header *message)
{
    const struct ofp_port_mod *mod = (const void *) message;
    struct port *port;
    uint32_t changed;

    if (ntohs(message->length) != sizeof *mod) {
        return BAD_REQUEST(BAD_LEN);
    }
    port = port_table_find(&sw->ports, ntohs(mod->port_no));
    if (port == NULL) {
        return OF_ERROR(OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_PORT);
    }
    if (memcmp(port->hw_addr, mod->hw_addr, sizeof port->hw_addr) != 0) {
        return OF_ERROR(OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_HW_ADDR);
    }
    changed = (port->config ^ ntohl(mod->config)) & ntohl(mod->mask) & CHANGEABLE_CONFIG;
    port->config ^= changed;
    if (mod->advertise != 0) { /* Zero asks for no change. */
        port->advertised = ntohl(mod->advertise);
    }
    if (changed != 0) {
        async_port_status(sw, port, OFPPR_MODIFY);
    }
    return OF_OK;
}

of_result control_queue_get_config(struct vswitch *sw, struct connection *connection,
                                   const struct ofp_header *message)
{
    const struct ofp_queue_get_config_request *request = (const void *) message;
    struct ofp_queue_get_config_reply *config;
    struct ofp_packet_queue *queue;
    struct buf reply;

    if (ntohs(message->length) != sizeof *request) {
        return BAD_REQUEST(BAD_LEN);
    }
    if (port_table_find(&sw->ports, ntohs(request->port)) == NULL) {
        return OF_ERROR(OFPET_QUEUE_OP_FAILED, OFPQOFC_BAD_PORT);
    }
    buf_init(&reply);
    config = message_begin(&reply, OFPT_QUEUE_GET_CONFIG_REPLY, message->xid, sizeof *config);
    config->port = request->port;
    queue = buf_add(&reply, sizeof *queue);
    queue->queue_id = htonl(DEFAULT_QUEUE);
    queue->len = htons(sizeof *queue); /* No properties: it guarantees nothing. */
    message_finish(&reply);
    connection_send(connection, &reply);
    return OF_OK;
}
