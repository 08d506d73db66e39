#include "buffers.h"

#include <stddef.h>

#include "../common/openflow.h"

#define MAX_COOKIE (UINT32_MAX >> BUFFER_BITS)

/* A controller gets this long to use a buffer before a newer packet may take its place. */
#define KEEP_MS 5000

uint32_t buffers_save(struct buffers *buffers, const struct packet *packet, uint16_t in_port,
                      int64_t now)
{
    uint32_t index = (buffers->last + 1) % N_BUFFERS;
    struct buffer *buffer = &buffers->buffers[index];

    buffers->last = index;
    if (buffer->packet != NULL) {
        if (now < buffer->saved + KEEP_MS) {
            return OFP_NO_BUFFER;
        }
        packet_free(buffer->packet);
    }
    /* With the largest cookie, the last buffer's id would be OFP_NO_BUFFER. */
    if (++buffer->cookie == MAX_COOKIE) {
        buffer->cookie = 0;
    }
    buffer->packet = packet_clone(packet);
    buffer->in_port = in_port;
    buffer->saved = now;
    return buffer->cookie << BUFFER_BITS | index;
}

struct packet *buffers_take(struct buffers *buffers, uint32_t id, uint16_t *in_port)
{
    struct buffer *buffer = &buffers->buffers[id % N_BUFFERS];
    struct packet *packet = buffer->packet;

    if (packet == NULL || buffer->cookie != id >> BUFFER_BITS) {
        return NULL;
    }
    *in_port = buffer->in_port;
    buffer->packet = NULL;
    return packet;
}

void buffers_clear(struct buffers *buffers)
{
    for (uint32_t i = 0; i < N_BUFFERS; i++) {
        packet_free(buffers->buffers[i].packet);
        buffers->buffers[i].packet = NULL;
    }
}
