/* Sending a packet out of ports. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdint.h>

struct packet;
struct vswitch;

/* Nothing happens if there is no such port. */
void output_to_port(struct vswitch *sw, const struct packet *packet, uint16_t port);
void output_to_queue(struct vswitch *sw, const struct packet *packet, uint16_t port);
/* All ports but the one it came from and those with one of the configuration bits. */
void output_to_all(struct vswitch *sw, const struct packet *packet, uint16_t in_port,
                   uint32_t except);

#endif
