/* Tuple-space classifier. */
#include "classifier.h"

#include <stdlib.h>

#include "util.h"

struct subtable {
    struct list link; /* In the classifier. */
    struct flow_key mask;
    struct hmap rules;
    /* No rule here has a higher rank. After a removal it may be higher than any rule's, which
     * costs a lookup an extra probe but never a wrong answer. */
    uint32_t max_rank;
};

static struct subtable *subtable_from_link(struct list *link)
{
    return CONTAINER_OF(link, struct subtable, link);
}

static struct rule *rule_from_node(struct hmap_node *node)
{
    return CONTAINER_OF(node, struct rule, node);
}

void classifier_init(struct classifier *classifier) { list_init(&classifier->subtables); }

static void destroy_subtable(struct subtable *subtable)
{
    list_remove(&subtable->link);
    hmap_destroy(&subtable->rules);
    free(subtable);
}

void classifier_destroy(struct classifier *classifier)
{
    LIST_FOR_EACH_SAFE (link, &classifier->subtables) {
        destroy_subtable(subtable_from_link(link));
    }
}

static struct subtable *find_subtable(const struct classifier *classifier,
                                      const struct flow_key *mask)
{
    LIST_FOR_EACH (link, &classifier->subtables) {
        struct subtable *subtable = subtable_from_link(link);

        if (flow_key_equal(&subtable->mask, mask)) {
            return subtable;
        }
    }
    return NULL;
}

/* Puts the subtable where its max_rank belongs in the order of lookups. */
static void place_subtable(struct classifier *classifier, struct subtable *subtable)
{
    struct list *position = &classifier->subtables;

    LIST_FOR_EACH (link, &classifier->subtables) {
        if (subtable_from_link(link)->max_rank < subtable->max_rank) {
            position = link;
            break;
        }
    }
    list_insert_before(position, &subtable->link);
}

static struct subtable *create_subtable(struct classifier *classifier, const struct rule *rule)
{
    struct subtable *subtable = xmalloc(sizeof *subtable);

    subtable->mask = rule->match.mask;
    subtable->max_rank = rule->rank;
    hmap_init(&subtable->rules);
    place_subtable(classifier, subtable);
    return subtable;
}

void classifier_insert(struct classifier *classifier, struct rule *rule)
{
    struct subtable *subtable = find_subtable(classifier, &rule->match.mask);

    if (subtable == NULL) {
        subtable = create_subtable(classifier, rule);
    } else if (rule->rank > subtable->max_rank) {
        subtable->max_rank = rule->rank;
        list_remove(&subtable->link);
        place_subtable(classifier, subtable);
    }
    rule->subtable = subtable;
    hmap_insert(&subtable->rules, &rule->node, flow_key_hash(&rule->match.key));
}

void classifier_remove(struct rule *rule)
{
    struct subtable *subtable = rule->subtable;

    hmap_remove(&subtable->rules, &rule->node);
    if (subtable->rules.count == 0) {
        destroy_subtable(subtable);
    }
}

static struct rule *lookup_in_subtable(const struct subtable *subtable, const struct flow_key *key)
{
    struct flow_key masked = flow_key_and(key, &subtable->mask);
    struct rule *best = NULL;

    for (struct hmap_node *node = hmap_first(&subtable->rules, flow_key_hash(&masked));
         node != NULL; node = hmap_next(node)) {
        struct rule *rule = rule_from_node(node);

        if ((best == NULL || rule->rank > best->rank) &&
            flow_key_equal(&rule->match.key, &masked)) {
            best = rule;
        }
    }
    return best;
}

struct rule *classifier_lookup(const struct classifier *classifier, const struct flow_key *key)
{
    struct rule *best = NULL;

    LIST_FOR_EACH (link, &classifier->subtables) {
        const struct subtable *subtable = subtable_from_link(link);
        struct rule *candidate;

        if (best != NULL && best->rank >= subtable->max_rank) {
            break;
        }
        candidate = lookup_in_subtable(subtable, key);
        if (candidate != NULL && (best == NULL || candidate->rank > best->rank)) {
            best = candidate;
        }
    }
    return best;
}

struct rule *classifier_find(const struct classifier *classifier, const struct match *match,
                             uint32_t rank)
{
    const struct subtable *subtable = find_subtable(classifier, &match->mask);

    if (subtable == NULL) {
        return NULL;
    }
    for (struct hmap_node *node = hmap_first(&subtable->rules, flow_key_hash(&match->key));
         node != NULL; node = hmap_next(node)) {
        struct rule *rule = rule_from_node(node);

        if (rule->rank == rank && flow_key_equal(&rule->match.key, &match->key)) {
            return rule;
        }
    }
    return NULL;
}
