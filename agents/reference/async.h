/* Messages that the switch sends on its own account, to every controller. */
#ifndef ASYNC_H
#define ASYNC_H

#include <stdint.h>

#include "datapath.h"

/* Keeps 'packet' in a buffer and shows at most 'max_len' bytes of it to the controllers; if there is
 * no buffer, all of it. */
void async_packet_in(struct datapath *datapath, const struct packet *packet, uint16_t in_port,
                     enum ofp_packet_in_reason reason, uint16_t max_len);

/* A flow_removed_callback: says nothing if the flow did not ask for it. */
void async_flow_removed(void *datapath, const struct flow *flow,
                        enum ofp_flow_removed_reason reason);

void async_port_status(struct datapath *datapath, const struct port *port,
                       enum ofp_port_reason reason);

#endif
