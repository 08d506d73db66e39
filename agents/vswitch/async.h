/* Messages that the switch sends on its own account, to every controller. */
#ifndef ASYNC_H
#define ASYNC_H

#include <stdint.h>

#include "openflow.h"

struct flow;
struct packet;
struct port;
struct vswitch;

void async_packet_in_miss(struct vswitch *sw, const struct packet *packet, uint16_t in_port);
/* At most max_len bytes of the packet, unless it could not be buffered. */
void async_packet_in_action(struct vswitch *sw, const struct packet *packet, uint16_t in_port,
                            uint16_t max_len);
void async_flow_removed(struct vswitch *sw, const struct flow *flow,
                        enum ofp_flow_removed_reason reason);
void async_port_status(struct vswitch *sw, const struct port *port, enum ofp_port_reason reason);

#endif
