/* The packet path. */
#include "datapath.h"

#include <string.h>

#include "async.h"
#include "headers.h"
#include "normal.h"
#include "output.h"
#include "util.h"
#include "vswitch.h"

/* How often OFPP_TABLE may lead from one flow's actions to another's: a flow that outputs to the
 * table would otherwise find itself for ever. */
#define MAX_TABLE_DEPTH 1

struct execution {
    struct vswitch *sw;
    struct packet *packet;
    uint16_t in_port;
    int table_depth;
};

static void execute(struct execution *execution, const struct action_list *actions);

/* Looks the packet up as it is now; a miss is reported like that of a packet that just came in. */
static void output_to_table(struct execution *execution)
{
    struct execution nested = *execution;
    struct packet copy;
    struct flow_key key;
    struct flow *flow;

    if (execution->table_depth >= MAX_TABLE_DEPTH) {
        return;
    }
    flow_key_extract(&key, execution->packet, execution->in_port);
    flow = flow_table_lookup(&execution->sw->flows, &key);
    if (flow == NULL) {
        async_packet_in_miss(execution->sw, execution->packet, execution->in_port);
        return;
    }
    flow_credit(flow, execution->packet->len);
    /* A copy, because what the flow changes is not to be seen by the actions after this one. */
    packet_copy(&copy, execution->packet->data, execution->packet->len);
    nested.packet = &copy;
    nested.table_depth++;
    execute(&nested, &flow->actions);
    packet_free(&copy);
}

static void execute_output(struct execution *execution, uint16_t port, uint16_t max_len)
{
    struct vswitch *sw = execution->sw;
    uint16_t in_port = execution->in_port;

    switch (port) {
    case OFPP_IN_PORT:
        output_to_port(sw, execution->packet, in_port);
        break;
    case OFPP_TABLE:
        output_to_table(execution);
        break;
    case OFPP_NORMAL:
        normal_forward(sw, execution->packet, in_port);
        break;
    case OFPP_FLOOD:
        output_to_all(sw, execution->packet, in_port, OFPPC_NO_FLOOD);
        break;
    case OFPP_ALL:
        output_to_all(sw, execution->packet, in_port, 0);
        break;
    case OFPP_CONTROLLER:
        async_packet_in_action(sw, execution->packet, in_port, max_len);
        break;
    default:
        /* Only OFPP_IN_PORT sends a packet back where it came from. */
        if (port != in_port) {
            output_to_port(sw, execution->packet, port);
        }
        break;
    }
}

static void execute_enqueue(struct execution *execution, uint16_t port)
{
    if (port == OFPP_IN_PORT) {
        output_to_queue(execution->sw, execution->packet, execution->in_port);
    } else if (port != execution->in_port) {
        output_to_queue(execution->sw, execution->packet, port);
    }
}

static void execute_one(struct execution *execution, const struct action *action)
{
    struct packet *packet = execution->packet;

    switch (action->type) {
    case OFPAT_OUTPUT:
        execute_output(execution, action->output.port, action->output.max_len);
        break;
    case OFPAT_ENQUEUE:
        execute_enqueue(execution, action->enqueue.port);
        break;
    case OFPAT_SET_VLAN_VID:
        packet_set_vlan_vid(packet, action->vlan_vid);
        break;
    case OFPAT_SET_VLAN_PCP:
        packet_set_vlan_pcp(packet, action->vlan_pcp);
        break;
    case OFPAT_STRIP_VLAN:
        packet_strip_vlan(packet);
        break;
    case OFPAT_SET_DL_SRC:
        packet_set_dl_src(packet, action->dl_addr);
        break;
    case OFPAT_SET_DL_DST:
        packet_set_dl_dst(packet, action->dl_addr);
        break;
    case OFPAT_SET_NW_SRC:
        packet_set_nw_src(packet, action->nw_addr);
        break;
    case OFPAT_SET_NW_DST:
        packet_set_nw_dst(packet, action->nw_addr);
        break;
    case OFPAT_SET_NW_TOS:
        packet_set_nw_tos(packet, action->nw_tos);
        break;
    case OFPAT_SET_TP_SRC:
        packet_set_tp_src(packet, action->tp_port);
        break;
    case OFPAT_SET_TP_DST:
        packet_set_tp_dst(packet, action->tp_port);
        break;
    case OFPAT_VENDOR:
        break; /* Never decoded. */
    }
}

static void execute(struct execution *execution, const struct action_list *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        execute_one(execution, &actions->actions[i]);
    }
}

void datapath_execute(struct vswitch *sw, struct packet *packet, uint16_t in_port,
                      const struct action_list *actions)
{
    struct execution execution = {sw, packet, in_port, 0};

    if (packet->len < ETH_HEADER_LEN) {
        LOG("not sending a frame of %zu bytes: too short", packet->len);
        return;
    }
    execute(&execution, actions);
}

void datapath_apply_flow(struct vswitch *sw, struct flow *flow, struct packet *packet,
                         uint16_t in_port)
{
    flow_credit(flow, packet->len);
    datapath_execute(sw, packet, in_port, &flow->actions);
}

/* Spanning tree frames are governed by a configuration bit of their own. */
static bool receiving_is_disabled(const struct port *port, const struct packet *packet)
{
    static const uint8_t spanning_tree[ETH_ADDR_LEN] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x00};
    bool stp = memcmp(packet->data + ETH_DST, spanning_tree, sizeof spanning_tree) == 0;

    return (port->config & OFPPC_PORT_DOWN) ||
           (port->config & (stp ? OFPPC_NO_RECV_STP : OFPPC_NO_RECV));
}

void datapath_receive(struct vswitch *sw, struct port *port, struct packet *packet)
{
    struct flow_key key;
    struct flow *flow;
    bool fragment;

    if (packet->len < ETH_HEADER_LEN) {
        port->counters.rx_errors++;
        return;
    }
    if (port->config != 0 && receiving_is_disabled(port, packet)) {
        port->counters.rx_dropped++;
        return;
    }
    port->counters.rx_packets++;
    port->counters.rx_bytes += packet->len;
    fragment = flow_key_extract(&key, packet, port->number);
    if (fragment && sw->fragment_mode == OFPC_FRAG_DROP) {
        return;
    }
    flow = flow_table_lookup(&sw->flows, &key);
    if (flow != NULL) {
        datapath_apply_flow(sw, flow, packet, port->number);
    } else if (!(port->config & OFPPC_NO_PACKET_IN)) {
        async_packet_in_miss(sw, packet, port->number);
    }
}
