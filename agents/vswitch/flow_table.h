/* The flow table: rules with actions, counters and timeouts. */
#ifndef FLOW_TABLE_H
#define FLOW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "action.h"
#include "classifier.h"
#include "list.h"
#include "util.h"

#define FLOW_TABLE_MAX 65536
/* An entry without wildcards outranks every priority (OpenFlow 1.0, section 3.4). */
#define RANK_EXACT (UINT16_MAX + 1u)

struct flow {
    struct rule rule;
    struct list in_table; /* In order of insertion. */
    struct list timed;    /* Linked only if the flow has a timeout. */
    struct action_list actions;
    uint64_t cookie;
    uint16_t idle_timeout; /* Seconds; zero means never. */
    uint16_t hard_timeout;
    uint16_t flags; /* OFPFF_* */
    uint64_t created; /* Milliseconds, as time_msec(). */
    uint64_t used;
    uint64_t packets;
    uint64_t bytes;
};

struct flow_table {
    struct classifier classifier;
    struct list flows;
    struct list timed;
    uint32_t count;
    uint64_t lookups;
    uint64_t matched;
};

void flow_table_init(struct flow_table *table);
void flow_table_destroy(struct flow_table *table);

/* The flow that handles a packet with that key, or NULL; counts the lookup. */
struct flow *flow_table_lookup(struct flow_table *table, const struct flow_key *key);
struct flow *flow_table_find(const struct flow_table *table, const struct match *match,
                             uint32_t rank);
bool flow_table_overlaps(const struct flow_table *table, const struct match *match, uint32_t rank);

struct flow *flow_create(const struct match *match, uint32_t rank);
/* Takes the flow, and replaces one of the same match and rank. False if the table is full; the
 * flow is still the caller's then. */
bool flow_table_insert(struct flow_table *table, struct flow *flow);
void flow_table_remove(struct flow_table *table, struct flow *flow); /* Frees it. */
void flow_destroy(struct flow *flow); /* One that is in no table. */

void flow_credit(struct flow *flow, size_t bytes);
/* The priority that a controller sees. */
uint16_t flow_priority(const struct flow *flow);
/* Whether a timeout has passed, and then which. */
bool flow_has_expired(const struct flow *flow, uint64_t now, enum ofp_flow_removed_reason *reason);

static inline struct flow *flow_in_table(struct list *link)
{
    return CONTAINER_OF(link, struct flow, in_table);
}

static inline struct flow *flow_in_timed(struct list *link)
{
    return CONTAINER_OF(link, struct flow, timed);
}

#endif
