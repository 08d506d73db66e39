/* An intrusive chained hash table. */
#include "hmap.h"

#include <stdlib.h>

#include "util.h"

#define INITIAL_BUCKETS 4u

static struct hmap_node **allocate_buckets(uint32_t n)
{
    return xcalloc(n, sizeof(struct hmap_node *));
}

void hmap_init(struct hmap *map)
{
    map->buckets = allocate_buckets(INITIAL_BUCKETS);
    map->mask = INITIAL_BUCKETS - 1;
    map->count = 0;
}

void hmap_destroy(struct hmap *map)
{
    free(map->buckets);
    map->buckets = NULL;
}

static void link_node(struct hmap *map, struct hmap_node *node)
{
    struct hmap_node **bucket = &map->buckets[node->hash & map->mask];

    node->next = *bucket;
    *bucket = node;
}

static void grow(struct hmap *map)
{
    struct hmap_node **old = map->buckets;
    uint32_t old_mask = map->mask;

    map->mask = old_mask * 2 + 1;
    map->buckets = allocate_buckets(map->mask + 1);
    for (uint32_t i = 0; i <= old_mask; i++) {
        struct hmap_node *next;

        for (struct hmap_node *node = old[i]; node != NULL; node = next) {
            next = node->next;
            link_node(map, node);
        }
    }
    free(old);
}

void hmap_insert(struct hmap *map, struct hmap_node *node, uint32_t hash)
{
    if (map->count > map->mask) {
        grow(map);
    }
    node->hash = hash;
    link_node(map, node);
    map->count++;
}

void hmap_remove(struct hmap *map, struct hmap_node *node)
{
    struct hmap_node **link = &map->buckets[node->hash & map->mask];

    while (*link != node) {
        link = &(*link)->next;
    }
    *link = node->next;
    map->count--;
}

static struct hmap_node *skip_to_hash(struct hmap_node *node, uint32_t hash)
{
    while (node != NULL && node->hash != hash) {
        node = node->next;
    }
    return node;
}

struct hmap_node *hmap_first(const struct hmap *map, uint32_t hash)
{
    return skip_to_hash(map->buckets[hash & map->mask], hash);
}

struct hmap_node *hmap_next(const struct hmap_node *node)
{
    return skip_to_hash(node->next, node->hash);
}
