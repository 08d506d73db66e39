/* What a rule matches: a masked key. */
#ifndef MATCH_H
#define MATCH_H

#include <stdbool.h>

#include "flow_key.h"
#include "openflow.h"

/* Canonical: bits of the key outside the mask are zero, and fields that no matching packet can
 * have (ports of an ARP packet, say) are wildcarded. Equal matches are equal bytes. */
struct match {
    struct flow_key key;
    struct flow_key mask;
};

void match_from_wire(struct match *match, const struct ofp_match *wire);
void match_to_wire(const struct match *match, struct ofp_match *wire);

bool match_equal(const struct match *a, const struct match *b);
/* Every packet that `specific` matches is matched by `general` too. */
bool match_covers(const struct match *general, const struct match *specific);
/* Some packet may match both. */
bool match_overlap(const struct match *a, const struct match *b);

#endif
