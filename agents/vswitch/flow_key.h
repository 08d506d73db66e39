/* The twelve header fields of OpenFlow 1.0, as extracted from a packet or masked by a rule. */
#ifndef FLOW_KEY_H
#define FLOW_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

/* Network byte order throughout. Keys and masks are compared and combined as whole words, so
 * the padding is always zero. */
struct flow_key {
    uint32_t nw_src;
    uint32_t nw_dst;
    uint16_t in_port;
    uint16_t dl_vlan;
    uint16_t dl_type;
    uint16_t tp_src;
    uint16_t tp_dst;
    uint8_t dl_src[ETH_ADDR_LEN];
    uint8_t dl_dst[ETH_ADDR_LEN];
    uint8_t dl_vlan_pcp;
    uint8_t nw_tos;
    uint8_t nw_proto;
    uint8_t padding[7];
};

/* Returns true if the packet is an IP fragment. */
bool flow_key_extract(struct flow_key *key, const struct packet *packet, uint16_t in_port);

struct flow_key flow_key_and(const struct flow_key *a, const struct flow_key *b);
bool flow_key_equal(const struct flow_key *a, const struct flow_key *b);
bool flow_key_equal_under(const struct flow_key *a, const struct flow_key *b,
                          const struct flow_key *mask);
uint32_t flow_key_hash(const struct flow_key *key);

#endif
