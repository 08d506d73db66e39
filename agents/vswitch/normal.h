/* OFPP_NORMAL: what a switch without OpenFlow would do. */
#ifndef NORMAL_H
#define NORMAL_H

#include <stdint.h>

struct packet;
struct vswitch;

void normal_forward(struct vswitch *sw, const struct packet *packet, uint16_t in_port);

#endif
