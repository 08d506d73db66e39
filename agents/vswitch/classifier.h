/* Tuple-space classifier: rules that share a mask share a hash table keyed by the masked fields. */
#ifndef CLASSIFIER_H
#define CLASSIFIER_H

#include <stdint.h>

#include "hmap.h"
#include "list.h"
#include "match.h"

struct subtable;

struct rule {
    struct subtable *subtable; /* Where it is, once inserted. */
    struct hmap_node node;     /* In the subtable. */
    struct match match;
    uint32_t rank; /* The higher rank wins; wider than a priority, see flow_table.h. */
};

struct classifier {
    struct list subtables; /* By descending max_rank. */
};

void classifier_init(struct classifier *classifier);
void classifier_destroy(struct classifier *classifier); /* It must be empty. */
void classifier_insert(struct classifier *classifier, struct rule *rule);
void classifier_remove(struct rule *rule);

/* The rule of highest rank that matches the packet's key, or NULL. */
struct rule *classifier_lookup(const struct classifier *classifier, const struct flow_key *key);
/* The rule with exactly that match and rank, or NULL. */
struct rule *classifier_find(const struct classifier *classifier, const struct match *match,
                             uint32_t rank);

#endif
