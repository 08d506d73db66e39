/* The packet path: from a port through the flow table to other ports. */
#ifndef DATAPATH_H
#define DATAPATH_H

#include <stdint.h>

#include "action.h"
#include "packet.h"

struct flow;
struct port;
struct vswitch;

/* A frame arrived on a port. The packet may be changed. */
void datapath_receive(struct vswitch *sw, struct port *port, struct packet *packet);

/* Actions of a controller's packet_out. The packet may be changed. */
void datapath_execute(struct vswitch *sw, struct packet *packet, uint16_t in_port,
                      const struct action_list *actions);

/* Lets a flow handle a packet, whether or not it matches: a buffered packet of its flow_mod. */
void datapath_apply_flow(struct vswitch *sw, struct flow *flow, struct packet *packet,
                         uint16_t in_port);

#endif
