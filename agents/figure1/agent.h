/* The two agents of the paper's Figure 1: switches without a flow table, that hand every packet to
 * the controller and send what a packet_out says.  They differ in one port (packet_out.c). */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/netdev.h"
#include "../common/remotes.h"

#define N_PORTS 25 /* The ports are 1 to 24. */

struct agent {
    uint64_t dpid;
    struct netdev *ports[N_PORTS];      /* By number; NULL where there is none. */
    struct remotes remotes;
};

extern const struct remote_handler control_handler;

/* Gets a message that is at least as long as its fixed part. */
void handle_packet_out(struct agent *agent, struct channel *channel,
                       const struct ofp_header *message);

/* Shows a whole packet to the controllers. */
void send_packet_in(struct agent *agent, const uint8_t *packet, size_t size, uint16_t in_port,
                    enum ofp_packet_in_reason reason);

#endif
