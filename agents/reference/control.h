/* What the controller asks for: one handler a message, in control.c if it is short, and otherwise in
 * a file of its own. */
#ifndef CONTROL_H
#define CONTROL_H

#include "../common/channel.h"
#include "../common/remotes.h"

struct datapath;

extern const struct remote_handler control_handler;

/* Each gets a message that is at least as long as its fixed part. */
void control_packet_out(struct datapath *datapath, struct channel *channel,
                        const struct ofp_header *message);
void control_flow_mod(struct datapath *datapath, struct channel *channel,
                      const struct ofp_header *message);
void control_port_mod(struct datapath *datapath, struct channel *channel,
                      const struct ofp_header *message);
void control_stats_request(struct datapath *datapath, struct channel *channel,
                           const struct ofp_header *message);
void control_queue_get_config(struct datapath *datapath, struct channel *channel,
                              const struct ofp_header *message);

/* Tells the controller what is wrong with a message. */
void control_error(struct channel *channel, const struct ofp_header *message,
                   enum ofp_error_type type, uint16_t code);

#endif
