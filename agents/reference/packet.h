/* A packet on its way through the switch: bytes with room in front for headers to be added. */
#ifndef PACKET_H
#define PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "headers.h"

/* Room for a packet_in header or VLAN tags, and two bytes that align the IP header. */
#define PACKET_HEADROOM (128 + 2)

struct packet {
    uint8_t *base;              /* Start of the allocation. */
    size_t capacity;            /* Of the allocation. */
    uint8_t *data;              /* First byte of the packet. */
    size_t size;
    uint8_t *l3;                /* IPv4 header, or NULL; set by flow_extract. */
    uint8_t *l4;                /* TCP, UDP or ICMP header, or NULL; set by flow_extract. */
};

/* A packet of 'size' bytes, not set, after 'headroom' free ones. */
struct packet *packet_new(size_t headroom, size_t size);

/* A copy of 'size' bytes, with no room in front. */
struct packet *packet_from_bytes(const void *bytes, size_t size);

/* A copy, with as much room in front as the original. */
struct packet *packet_clone(const struct packet *packet);
void packet_free(struct packet *packet);

/* Adds 'size' bytes, not set, in front; there must be room.  Returns the new first byte. */
void *packet_push(struct packet *packet, size_t size);

/* Removes 'size' bytes in front. */
void packet_pull(struct packet *packet, size_t size);

#endif
