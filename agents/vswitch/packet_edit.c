/* Changing header fields of a frame, with its checksums. */
#include <arpa/inet.h>

#include "headers.h"
#include "packet.h"
#include "util.h"

#define VLAN_VID_MASK 0x0fff
#define VLAN_PCP_SHIFT 13
#define VLAN_PCP_MASK 0xe000

/* The new value of a checksum after a 16-bit word that it covers changed (RFC 1624). */
static uint16_t update_checksum(uint16_t checksum, uint16_t old_word, uint16_t new_word)
{
    uint32_t sum = (uint16_t) ~checksum + (uint32_t) (uint16_t) ~old_word + new_word;

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~sum;
}

static void update_checksum_at(uint8_t *at, uint16_t old_word, uint16_t new_word)
{
    store16(at, update_checksum(load16(at), old_word, new_word));
}

/* TCP or UDP; a UDP checksum of zero means "not computed" and stays so. */
static void update_transport_checksum(uint8_t *l4, uint8_t protocol, uint16_t old_word,
                                      uint16_t new_word)
{
    if (protocol == IP_PROTO_TCP) {
        update_checksum_at(l4 + TCP_CHECKSUM, old_word, new_word);
    } else if (protocol == IP_PROTO_UDP && load16(l4 + UDP_CHECKSUM) != 0) {
        update_checksum_at(l4 + UDP_CHECKSUM, old_word, new_word);
        if (load16(l4 + UDP_CHECKSUM) == 0) {
            store16(l4 + UDP_CHECKSUM, 0xffff);
        }
    }
}

void packet_push_vlan(struct packet *packet, uint16_t tci)
{
    if (packet->len < ETH_HEADER_LEN || packet->len > PACKET_MAX_LEN - VLAN_TAG_LEN ||
        packet->headroom < VLAN_TAG_LEN) {
        return;
    }
    packet->data -= VLAN_TAG_LEN;
    packet->headroom -= VLAN_TAG_LEN;
    packet->len += VLAN_TAG_LEN;
    memmove(packet->data, packet->data + VLAN_TAG_LEN, ETH_TYPE);
    store16(packet->data + ETH_TYPE, ETH_TYPE_VLAN);
    store16(packet->data + ETH_HEADER_LEN, tci);
}

static bool is_tagged(const struct packet *packet)
{
    return packet->len >= ETH_HEADER_LEN + VLAN_TAG_LEN &&
           load16(packet->data + ETH_TYPE) == ETH_TYPE_VLAN;
}

static void set_tci_bits(struct packet *packet, uint16_t bits, uint16_t mask)
{
    if (is_tagged(packet)) {
        uint8_t *tci = packet->data + ETH_HEADER_LEN;

        store16(tci, (uint16_t) ((load16(tci) & ~mask) | bits));
    } else {
        packet_push_vlan(packet, bits);
    }
}

void packet_set_vlan_vid(struct packet *packet, uint16_t vid)
{
    set_tci_bits(packet, vid & VLAN_VID_MASK, VLAN_VID_MASK);
}

void packet_set_vlan_pcp(struct packet *packet, uint8_t pcp)
{
    set_tci_bits(packet, (uint16_t) (pcp << VLAN_PCP_SHIFT), VLAN_PCP_MASK);
}

void packet_strip_vlan(struct packet *packet)
{
    if (is_tagged(packet)) {
        memmove(packet->data + VLAN_TAG_LEN, packet->data, ETH_TYPE);
        packet->data += VLAN_TAG_LEN;
        packet->headroom += VLAN_TAG_LEN;
        packet->len -= VLAN_TAG_LEN;
    }
}

static void set_dl_address(struct packet *packet, size_t offset, const uint8_t *address)
{
    if (packet->len >= ETH_HEADER_LEN) {
        memcpy(packet->data + offset, address, ETH_ADDR_LEN);
    }
}

void packet_set_dl_src(struct packet *packet, const uint8_t address[ETH_ADDR_LEN])
{
    set_dl_address(packet, ETH_SRC, address);
}

void packet_set_dl_dst(struct packet *packet, const uint8_t address[ETH_ADDR_LEN])
{
    set_dl_address(packet, ETH_DST, address);
}

/* Returns the IPv4 header, or NULL; finds the transport header as well. */
static uint8_t *find_ip(struct packet *packet, uint8_t **l4)
{
    struct layers layers;

    packet_parse(packet, &layers);
    if (layers.dl_type != ETH_TYPE_IP || layers.l3 == 0) {
        return NULL;
    }
    *l4 = layers.l4 > 0 ? packet->data + layers.l4 : NULL;
    return packet->data + layers.l3;
}

static void set_nw_address(struct packet *packet, size_t offset, uint32_t address)
{
    uint8_t *l4;
    uint8_t *ip = find_ip(packet, &l4);
    uint16_t halves[2];

    if (ip == NULL) {
        return;
    }
    halves[0] = (uint16_t) (ntohl(address) >> 16);
    halves[1] = (uint16_t) ntohl(address);
    for (size_t i = 0; i < 2; i++) {
        uint8_t *field = ip + offset + 2 * i;
        uint16_t old_half = load16(field);

        update_checksum_at(ip + IPV4_CHECKSUM, old_half, halves[i]);
        if (l4 != NULL) {
            /* The pseudo header of TCP and UDP contains the addresses. */
            update_transport_checksum(l4, ip[IPV4_PROTOCOL], old_half, halves[i]);
        }
        store16(field, halves[i]);
    }
}

void packet_set_nw_src(struct packet *packet, uint32_t address)
{
    set_nw_address(packet, IPV4_SRC, address);
}

void packet_set_nw_dst(struct packet *packet, uint32_t address)
{
    set_nw_address(packet, IPV4_DST, address);
}

void packet_set_nw_tos(struct packet *packet, uint8_t tos)
{
    uint8_t *l4;
    uint8_t *ip = find_ip(packet, &l4);
    uint16_t old_word;

    if (ip == NULL) {
        return;
    }
    old_word = load16(ip);
    /* The two low bits are congestion notification, and not the controller's. */
    ip[IPV4_TOS] = (uint8_t) ((tos & IPV4_TOS_DSCP) | (ip[IPV4_TOS] & ~IPV4_TOS_DSCP));
    update_checksum_at(ip + IPV4_CHECKSUM, old_word, load16(ip));
}

static void set_tp_port(struct packet *packet, size_t offset, uint16_t port)
{
    uint8_t *l4 = NULL;
    uint8_t *ip = find_ip(packet, &l4);

    if (ip == NULL || l4 == NULL || ip[IPV4_PROTOCOL] == IP_PROTO_ICMP) {
        return;
    }
    update_transport_checksum(l4, ip[IPV4_PROTOCOL], load16(l4 + offset), port);
    store16(l4 + offset, port);
}

void packet_set_tp_src(struct packet *packet, uint16_t port) { set_tp_port(packet, TP_SRC, port); }

void packet_set_tp_dst(struct packet *packet, uint16_t port) { set_tp_port(packet, TP_DST, port); }
