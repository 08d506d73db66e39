#include "packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../common/util.h"

struct packet *packet_new(size_t headroom, size_t size)
{
    struct packet *packet = xmalloc(sizeof *packet);

    packet->capacity = headroom + size;
    packet->base = xmalloc(packet->capacity);
    packet->data = packet->base + headroom;
    packet->size = size;
    packet->l3 = NULL;
    packet->l4 = NULL;
    return packet;
}

struct packet *packet_from_bytes(const void *bytes, size_t size)
{
    struct packet *packet = packet_new(0, size);

    memcpy(packet->data, bytes, size);
    return packet;
}

struct packet *packet_clone(const struct packet *packet)
{
    struct packet *clone = packet_new((size_t) (packet->data - packet->base), packet->size);

    memcpy(clone->data, packet->data, packet->size);
    return clone;
}

void packet_free(struct packet *packet)
{
    if (packet != NULL) {
        free(packet->base);
        free(packet);
    }
}

void *packet_push(struct packet *packet, size_t size)
{
    assert(size <= (size_t) (packet->data - packet->base));
    packet->data -= size;
    packet->size += size;
    return packet->data;
}

void packet_pull(struct packet *packet, size_t size)
{
    assert(size <= packet->size);
    packet->data += size;
    packet->size -= size;
}
