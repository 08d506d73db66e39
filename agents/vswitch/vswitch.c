/* The switch: creation, destruction, and the expiry of flows. */
#include "vswitch.h"

#include <inttypes.h>
#include <stdio.h>

#include "async.h"
#include "connection.h"
#include "util.h"

/* Timeouts are whole seconds, and so is the precision with which they are kept. */
#define EXPIRY_PERIOD_MSEC 1000

static void expire_flows(struct timer *timer)
{
    struct vswitch *sw = CONTAINER_OF(timer, struct vswitch, expiry_timer);
    uint64_t now = time_msec();

    LIST_FOR_EACH_SAFE (link, &sw->flows.timed) {
        struct flow *flow = flow_in_timed(link);
        enum ofp_flow_removed_reason reason;

        if (flow_has_expired(flow, now, &reason)) {
            vswitch_remove_flow(sw, flow, reason);
        }
    }
    if (list_is_empty(&sw->flows.timed)) {
        timer_stop(timer);
    }
}

void vswitch_schedule_expiry(struct vswitch *sw)
{
    if (!sw->expiry_timer.running && !list_is_empty(&sw->flows.timed)) {
        timer_start_periodic(&sw->expiry_timer, EXPIRY_PERIOD_MSEC);
    }
}

void vswitch_remove_flow(struct vswitch *sw, struct flow *flow, enum ofp_flow_removed_reason reason)
{
    if (flow->flags & OFPFF_SEND_FLOW_REM) {
        async_flow_removed(sw, flow, reason);
    }
    flow_table_remove(&sw->flows, flow);
}

void vswitch_init(struct vswitch *sw, uint64_t datapath_id, uint16_t max_port)
{
    loop_init(&sw->loop);
    sw->datapath_id = datapath_id;
    snprintf(sw->description, sizeof sw->description, "vswitch %016" PRIx64, datapath_id);
    sw->max_port = max_port;
    sw->fragment_mode = OFPC_FRAG_NORMAL;
    port_table_init(&sw->ports);
    port_table_add(&sw->ports, sw, OFPP_LOCAL, "local");
    flow_table_init(&sw->flows);
    packet_buffers_init(&sw->buffers);
    mac_table_init(&sw->macs);
    timer_open(&sw->loop, &sw->expiry_timer, expire_flows);
    link_monitor_init(&sw->links);
    list_init(&sw->connections);
    sw->n_connections = 0;
}

void vswitch_destroy(struct vswitch *sw)
{
    connections_close_all(sw);
    link_monitor_stop(&sw->links, &sw->loop);
    timer_close(&sw->loop, &sw->expiry_timer);
    mac_table_destroy(&sw->macs);
    packet_buffers_destroy(&sw->buffers);
    flow_table_destroy(&sw->flows);
    port_table_destroy(&sw->ports, &sw->loop);
    loop_destroy(&sw->loop);
}
