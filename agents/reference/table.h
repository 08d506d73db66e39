/* A linear flow table: rules in the order in which they are tried. */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow.h"

#define TABLE_MAX_FLOWS 1024

struct flow {
    struct match match;
    uint16_t priority;
    bool send_flow_removed;
    uint64_t cookie;
    uint16_t idle_timeout;      /* Seconds; 0 for none. */
    uint16_t hard_timeout;
    int64_t created;            /* ms of the monotonic clock. */
    int64_t used;
    uint64_t packet_count;
    uint64_t byte_count;
    size_t actions_length;
    uint8_t *actions;           /* As on the wire, validated. */
};

struct flow_table {
    struct flow **flows;
    size_t n_flows;
    size_t capacity;
    uint64_t lookup_count;
    uint64_t matched_count;
};

/* Which flows a request is about. */
struct flow_selection {
    struct match match;
    bool strict;                /* Only the flow with this very match and 'priority'. */
    uint16_t priority;
    uint16_t out_port;          /* Only flows that output there; OFPP_NONE for all. */
};

struct flow *flow_new(const struct ofp_flow_mod *request, size_t actions_length, int64_t now);
void flow_free(struct flow *flow);
void flow_set_actions(struct flow *flow, const uint8_t *actions, size_t length);
bool flow_is_selected(const struct flow *flow, const struct flow_selection *selection);

void table_clear(struct flow_table *table);

/* The flow for a packet, or NULL.  Counts the lookup. */
struct flow *table_lookup(struct flow_table *table, const struct flow_key *key);

/* Adds 'flow', replacing one with the same match and priority.  Takes ownership if it returns true;
 * returns false if the table is full. */
bool table_insert(struct flow_table *table, struct flow *flow);

/* Whether a flow of the same priority could match the same packet as 'flow'. */
bool table_has_overlap(const struct flow_table *table, const struct flow *flow);

/* Called with a flow that has just been taken out of the table. */
typedef void (*flow_removed_callback)(void *aux, const struct flow *flow,
                                      enum ofp_flow_removed_reason reason);

void table_delete(struct flow_table *table, const struct flow_selection *selection,
                  flow_removed_callback removed, void *aux);
void table_expire(struct flow_table *table, int64_t now, flow_removed_callback removed, void *aux);

/* When the next flow may expire, in ms of the monotonic clock, or INT64_MAX. */
int64_t table_next_expiry(const struct flow_table *table);

#endif
