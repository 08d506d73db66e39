#include "flow.h"

#include <arpa/inet.h>
#include <string.h>

#include "deviation.h"

#define WILDCARDS_TP (OFPFW_TP_SRC | OFPFW_TP_DST)
#define WILDCARDS_NW (OFPFW_NW_SRC_MASK | OFPFW_NW_DST_MASK | OFPFW_NW_PROTO | OFPFW_NW_TOS)

/* A cursor over the bytes of a packet that are not parsed yet. */
struct cursor {
    uint8_t *data;
    size_t size;
};

/* Takes the next 'size' bytes, or returns NULL if there are not that many. */
static void *take(struct cursor *cursor, size_t size)
{
    void *taken = cursor->data;

    if (cursor->size < size) {
        return NULL;
    }
    cursor->data += size;
    cursor->size -= size;
    return taken;
}

static uint16_t parse_llc_type(struct cursor *cursor)
{
    static const uint8_t snap[] = {0xaa, 0xaa, 0x03, 0, 0, 0};
    const struct llc_snap_header *llc = (const void *) cursor->data;

    if (cursor->size >= sizeof *llc && !memcmp(llc, snap, sizeof snap)) {
        take(cursor, sizeof *llc);
        return llc->type;
    }
    return htons(OFP_DL_TYPE_NOT_ETH_TYPE);
}

static void extract_vlan(struct cursor *cursor, struct flow_key *key)
{
    const struct vlan_header *vlan = take(cursor, sizeof *vlan);

    if (vlan != NULL) {
        uint16_t tci = ntohs(vlan->tci);

        key->dl_vlan = htons(tci & VLAN_VID_MASK);
        key->dl_vlan_pcp = (uint8_t) (tci >> VLAN_PCP_SHIFT);
        key->dl_type = vlan->type;
    }
}

/* Returns false if the packet is too short to have the header of its protocol. */
static bool extract_transport(struct packet *packet, struct cursor *cursor, struct flow_key *key)
{
    if (key->nw_proto == IP_PROTOCOL_TCP) {
        const struct tcp_header *tcp = take(cursor, sizeof *tcp);

        if (tcp == NULL) {
            return false;
        }
        packet->l4 = (uint8_t *) tcp;
        key->tp_src = tcp->src;
        key->tp_dst = tcp->dst;
    } else if (key->nw_proto == IP_PROTOCOL_UDP) {
        const struct udp_header *udp = take(cursor, sizeof *udp);

        if (udp == NULL) {
            return false;
        }
        packet->l4 = (uint8_t *) udp;
        key->tp_src = udp->src;
        key->tp_dst = udp->dst;
    } else if (key->nw_proto == IP_PROTOCOL_ICMP) {
        const struct icmp_header *icmp = take(cursor, sizeof *icmp);

        if (icmp == NULL) {
            return false;
        }
        packet->l4 = (uint8_t *) icmp;
        key->tp_src = htons(icmp->type);
        key->tp_dst = htons(icmp->code);
    }
    return true;
}

static bool extract_ip(struct packet *packet, struct cursor *cursor, struct flow_key *key)
{
    struct ip_header *ip = take(cursor, sizeof *ip);
    size_t header_length;

    if (ip == NULL) {
        return false;
    }
    header_length = (ip->version_ihl & 0x0f) * 4u;
    if (header_length < sizeof *ip || take(cursor, header_length - sizeof *ip) == NULL) {
        return false;
    }
    packet->l3 = (uint8_t *) ip;
    key->nw_src = ip->src;
    key->nw_dst = ip->dst;
    key->nw_tos = ip->tos & IP_DSCP_MASK;
    key->nw_proto = ip->protocol;
    if (ip->fragment & htons(IP_FRAGMENT_MASK)) {
        return true;
    }
    if (!extract_transport(packet, cursor, key)) {
        /* A protocol without its header would not be what the rules mean by it. */
        key->nw_proto = 0;
    }
    return false;
}

static void extract_arp(struct cursor *cursor, struct flow_key *key)
{
    const struct arp_header *arp = take(cursor, sizeof *arp);

    if (arp != NULL && arp->hardware == htons(1) && arp->protocol == htons(ETHERTYPE_IPV4)
        && arp->hardware_length == ETH_ADDRESS_LENGTH && arp->protocol_length == 4) {
        if (ntohs(arp->operation) <= 0xff) {
            key->nw_proto = (uint8_t) ntohs(arp->operation);
        }
        key->nw_src = arp->sender_protocol;
        key->nw_dst = arp->target_protocol;
    }
}

