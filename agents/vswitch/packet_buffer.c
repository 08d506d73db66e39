/* Packets kept while the controller decides about them. */
#include "packet_buffer.h"

#include <stdlib.h>

#include "hash.h"
#include "openflow.h"
#include "util.h"

/* A controller gets this long to use a buffer before a newer packet may take its place. */
#define KEEP_MSEC 5000

struct buffered {
    struct hmap_node node;
    struct list by_age;
    uint32_t id;
    uint16_t in_port;
    uint64_t saved;
    struct packet packet;
};

static uint32_t hash_id(uint32_t id) { return hash_bytes(&id, sizeof id, 0); }

void packet_buffers_init(struct packet_buffers *buffers)
{
    hmap_init(&buffers->by_id);
    list_init(&buffers->by_age);
    buffers->next_id = 1;
}

static void forget(struct packet_buffers *buffers, struct buffered *buffered)
{
    hmap_remove(&buffers->by_id, &buffered->node);
    list_remove(&buffered->by_age);
    free(buffered);
}

static struct buffered *oldest(const struct packet_buffers *buffers)
{
    return CONTAINER_OF(buffers->by_age.next, struct buffered, by_age);
}

static void drop_oldest(struct packet_buffers *buffers)
{
    struct buffered *buffered = oldest(buffers);

    packet_free(&buffered->packet);
    forget(buffers, buffered);
}

void packet_buffers_destroy(struct packet_buffers *buffers)
{
    while (!list_is_empty(&buffers->by_age)) {
        drop_oldest(buffers);
    }
    hmap_destroy(&buffers->by_id);
}

static bool make_room(struct packet_buffers *buffers, uint64_t now)
{
    if (buffers->by_id.count < PACKET_BUFFERS_MAX) {
        return true;
    }
    if (now < oldest(buffers)->saved + KEEP_MSEC) {
        return false;
    }
    drop_oldest(buffers);
    return true;
}

static uint32_t allocate_id(struct packet_buffers *buffers)
{
    uint32_t id = buffers->next_id++;

    if (buffers->next_id == OFP_NO_BUFFER) {
        buffers->next_id = 1;
    }
    return id;
}

uint32_t packet_buffers_save(struct packet_buffers *buffers, const struct packet *packet,
                             uint16_t in_port)
{
    uint64_t now = time_msec();
    struct buffered *buffered;

    if (!make_room(buffers, now)) {
        return OFP_NO_BUFFER;
    }
    buffered = xmalloc(sizeof *buffered);
    buffered->id = allocate_id(buffers);
    buffered->in_port = in_port;
    buffered->saved = now;
    packet_copy(&buffered->packet, packet->data, packet->len);
    hmap_insert(&buffers->by_id, &buffered->node, hash_id(buffered->id));
    list_insert_before(&buffers->by_age, &buffered->by_age);
    return buffered->id;
}

bool packet_buffers_take(struct packet_buffers *buffers, uint32_t id, struct packet *packet,
                         uint16_t *in_port)
{
    for (struct hmap_node *node = hmap_first(&buffers->by_id, hash_id(id)); node != NULL;
         node = hmap_next(node)) {
        struct buffered *buffered = CONTAINER_OF(node, struct buffered, node);

        if (buffered->id == id) {
            *packet = buffered->packet;
            *in_port = buffered->in_port;
            forget(buffers, buffered);
            return true;
        }
    }
    return false;
}
