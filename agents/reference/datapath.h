/* The switch itself: all of its state, and the way of a packet through it. */
#ifndef DATAPATH_H
#define DATAPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/options.h"
#include "../common/remotes.h"
#include "buffers.h"
#include "flow.h"
#include "packet.h"
#include "ports.h"
#include "queues.h"
#include "table.h"

struct datapath {
    uint64_t dpid;
    uint16_t fragment_mode;     /* OFPC_FRAG_* */
    uint16_t miss_send_len;
    bool in_emergency;          /* The emergency flows are in force instead of the others. */
    struct flow_table table;
    struct flow_table emergency;
    struct ports ports;
    struct queues queues;
    struct buffers buffers;
    struct remotes remotes;
};

void datapath_open(struct datapath *datapath, const struct options *options);
void datapath_close(struct datapath *datapath);

/* A controller has come, or the last one has gone. */
void datapath_leave_emergency(struct datapath *datapath);
void datapath_enter_emergency(struct datapath *datapath);

/* Takes the frames that wait at 'port', but not so many that others have to wait long. */
void datapath_receive(struct datapath *datapath, struct port *port);

/* Counts 'packet', whose fields are 'key', as one of 'flow' and carries out the flow's actions. */
void datapath_apply_flow(struct datapath *datapath, struct flow *flow, struct packet *packet,
                         struct flow_key *key);

/* Sends a packet that came in at 'in_port' to a port, physical or virtual.  'max_len' is how much of
 * it a controller gets. */
void datapath_output(struct datapath *datapath, struct packet *packet, uint16_t in_port,
                     uint16_t port, uint16_t max_len);
void datapath_enqueue(struct datapath *datapath, struct packet *packet, uint16_t in_port,
                      uint16_t port, uint32_t queue_id);

#endif
