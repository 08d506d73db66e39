#include "datapath.h"

#include <string.h>

#include "../common/util.h"
#include "actions.h"
#include "async.h"
#include "control.h"

/* Frames taken from one port before others get their turn. */
#define RECEIVE_BATCH 32
#define MAX_FRAME 65536

void datapath_open(struct datapath *datapath, const struct options *options)
{
    memset(datapath, 0, sizeof *datapath);
    datapath->dpid = options->dpid;
    datapath->fragment_mode = OFPC_FRAG_NORMAL;
    datapath->miss_send_len = OFP_DEFAULT_MISS_SEND_LEN;
    ports_open(&datapath->ports, options);
    for (int i = 0; i < datapath->ports.n_ports; i++) {
        queues_add(&datapath->queues, datapath->ports.ports[i].number);
    }
    remotes_open(&datapath->remotes, &options->endpoint, &control_handler, datapath);
    datapath_enter_emergency(datapath);
}

void datapath_close(struct datapath *datapath)
{
    remotes_close(&datapath->remotes);
    ports_close(&datapath->ports);
    buffers_clear(&datapath->buffers);
    table_clear(&datapath->table);
    table_clear(&datapath->emergency);
}

void datapath_leave_emergency(struct datapath *datapath)
{
    datapath->in_emergency = false;
}

/* Those who connect to a listening switch come and go: it has no controller of its own to lose. */
void datapath_enter_emergency(struct datapath *datapath)
{
    if (!datapath->remotes.endpoint->listen) {
        datapath->in_emergency = true;
        table_clear(&datapath->table);
    }
}

static struct flow *lookup(struct datapath *datapath, const struct flow_key *key)
{
    return table_lookup(datapath->in_emergency ? &datapath->emergency : &datapath->table, key);
}

void datapath_apply_flow(struct datapath *datapath, struct flow *flow, struct packet *packet,
                         struct flow_key *key)
{
    flow->used = clock_ms();
    flow->packet_count++;
    flow->byte_count += packet->size;
    actions_execute(datapath, packet, key, flow->actions, flow->actions_length);
}

static bool is_runt(const struct packet *packet)
{
    return packet->size < sizeof(struct eth_header);
}

static void output_to_port(struct datapath *datapath, const struct packet *packet, uint16_t number)
{
    struct port *port = ports_find(&datapath->ports, number);

    if (port != NULL && !is_runt(packet)) {
        port_send(port, packet);
    }
}

/* To every port but the one that it came from and those with a bit of 'unless' configured. */
static void output_to_all(struct datapath *datapath, const struct packet *packet, uint16_t in_port,
                          uint32_t unless)
{
    for (int i = 0; i < datapath->ports.n_ports; i++) {
        const struct port *port = &datapath->ports.ports[i];

        if (port->number != in_port && !(port->config & unless)) {
            output_to_port(datapath, packet, port->number);
        }
    }
}

/* Looks the packet up as it is now.  What the flow changes is not to be seen by the actions after
 * this one, so the flow gets a copy. */
static void output_to_table(struct datapath *datapath, const struct packet *packet,
                            uint16_t in_port)
{
    struct packet *copy;
    struct flow_key key;
    struct flow *flow;

    if (is_runt(packet)) {
        return;
    }
    copy = packet_new(PACKET_HEADROOM, packet->size);
    memcpy(copy->data, packet->data, packet->size);
    flow_extract(copy, in_port, &key);
    flow = lookup(datapath, &key);
    if (flow != NULL) {
        datapath_apply_flow(datapath, flow, copy, &key);
    } else {
        async_packet_in(datapath, copy, in_port, OFPR_NO_MATCH, datapath->miss_send_len);
    }
    packet_free(copy);
}

void datapath_output(struct datapath *datapath, struct packet *packet, uint16_t in_port,
                     uint16_t port, uint16_t max_len)
{
    switch (port) {
    case OFPP_IN_PORT:
        output_to_port(datapath, packet, in_port);
        break;
    case OFPP_TABLE: /* Only in a packet_out. */
        output_to_table(datapath, packet, in_port);
        break;
    case OFPP_FLOOD:
        output_to_all(datapath, packet, in_port, OFPPC_NO_FLOOD);
        break;
    case OFPP_ALL:
        output_to_all(datapath, packet, in_port, 0);
        break;
    case OFPP_CONTROLLER:
        async_packet_in(datapath, packet, in_port, OFPR_ACTION, max_len);
        break;
    default: /* OFPP_NORMAL is among them: there is no other way of forwarding here. */
        if (port != in_port) {
            output_to_port(datapath, packet, port);
        }
        break;
    }
}

void datapath_enqueue(struct datapath *datapath, struct packet *packet, uint16_t in_port,
                      uint16_t port_number, uint32_t queue_id)
{
    uint16_t number = port_number == OFPP_IN_PORT ? in_port : port_number;
    struct port *port = ports_find(&datapath->ports, number);
    struct queue *queue;

    if (port == NULL || port_number == in_port || is_runt(packet)) {
        return;
    }
    queue = queues_find(&datapath->queues, number);
    if (queue == NULL || queue->id != queue_id) {
        return;
    }
    if (port_send(port, packet)) {
        queue->tx_packets++;
        queue->tx_bytes += packet->size;
    } else {
        queue->tx_errors++;
    }
}

/* Spanning tree frames are governed by a configuration bit of their own. */
static bool may_receive(const struct port *port, const struct packet *packet)
{
    static const uint8_t spanning_tree[ETH_ADDRESS_LENGTH] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x00};
    const struct eth_header *eth = (const void *) packet->data;

    if (port->config == 0) {
        return true;
    }
    if (port->config & OFPPC_PORT_DOWN) {
        return false;
    }
    if (!memcmp(eth->dst, spanning_tree, sizeof spanning_tree)) {
        return !(port->config & OFPPC_NO_RECV_STP);
    }
    return !(port->config & OFPPC_NO_RECV);
}

static void receive_packet(struct datapath *datapath, struct port *port, struct packet *packet)
{
    struct flow_key key;
    struct flow *flow;
    bool fragment;

    if (is_runt(packet)) {
        port->rx_errors++;
        return;
    }
    if (!may_receive(port, packet)) {
        port->rx_dropped++;
        return;
    }
    port->rx_packets++;
    port->rx_bytes += packet->size;
    fragment = flow_extract(packet, port->number, &key);
    if (fragment && datapath->fragment_mode == OFPC_FRAG_DROP) {
        return;
    }
    flow = lookup(datapath, &key);
    if (flow != NULL) {
        datapath_apply_flow(datapath, flow, packet, &key);
    } else if (!(port->config & OFPPC_NO_PACKET_IN)) {
        async_packet_in(datapath, packet, port->number, OFPR_NO_MATCH, datapath->miss_send_len);
    }
}

void datapath_receive(struct datapath *datapath, struct port *port)
{
    static uint8_t frame[MAX_FRAME];

    for (int i = 0; i < RECEIVE_BATCH; i++) {
        ssize_t length = netdev_receive(port->netdev, frame, sizeof frame);
        struct packet *packet;

        if (length < 0) {
            break;
        }
        packet = packet_new(PACKET_HEADROOM, (size_t) length);
        memcpy(packet->data, frame, (size_t) length);
        receive_packet(datapath, port, packet);
        packet_free(packet);
    }
}
