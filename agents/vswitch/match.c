/* Conversion between wire matches and masked keys, and relations between matches. */
#include "match.h"

#include <arpa/inet.h>
#include <string.h>

#include "headers.h"

#define EXACT_U8 UINT8_MAX
#define EXACT_U16 UINT16_MAX

/* The mask for a count of wildcarded low bits; 32 and more wildcard the whole address. */
static uint32_t address_mask(uint32_t wildcards, int shift)
{
    uint32_t bits = wildcards >> shift & OFPFW_NW_BITS_MASK;

    return bits >= 32 ? 0 : htonl(UINT32_MAX << bits);
}

static void mask_from_wildcards(struct flow_key *mask, uint32_t wildcards)
{
    memset(mask, 0, sizeof *mask);
    mask->in_port = wildcards & OFPFW_IN_PORT ? 0 : EXACT_U16;
    mask->dl_vlan = wildcards & OFPFW_DL_VLAN ? 0 : EXACT_U16;
    mask->dl_vlan_pcp = wildcards & OFPFW_DL_VLAN_PCP ? 0 : EXACT_U8;
    mask->dl_type = wildcards & OFPFW_DL_TYPE ? 0 : EXACT_U16;
    memset(mask->dl_src, wildcards & OFPFW_DL_SRC ? 0 : EXACT_U8, sizeof mask->dl_src);
    memset(mask->dl_dst, wildcards & OFPFW_DL_DST ? 0 : EXACT_U8, sizeof mask->dl_dst);
    mask->nw_tos = wildcards & OFPFW_NW_TOS ? 0 : IPV4_TOS_DSCP;
    mask->nw_proto = wildcards & OFPFW_NW_PROTO ? 0 : EXACT_U8;
    mask->nw_src = address_mask(wildcards, OFPFW_NW_SRC_SHIFT);
    mask->nw_dst = address_mask(wildcards, OFPFW_NW_DST_SHIFT);
    mask->tp_src = wildcards & OFPFW_TP_SRC ? 0 : EXACT_U16;
    mask->tp_dst = wildcards & OFPFW_TP_DST ? 0 : EXACT_U16;
}

static void key_from_wire(struct flow_key *key, const struct ofp_match *wire)
{
    memset(key, 0, sizeof *key);
    key->in_port = wire->in_port;
    key->dl_vlan = wire->dl_vlan;
    key->dl_vlan_pcp = wire->dl_vlan_pcp;
    key->dl_type = wire->dl_type;
    memcpy(key->dl_src, wire->dl_src, sizeof key->dl_src);
    memcpy(key->dl_dst, wire->dl_dst, sizeof key->dl_dst);
    key->nw_tos = wire->nw_tos;
    key->nw_proto = wire->nw_proto;
    key->nw_src = wire->nw_src;
    key->nw_dst = wire->nw_dst;
    key->tp_src = wire->tp_src;
    key->tp_dst = wire->tp_dst;
}

static bool has_transport_fields(const struct match *match)
{
    uint8_t protocol = match->key.nw_proto;

    return match->mask.nw_proto != 0 &&
           (protocol == IP_PROTO_TCP || protocol == IP_PROTO_UDP || protocol == IP_PROTO_ICMP);
}

/* A match on the fields of a protocol means something only if it requires that protocol. */
static void wildcard_meaningless_fields(struct match *match)
{
    struct flow_key *mask = &match->mask;
    bool ip = mask->dl_type != 0 && match->key.dl_type == htons(ETH_TYPE_IP);
    bool arp = mask->dl_type != 0 && match->key.dl_type == htons(ETH_TYPE_ARP);

    if (!ip && !arp) {
        mask->nw_src = mask->nw_dst = 0;
        mask->nw_proto = 0;
    }
    if (!ip) {
        mask->nw_tos = 0;
    }
    if (!ip || !has_transport_fields(match)) {
        mask->tp_src = mask->tp_dst = 0;
    }
    if (mask->dl_vlan != 0 && match->key.dl_vlan == htons(OFP_VLAN_NONE)) {
        mask->dl_vlan_pcp = 0;
    }
}

void match_from_wire(struct match *match, const struct ofp_match *wire)
{
    mask_from_wildcards(&match->mask, ntohl(wire->wildcards));
    key_from_wire(&match->key, wire);
    wildcard_meaningless_fields(match);
    match->key = flow_key_and(&match->key, &match->mask);
}

static uint32_t address_wildcards(uint32_t mask, int shift)
{
    uint32_t bits = mask != 0 ? (uint32_t) __builtin_ctz(ntohl(mask)) : 32;

    return bits << shift;
}

static uint32_t wildcards_from_mask(const struct flow_key *mask)
{
    uint32_t wildcards = 0;

    wildcards |= mask->in_port ? 0 : OFPFW_IN_PORT;
    wildcards |= mask->dl_vlan ? 0 : OFPFW_DL_VLAN;
    wildcards |= mask->dl_vlan_pcp ? 0 : OFPFW_DL_VLAN_PCP;
    wildcards |= mask->dl_type ? 0 : OFPFW_DL_TYPE;
    wildcards |= mask->dl_src[0] ? 0 : OFPFW_DL_SRC;
    wildcards |= mask->dl_dst[0] ? 0 : OFPFW_DL_DST;
    wildcards |= mask->nw_tos ? 0 : OFPFW_NW_TOS;
    wildcards |= mask->nw_proto ? 0 : OFPFW_NW_PROTO;
    wildcards |= mask->tp_src ? 0 : OFPFW_TP_SRC;
    wildcards |= mask->tp_dst ? 0 : OFPFW_TP_DST;
    wildcards |= address_wildcards(mask->nw_src, OFPFW_NW_SRC_SHIFT);
    wildcards |= address_wildcards(mask->nw_dst, OFPFW_NW_DST_SHIFT);
    return wildcards;
}

void match_to_wire(const struct match *match, struct ofp_match *wire)
{
    const struct flow_key *key = &match->key;

    memset(wire, 0, sizeof *wire);
    wire->wildcards = htonl(wildcards_from_mask(&match->mask));
    wire->in_port = key->in_port;
    wire->dl_vlan = key->dl_vlan;
    wire->dl_vlan_pcp = key->dl_vlan_pcp;
    wire->dl_type = key->dl_type;
    memcpy(wire->dl_src, key->dl_src, sizeof wire->dl_src);
    memcpy(wire->dl_dst, key->dl_dst, sizeof wire->dl_dst);
    wire->nw_tos = key->nw_tos;
    wire->nw_proto = key->nw_proto;
    wire->nw_src = key->nw_src;
    wire->nw_dst = key->nw_dst;
    wire->tp_src = key->tp_src;
    wire->tp_dst = key->tp_dst;
}

bool match_equal(const struct match *a, const struct match *b)
{
    return flow_key_equal(&a->mask, &b->mask) && flow_key_equal(&a->key, &b->key);
}

bool match_covers(const struct match *general, const struct match *specific)
{
    struct flow_key common = flow_key_and(&general->mask, &specific->mask);

    return flow_key_equal(&common, &general->mask) &&
           flow_key_equal_under(&general->key, &specific->key, &general->mask);
}

bool match_overlap(const struct match *a, const struct match *b)
{
    struct flow_key common = flow_key_and(&a->mask, &b->mask);

    return flow_key_equal_under(&a->key, &b->key, &common);
}