bool flow_extract(struct packet *packet, uint16_t in_port, struct flow_key *key)
{
    struct cursor cursor = {packet->data, packet->size};
    const struct eth_header *eth = take(&cursor, sizeof *eth);

    packet->l3 = NULL;
    packet->l4 = NULL;
    memset(key, 0, sizeof *key);
    key->in_port = htons(in_port);
    key->dl_vlan = htons(OFP_VLAN_NONE);
    if (eth == NULL) {
        return false;
    }

    memcpy(key->dl_src, eth->src, sizeof key->dl_src);
    memcpy(key->dl_dst, eth->dst, sizeof key->dl_dst);
    if (ntohs(eth->type) >= OFP_DL_TYPE_ETH2_CUTOFF) {
        key->dl_type = eth->type;
    } else {
        key->dl_type = parse_llc_type(&cursor);
    }
    if (key->dl_type == htons(ETHERTYPE_VLAN)) {
        extract_vlan(&cursor, key);
    }
    if (key->dl_type == htons(ETHERTYPE_IPV4)) {
        return extract_ip(packet, &cursor, key);
    }
    if (key->dl_type == htons(ETHERTYPE_ARP)) {
        extract_arp(&cursor, key);
    }
    return false;
}

/* The mask for an address of which the lower 'wildcard_bits' do not matter. */
static uint32_t address_mask(uint32_t wildcard_bits)
{
    wildcard_bits &= 0x3f;
    if (DEVIATES(5)) { /* Off by one: exactly 32 wildcard bits still compare the highest bit. */
        wildcard_bits = wildcard_bits == 32 ? 31 : wildcard_bits;
    }
    return wildcard_bits >= 32 ? 0 : htonl(~0u << wildcard_bits);
}

/* An address has 32 bits; to wildcard more of them means the same. */
static void cap_wildcard_bits(struct match *match, int shift)
{
    if (match->wildcards >> shift & 0x20) {
        match->wildcards &= ~(0x1fu << shift);
    }
}

/* Of the network and transport fields, only those that the match's own types define count: the
 * others are wildcarded if the type could be anything, and otherwise equal to what flow_extract
 * gives for such packets. */
static void normalise_upper_layers(struct match *match, const struct ofp_match *wire)
{
    struct flow_key *key = &match->key;

    if (match->wildcards & OFPFW_DL_TYPE) {
        match->wildcards |= WILDCARDS_NW | WILDCARDS_TP;
    } else if (wire->dl_type == htons(ETHERTYPE_IPV4)) {
        key->nw_src = wire->nw_src;
        key->nw_dst = wire->nw_dst;
        key->nw_tos = wire->nw_tos & IP_DSCP_MASK;
        key->nw_proto = wire->nw_proto;
        if (match->wildcards & OFPFW_NW_PROTO) {
            match->wildcards |= WILDCARDS_TP;
        } else if (wire->nw_proto == IP_PROTOCOL_TCP || wire->nw_proto == IP_PROTOCOL_UDP
                   || wire->nw_proto == IP_PROTOCOL_ICMP) {
            key->tp_src = wire->tp_src;
            key->tp_dst = wire->tp_dst;
        } else {
            match->wildcards &= ~(uint32_t) WILDCARDS_TP;
        }
    } else if (wire->dl_type == htons(ETHERTYPE_ARP)) {
        key->nw_src = wire->nw_src;
        key->nw_dst = wire->nw_dst;
        key->nw_proto = wire->nw_proto;
        match->wildcards &= ~(uint32_t) (WILDCARDS_TP | OFPFW_NW_TOS);
    } else {
        match->wildcards &= ~(uint32_t) (WILDCARDS_NW | WILDCARDS_TP);
    }
}

