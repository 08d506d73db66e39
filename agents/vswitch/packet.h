/* An Ethernet frame in memory, where its headers are, and how to change them. */
#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETH_ADDR_LEN 6
#define ETH_HEADER_LEN 14
#define VLAN_TAG_LEN 4
#define PACKET_HEADROOM 32 /* Tags are pushed in front of the frame without moving it. */
#define PACKET_MAX_LEN 65535

enum {
    ETH_TYPE_IP = 0x0800,
    ETH_TYPE_ARP = 0x0806,
    ETH_TYPE_VLAN = 0x8100,
    ETH_TYPE_MIN = 0x0600
};

enum { IP_PROTO_ICMP = 1, IP_PROTO_TCP = 6, IP_PROTO_UDP = 17 };

struct packet {
    uint8_t *data;
    size_t len;
    size_t headroom;  /* Free bytes before data. */
    uint8_t *storage; /* Allocated block, or NULL if the bytes belong to somebody else. */
};

/* Where the headers of a frame are; an offset of zero means that there is no such header. */
struct layers {
    bool tagged;
    uint16_t vlan_tci; /* Host order; zero if not tagged. */
    uint16_t dl_type;  /* Host order; OFP_DL_TYPE_NOT_ETH_TYPE for 802.3 without SNAP. */
    size_t l3;         /* A whole IPv4 header, or a whole Ethernet/IPv4 ARP packet. */
    size_t l4;         /* A whole TCP, UDP or ICMP header that is not in a fragment. */
    bool fragment;
};

/* Uses bytes with PACKET_HEADROOM free bytes before them, without taking ownership. */
void packet_use(struct packet *packet, uint8_t *bytes, size_t len);
void packet_copy(struct packet *packet, const void *bytes, size_t len);
void packet_free(struct packet *packet);

void packet_parse(const struct packet *packet, struct layers *layers);

/* Each changes nothing in a frame that has no such field. */
void packet_set_vlan_vid(struct packet *packet, uint16_t vid);
void packet_set_vlan_pcp(struct packet *packet, uint8_t pcp);
void packet_strip_vlan(struct packet *packet);
void packet_set_dl_src(struct packet *packet, const uint8_t address[ETH_ADDR_LEN]);
void packet_set_dl_dst(struct packet *packet, const uint8_t address[ETH_ADDR_LEN]);
void packet_set_nw_src(struct packet *packet, uint32_t address); /* Network order. */
void packet_set_nw_dst(struct packet *packet, uint32_t address);
void packet_set_nw_tos(struct packet *packet, uint8_t tos);
void packet_set_tp_src(struct packet *packet, uint16_t port); /* Host order. */
void packet_set_tp_dst(struct packet *packet, uint16_t port);

/* Inserts a tag after the addresses. */
void packet_push_vlan(struct packet *packet, uint16_t tci);

#endif
