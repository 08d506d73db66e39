/* What OpenFlow 1.0 sees of a packet, and what a rule asks of it. */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/openflow.h"
#include "packet.h"

/* The header fields of a packet, in network byte order. */
struct flow_key {
    uint32_t nw_src;
    uint32_t nw_dst;
    uint16_t in_port;
    uint16_t dl_vlan;           /* OFP_VLAN_NONE if the packet has no tag. */
    uint16_t dl_type;
    uint16_t tp_src;            /* ICMP type. */
    uint16_t tp_dst;            /* ICMP code. */
    uint8_t dl_src[OFP_ETH_ALEN];
    uint8_t dl_dst[OFP_ETH_ALEN];
    uint8_t dl_vlan_pcp;
    uint8_t nw_tos;
    uint8_t nw_proto;           /* Lower byte of the ARP operation. */
};

/* The packets that a rule or a request is about. */
struct match {
    struct flow_key key;
    uint32_t wildcards;         /* OFPFW_*, host byte order. */
    uint32_t nw_src_mask;
    uint32_t nw_dst_mask;
};

/* Fills 'key' from 'packet', which came in at 'in_port', and finds the packet's l3 and l4 headers.
 * Returns true if the packet is an IP fragment. */
bool flow_extract(struct packet *packet, uint16_t in_port, struct flow_key *key);

/* Fields that cannot matter (such as TCP ports of a match on ARP) are brought to one form. */
void match_from_wire(struct match *match, const struct ofp_match *wire);
void match_to_wire(const struct match *match, struct ofp_match *wire);

/* No wildcards at all. */
bool match_is_exact(const struct match *match);

/* Whether a packet with 'key' matches. */
bool match_covers_key(const struct match *match, const struct flow_key *key);

/* Whether every packet that matches 'specific' also matches 'general'. */
bool match_covers(const struct match *general, const struct match *specific);

/* Whether both match the same packets. */
bool match_equals(const struct match *a, const struct match *b);

/* Whether some packet matches both. */
bool match_overlaps(const struct match *a, const struct match *b);

#endif
