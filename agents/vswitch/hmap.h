/* An intrusive chained hash table that starts small and doubles as it fills. */
#ifndef HMAP_H
#define HMAP_H

#include <stddef.h>
#include <stdint.h>

struct hmap_node {
    struct hmap_node *next;
    uint32_t hash;
};

struct hmap {
    struct hmap_node **buckets;
    uint32_t mask; /* Number of buckets, a power of two, less one. */
    size_t count;
};

void hmap_init(struct hmap *map);
void hmap_destroy(struct hmap *map); /* The nodes are the caller's. */
void hmap_insert(struct hmap *map, struct hmap_node *node, uint32_t hash);
void hmap_remove(struct hmap *map, struct hmap_node *node);

/* First and next node with that hash; the caller compares the keys. */
struct hmap_node *hmap_first(const struct hmap *map, uint32_t hash);
struct hmap_node *hmap_next(const struct hmap_node *node);

#endif
