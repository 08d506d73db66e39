/* Packets kept in the switch while the controller decides about them. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include <stdint.h>

#include "packet.h"

#define BUFFER_BITS 8
#define N_BUFFERS (1u << BUFFER_BITS)

/* A buffer's id is its index and, in the upper bits, a cookie that changes with each use: an id
 * that was used up does not fetch a later packet. */
struct buffer {
    struct packet *packet;      /* NULL if the buffer is free. */
    uint32_t cookie;
    uint16_t in_port;
    int64_t saved;              /* ms of the monotonic clock. */
};

struct buffers {
    struct buffer buffers[N_BUFFERS];
    uint32_t last;              /* The buffer used last. */
};

/* Keeps a copy and returns its id, or OFP_NO_BUFFER if the next buffer is still needed. */
uint32_t buffers_save(struct buffers *buffers, const struct packet *packet, uint16_t in_port,
                      int64_t now);

/* Hands the packet over to the caller, once, with the port it came in at; NULL if there is none. */
struct packet *buffers_take(struct buffers *buffers, uint32_t id, uint16_t *in_port);

void buffers_clear(struct buffers *buffers);

#endif