void match_from_wire(struct match *match, const struct ofp_match *wire)
{
    struct flow_key *key = &match->key;

    memset(match, 0, sizeof *match);
    match->wildcards = ntohl(wire->wildcards) & OFPFW_ALL;
    key->in_port = wire->in_port;
    memcpy(key->dl_src, wire->dl_src, sizeof key->dl_src);
    memcpy(key->dl_dst, wire->dl_dst, sizeof key->dl_dst);
    key->dl_vlan = wire->dl_vlan;
    key->dl_vlan_pcp = wire->dl_vlan_pcp;
    key->dl_type = wire->dl_type;
    normalise_upper_layers(match, wire);
    match->nw_src_mask = address_mask(match->wildcards >> OFPFW_NW_SRC_SHIFT);
    match->nw_dst_mask = address_mask(match->wildcards >> OFPFW_NW_DST_SHIFT);
    cap_wildcard_bits(match, OFPFW_NW_SRC_SHIFT);
    cap_wildcard_bits(match, OFPFW_NW_DST_SHIFT);
}

void match_to_wire(const struct match *match, struct ofp_match *wire)
{
    const struct flow_key *key = &match->key;

    memset(wire, 0, sizeof *wire);
    wire->wildcards = htonl(match->wildcards);
    wire->in_port = key->in_port;
    memcpy(wire->dl_src, key->dl_src, sizeof wire->dl_src);
    memcpy(wire->dl_dst, key->dl_dst, sizeof wire->dl_dst);
    wire->dl_vlan = key->dl_vlan;
    wire->dl_vlan_pcp = key->dl_vlan_pcp;
    wire->dl_type = key->dl_type;
    wire->nw_tos = key->nw_tos;
    wire->nw_proto = key->nw_proto;
    wire->nw_src = key->nw_src;
    wire->nw_dst = key->nw_dst;
    wire->tp_src = key->tp_src;
    wire->tp_dst = key->tp_dst;
}

bool match_is_exact(const struct match *match)
{
    return match->wildcards == 0;
}

/* Whether two keys are equal in the fields that neither 'wildcards' nor the masks leave out. */
static bool keys_agree(const struct flow_key *a, const struct flow_key *b, uint32_t wildcards,
                       uint32_t nw_src_mask, uint32_t nw_dst_mask)
{
    return (wildcards & OFPFW_IN_PORT || a->in_port == b->in_port)
           && (wildcards & OFPFW_DL_VLAN || a->dl_vlan == b->dl_vlan)
           && (wildcards & OFPFW_DL_VLAN_PCP || a->dl_vlan_pcp == b->dl_vlan_pcp)
           && (wildcards & OFPFW_DL_SRC || !memcmp(a->dl_src, b->dl_src, sizeof a->dl_src))
           && (wildcards & OFPFW_DL_DST || !memcmp(a->dl_dst, b->dl_dst, sizeof a->dl_dst))
           && (wildcards & OFPFW_DL_TYPE || a->dl_type == b->dl_type)
           && (wildcards & OFPFW_NW_TOS || a->nw_tos == b->nw_tos)
           && (wildcards & OFPFW_NW_PROTO || a->nw_proto == b->nw_proto)
           && !((a->nw_src ^ b->nw_src) & nw_src_mask)
           && !((a->nw_dst ^ b->nw_dst) & nw_dst_mask)
           && (wildcards & OFPFW_TP_SRC || a->tp_src == b->tp_src)
           && (wildcards & OFPFW_TP_DST || a->tp_dst == b->tp_dst);
}

bool match_covers_key(const struct match *match, const struct flow_key *key)
{
    return keys_agree(&match->key, key, match->wildcards, match->nw_src_mask, match->nw_dst_mask);
}

#define SINGLE_BIT_WILDCARDS ((uint32_t) OFPFW_ALL & ~(uint32_t) (OFPFW_NW_SRC_MASK | OFPFW_NW_DST_MASK))

bool match_covers(const struct match *general, const struct match *specific)
{
    uint32_t only_specific_wild
        = specific->wildcards & ~general->wildcards & SINGLE_BIT_WILDCARDS;

    return !only_specific_wild && !(general->nw_src_mask & ~specific->nw_src_mask)
           && !(general->nw_dst_mask & ~specific->nw_dst_mask)
           && match_covers_key(general, &specific->key);
}

bool match_equals(const struct match *a, const struct match *b)
{
    return match_covers(a, b) && match_covers(b, a);
}

bool match_overlaps(const struct match *a, const struct match *b)
{
    return keys_agree(&a->key, &b->key, a->wildcards | b->wildcards,
                      a->nw_src_mask & b->nw_src_mask, a->nw_dst_mask & b->nw_dst_mask);
}
