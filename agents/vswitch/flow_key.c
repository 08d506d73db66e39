/* The header fields that rules match on. */
#include "flow_key.h"

#include <arpa/inet.h>

#include "hash.h"
#include "headers.h"
#include "openflow.h"

#define WORD_SIZE sizeof(uint64_t)
#define N_WORDS (sizeof(struct flow_key) / WORD_SIZE)

_Static_assert(sizeof(struct flow_key) % WORD_SIZE == 0, "flow keys are made of whole words");

static void extract_transport(struct flow_key *key, const uint8_t *l4)
{
    if (key->nw_proto == IP_PROTO_ICMP) {
        /* OpenFlow keeps the ICMP type and code where ports would be. */
        key->tp_src = htons(l4[ICMP_TYPE]);
        key->tp_dst = htons(l4[ICMP_CODE]);
    } else {
        key->tp_src = htons(load16(l4 + TP_SRC));
        key->tp_dst = htons(load16(l4 + TP_DST));
    }
}

static void extract_network(struct flow_key *key, const struct packet *packet,
                            const struct layers *layers)
{
    const uint8_t *l3 = packet->data + layers->l3;

    if (layers->dl_type == ETH_TYPE_ARP) {
        key->nw_proto = (uint8_t) load16(l3 + ARP_OPERATION);
        key->nw_src = load_address(l3 + ARP_SENDER_IP);
        key->nw_dst = load_address(l3 + ARP_TARGET_IP);
        return;
    }
    key->nw_tos = l3[IPV4_TOS] & IPV4_TOS_DSCP;
    key->nw_proto = l3[IPV4_PROTOCOL];
    key->nw_src = load_address(l3 + IPV4_SRC);
    key->nw_dst = load_address(l3 + IPV4_DST);
    if (layers->l4 > 0) {
        extract_transport(key, packet->data + layers->l4);
    }
}

bool flow_key_extract(struct flow_key *key, const struct packet *packet, uint16_t in_port)
{
    struct layers layers;

    memset(key, 0, sizeof *key);
    packet_parse(packet, &layers);
    key->in_port = htons(in_port);
    key->dl_vlan = htons(OFP_VLAN_NONE);
    if (packet->len < ETH_HEADER_LEN) {
        return false;
    }
    memcpy(key->dl_dst, packet->data + ETH_DST, ETH_ADDR_LEN);
    memcpy(key->dl_src, packet->data + ETH_SRC, ETH_ADDR_LEN);
    key->dl_type = htons(layers.dl_type);
    if (layers.tagged) {
        key->dl_vlan = htons(layers.vlan_tci & 0x0fff);
        key->dl_vlan_pcp = (uint8_t) (layers.vlan_tci >> 13);
    }
    if (layers.l3 > 0) {
        extract_network(key, packet, &layers);
    }
    return layers.fragment;
}

static uint64_t word_of(const struct flow_key *key, size_t index)
{
    uint64_t word;

    memcpy(&word, (const uint8_t *) key + index * WORD_SIZE, WORD_SIZE);
    return word;
}

struct flow_key flow_key_and(const struct flow_key *a, const struct flow_key *b)
{
    struct flow_key result;

    for (size_t i = 0; i < N_WORDS; i++) {
        uint64_t word = word_of(a, i) & word_of(b, i);

        memcpy((uint8_t *) &result + i * WORD_SIZE, &word, WORD_SIZE);
    }
    return result;
}

/* The comparisons collect all differences before they branch: on the packet path, five loads
 * cost less than a mispredicted early exit. */

bool flow_key_equal(const struct flow_key *a, const struct flow_key *b)
{
    uint64_t difference = 0;

    for (size_t i = 0; i < N_WORDS; i++) {
        difference |= word_of(a, i) ^ word_of(b, i);
    }
    return difference == 0;
}

bool flow_key_equal_under(const struct flow_key *a, const struct flow_key *b,
                          const struct flow_key *mask)
{
    uint64_t difference = 0;

    for (size_t i = 0; i < N_WORDS; i++) {
        difference |= (word_of(a, i) ^ word_of(b, i)) & word_of(mask, i);
    }
    return difference == 0;
}

uint32_t flow_key_hash(const struct flow_key *key) { return hash_bytes(key, sizeof *key, 0); }
