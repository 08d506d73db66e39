/* The flow table. */
#include "flow_table.h"

#include <stdlib.h>

#include "util.h"

static struct flow *flow_from_rule(struct rule *rule)
{
    return rule != NULL ? CONTAINER_OF(rule, struct flow, rule) : NULL;
}

void flow_table_init(struct flow_table *table)
{
    classifier_init(&table->classifier);
    list_init(&table->flows);
    list_init(&table->timed);
    table->count = 0;
    table->lookups = table->matched = 0;
}

void flow_table_destroy(struct flow_table *table)
{
    LIST_FOR_EACH_SAFE (link, &table->flows) {
        flow_table_remove(table, flow_in_table(link));
    }
    classifier_destroy(&table->classifier);
}

struct flow *flow_table_lookup(struct flow_table *table, const struct flow_key *key)
{
    struct flow *flow = flow_from_rule(classifier_lookup(&table->classifier, key));

    table->lookups++;
    if (flow != NULL) {
        table->matched++;
    }
    return flow;
}

struct flow *flow_table_find(const struct flow_table *table, const struct match *match,
                             uint32_t rank)
{
    return flow_from_rule(classifier_find(&table->classifier, match, rank));
}

bool flow_table_overlaps(const struct flow_table *table, const struct match *match, uint32_t rank)
{
    LIST_FOR_EACH (link, &table->flows) {
        const struct flow *flow = flow_in_table(link);

        if (flow->rule.rank == rank && match_overlap(&flow->rule.match, match)) {
            return true;
        }
    }
    return false;
}

struct flow *flow_create(const struct match *match, uint32_t rank)
{
    struct flow *flow = xcalloc(1, sizeof *flow);

    flow->rule.match = *match;
    flow->rule.rank = rank;
    flow->created = flow->used = time_msec();
    list_init(&flow->in_table);
    list_init(&flow->timed);
    return flow;
}

bool flow_table_insert(struct flow_table *table, struct flow *flow)
{
    struct flow *displaced = flow_table_find(table, &flow->rule.match, flow->rule.rank);

    if (displaced != NULL) {
        flow_table_remove(table, displaced);
    } else if (table->count >= FLOW_TABLE_MAX) {
        return false;
    }
    classifier_insert(&table->classifier, &flow->rule);
    list_insert_before(&table->flows, &flow->in_table);
    if (flow->idle_timeout != 0 || flow->hard_timeout != 0) {
        list_insert_before(&table->timed, &flow->timed);
    }
    table->count++;
    return true;
}

void flow_destroy(struct flow *flow)
{
    action_list_free(&flow->actions);
    free(flow);
}

void flow_table_remove(struct flow_table *table, struct flow *flow)
{
    classifier_remove(&flow->rule);
    list_remove(&flow->in_table);
    list_remove(&flow->timed);
    table->count--;
    flow_destroy(flow);
}

void flow_credit(struct flow *flow, size_t bytes)
{
    flow->packets++;
    flow->bytes += bytes;
    flow->used = time_msec();
}

uint16_t flow_priority(const struct flow *flow)
{
    return flow->rule.rank == RANK_EXACT ? UINT16_MAX : (uint16_t) flow->rule.rank;
}

bool flow_has_expired(const struct flow *flow, uint64_t now, enum ofp_flow_removed_reason *reason)
{
    if (flow->hard_timeout != 0 && now >= flow->created + flow->hard_timeout * 1000ull) {
        *reason = OFPRR_HARD_TIMEOUT;
        return true;
    }
    if (flow->idle_timeout != 0 && now >= flow->used + flow->idle_timeout * 1000ull) {
        *reason = OFPRR_IDLE_TIMEOUT;
        return true;
    }
    return false;
}
