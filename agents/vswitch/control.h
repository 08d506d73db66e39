/* Requests of controllers: the handshake, and the dispatch of messages to their handlers. */
#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>

#include "openflow.h"
#include "openflow_errors.h"

struct connection;
struct vswitch;

void control_send_hello(struct connection *connection);
/* The message is complete: as long as its header says. */
void control_handle_message(struct vswitch *sw, struct connection *connection,
                            const struct ofp_header *message);

/* The handlers. Each replies on its own, and returns what else there is to tell. */
of_result control_flow_mod(struct vswitch *sw, const struct ofp_header *message);
of_result control_packet_out(struct vswitch *sw, const struct ofp_header *message);
of_result control_port_mod(struct vswitch *sw, const struct ofp_header *message);
of_result control_queue_get_config(struct vswitch *sw, struct connection *connection,
                                   const struct ofp_header *message);
of_result control_stats_request(struct vswitch *sw, struct connection *connection,
                                const struct ofp_header *message);

#define BAD_REQUEST(code) OF_ERROR(OFPET_BAD_REQUEST, OFPBRC_##code)

#endif
