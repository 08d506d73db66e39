/* Packets kept in the switch while the controller decides about them. */
#ifndef PACKET_BUFFER_H
#define PACKET_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "hmap.h"
#include "list.h"
#include "packet.h"

#define PACKET_BUFFERS_MAX 256

struct packet_buffers {
    struct hmap by_id;
    struct list by_age; /* The oldest first. */
    uint32_t next_id;
};

void packet_buffers_init(struct packet_buffers *buffers);
void packet_buffers_destroy(struct packet_buffers *buffers);

/* Keeps a copy and returns its identifier, or OFP_NO_BUFFER if there is no room. */
uint32_t packet_buffers_save(struct packet_buffers *buffers, const struct packet *packet,
                             uint16_t in_port);
/* Hands the packet over to the caller, once; false if the identifier is not known (any more). */
bool packet_buffers_take(struct packet_buffers *buffers, uint32_t id, struct packet *packet,
                         uint16_t *in_port);

#endif
