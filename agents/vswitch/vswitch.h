/* The switch: all of its state in one place. */
#ifndef VSWITCH_H
#define VSWITCH_H

#include <stdint.h>

#include "flow_table.h"
#include "link_monitor.h"
#include "list.h"
#include "loop.h"
#include "mac_table.h"
#include "packet_buffer.h"
#include "port.h"

struct vswitch {
    struct loop loop;
    uint64_t datapath_id;
    char description[32];      /* For people. */
    uint16_t max_port;         /* The highest number that a physical port can ever have. */
    uint16_t fragment_mode;    /* OFPC_FRAG_* */
    struct port_table ports;
    struct flow_table flows;
    struct packet_buffers buffers;
    struct mac_table macs;
    struct timer expiry_timer; /* Runs while some flow has a timeout. */
    struct link_monitor links;
    struct list connections;   /* To controllers. */
    unsigned int n_connections;
};

void vswitch_init(struct vswitch *sw, uint64_t datapath_id, uint16_t max_port);
void vswitch_destroy(struct vswitch *sw);

/* Starts to look for expired flows, if a flow was added that can expire. */
void vswitch_schedule_expiry(struct vswitch *sw);
/* Tells the controllers if the flow asked for it. */
void vswitch_remove_flow(struct vswitch *sw, struct flow *flow,
                         enum ofp_flow_removed_reason reason);

#endif
