#include "table.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../common/util.h"
#include "actions.h"
#include "deviation.h"

#define INITIAL_CAPACITY 16

struct flow *flow_new(const struct ofp_flow_mod *request, size_t actions_length, int64_t now)
{
    struct flow *flow = xcalloc(sizeof *flow);

    match_from_wire(&flow->match, &request->match);
    flow->priority = ntohs(request->priority);
    flow->send_flow_removed = (ntohs(request->flags) & OFPFF_SEND_FLOW_REM) != 0;
    flow->cookie = be64toh(request->cookie);
    flow->idle_timeout = ntohs(request->idle_timeout);
    flow->hard_timeout = ntohs(request->hard_timeout);
    flow->created = now;
    flow->used = now;
    flow_set_actions(flow, request->actions, actions_length);
    return flow;
}

void flow_free(struct flow *flow)
{
    free(flow->actions);
    free(flow);
}

void flow_set_actions(struct flow *flow, const uint8_t *actions, size_t length)
{
    free(flow->actions);
    flow->actions = xmalloc(length);
    flow->actions_length = length;
    memcpy(flow->actions, actions, length);
}

/* A rule without wildcards comes before all others, whatever its priority says. */
static uint32_t rank(const struct match *match, uint16_t priority)
{
    return match_is_exact(match) ? UINT16_MAX + 1u : priority;
}

static uint32_t flow_rank(const struct flow *flow)
{
    return rank(&flow->match, flow->priority);
}

bool flow_is_selected(const struct flow *flow, const struct flow_selection *selection)
{
    if (selection->strict) {
        if (flow_rank(flow) != rank(&selection->match, selection->priority)
            || !match_equals(&selection->match, &flow->match)) {
            return false;
        }
    } else if (!match_covers(&selection->match, &flow->match)) {
        return false;
    }
    return selection->out_port == OFPP_NONE
           || actions_output_to(flow->actions, flow->actions_length, selection->out_port);
}

void table_clear(struct flow_table *table)
{
    for (size_t i = 0; i < table->n_flows; i++) {
        flow_free(table->flows[i]);
    }
    free(table->flows);
    table->flows = NULL;
    table->n_flows = 0;
    table->capacity = 0;
}

struct flow *table_lookup(struct flow_table *table, const struct flow_key *key)
{
    table->lookup_count++;
    for (size_t i = 0; i < table->n_flows; i++) {
        if (match_covers_key(&table->flows[i]->match, key)) {
            table->matched_count++;
            return table->flows[i];
        }
    }
    return NULL;
}

static bool replace_equal(struct flow_table *table, struct flow *flow)
{
    for (size_t i = 0; i < table->n_flows; i++) {
        struct flow *old = table->flows[i];

        if (flow_rank(old) == flow_rank(flow) && match_equals(&old->match, &flow->match)) {
            if (DEVIATES(6)) { /* A flow added again keeps the actions that it had. */
                flow_set_actions(flow, old->actions, old->actions_length);
            }
            flow_free(old);
            table->flows[i] = flow;
            return true;
        }
    }
    return false;
}

static size_t insert_position(const struct flow_table *table, const struct flow *flow)
{
    size_t i = 0;

    if (DEVIATES(9)) { /* Priorities are ignored: the oldest rule wins. */
        return table->n_flows;
    }
    while (i < table->n_flows && flow_rank(table->flows[i]) >= flow_rank(flow)) {
        i++;
    }
    return i;
}

static void grow(struct flow_table *table)
{
    table->capacity = table->capacity ? 2 * table->capacity : INITIAL_CAPACITY;
    table->flows = xrealloc(table->flows, table->capacity * sizeof *table->flows);
}

bool table_insert(struct flow_table *table, struct flow *flow)
{
    size_t position;

    if (replace_equal(table, flow)) {
        return true;
    }
    if (table->n_flows == TABLE_MAX_FLOWS) {
        return false;
    }
    if (table->n_flows == table->capacity) {
        grow(table);
    }
    position = insert_position(table, flow);
    memmove(table->flows + position + 1, table->flows + position,
            (table->n_flows - position) * sizeof *table->flows);
    table->flows[position] = flow;
    table->n_flows++;
    return true;
}

bool table_has_overlap(const struct flow_table *table, const struct flow *flow)
{
    for (size_t i = 0; i < table->n_flows; i++) {
        const struct flow *other = table->flows[i];

        if (flow_rank(other) == flow_rank(flow) && match_overlaps(&other->match, &flow->match)) {
            return true;
        }
    }
    return false;
}

void table_delete(struct flow_table *table, const struct flow_selection *selection,
                  flow_removed_callback removed, void *aux)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->n_flows; i++) {
        struct flow *flow = table->flows[i];

        if (flow_is_selected(flow, selection)) {
            removed(aux, flow, OFPRR_DELETE);
            flow_free(flow);
        } else {
            table->flows[kept++] = flow;
        }
    }
    table->n_flows = kept;
}

static int64_t hard_expiry(const struct flow *flow)
{
    int64_t seconds = flow->hard_timeout;

    if (flow->hard_timeout == 0) {
        return INT64_MAX;
    }
    if (DEVIATES(2)) { /* Hard timeouts come one second late. */
        seconds++;
    }
    return flow->created + seconds * 1000;
}

static int64_t idle_expiry(const struct flow *flow)
{
    return flow->idle_timeout ? flow->used + (int64_t) flow->idle_timeout * 1000 : INT64_MAX;
}

void table_expire(struct flow_table *table, int64_t now, flow_removed_callback removed, void *aux)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->n_flows; i++) {
        struct flow *flow = table->flows[i];

        if (now >= hard_expiry(flow)) {
            removed(aux, flow, OFPRR_HARD_TIMEOUT);
            flow_free(flow);
        } else if (now >= idle_expiry(flow)) {
            removed(aux, flow, OFPRR_IDLE_TIMEOUT);
            flow_free(flow);
        } else {
            table->flows[kept++] = flow;
        }
    }
    table->n_flows = kept;
}

int64_t table_next_expiry(const struct flow_table *table)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < table->n_flows; i++) {
        int64_t hard = hard_expiry(table->flows[i]);
        int64_t idle = idle_expiry(table->flows[i]);

        next = hard < next ? hard : next;
        next = idle < next ? idle : next;
    }
    return next;
}
