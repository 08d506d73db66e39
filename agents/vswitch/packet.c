/* An Ethernet frame in memory: storage, and finding its headers. */
#include "packet.h"

#include <stdlib.h>

#include "headers.h"
#include "openflow.h"
#include "util.h"

#define LLC_SNAP_LEN 8

static const uint8_t llc_snap_ethernet[] = {0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00};

void packet_use(struct packet *packet, uint8_t *bytes, size_t len)
{
    packet->data = bytes;
    packet->len = len;
    packet->headroom = PACKET_HEADROOM;
    packet->storage = NULL;
}

void packet_copy(struct packet *packet, const void *bytes, size_t len)
{
    uint8_t *storage = xmalloc(PACKET_HEADROOM + len);

    if (len > 0) {
        memcpy(storage + PACKET_HEADROOM, bytes, len);
    }
    packet_use(packet, storage + PACKET_HEADROOM, len);
    packet->storage = storage;
}

void packet_free(struct packet *packet)
{
    free(packet->storage);
    packet->storage = NULL;
}

/* Returns the offset of what follows the Ethernet, VLAN and LLC headers. */
static size_t parse_link_layer(const struct packet *packet, struct layers *layers)
{
    const uint8_t *data = packet->data;
    size_t offset = ETH_HEADER_LEN;

    layers->dl_type = load16(data + ETH_TYPE);
    if (layers->dl_type == ETH_TYPE_VLAN && packet->len >= offset + VLAN_TAG_LEN) {
        layers->tagged = true;
        layers->vlan_tci = load16(data + offset);
        layers->dl_type = load16(data + offset + 2);
        offset += VLAN_TAG_LEN;
    }
    if (layers->dl_type >= ETH_TYPE_MIN) {
        return offset;
    }
    if (packet->len >= offset + LLC_SNAP_LEN &&
        memcmp(data + offset, llc_snap_ethernet, sizeof llc_snap_ethernet) == 0) {
        layers->dl_type = load16(data + offset + sizeof llc_snap_ethernet);
        return offset + LLC_SNAP_LEN;
    }
    layers->dl_type = OFP_DL_TYPE_NOT_ETH_TYPE;
    return offset;
}

static size_t transport_header_len(uint8_t protocol)
{
    switch (protocol) {
    case IP_PROTO_TCP:
        return TCP_HEADER_MIN;
    case IP_PROTO_UDP:
        return UDP_HEADER_LEN;
    case IP_PROTO_ICMP:
        return ICMP_HEADER_LEN;
    default:
        return 0;
    }
}

static void parse_ip(const struct packet *packet, size_t offset, struct layers *layers)
{
    const uint8_t *ip = packet->data + offset;
    size_t available = packet->len - offset;
    size_t header_len;
    size_t needed;

    if (available < IPV4_HEADER_MIN) {
        return;
    }
    header_len = (size_t) (ip[0] & 0x0f) * 4;
    if (header_len < IPV4_HEADER_MIN || header_len > available) {
        return;
    }
    layers->l3 = offset;
    layers->fragment = (load16(ip + IPV4_FRAGMENT) & IPV4_FRAGMENT_BITS) != 0;
    needed = transport_header_len(ip[IPV4_PROTOCOL]);
    if (needed > 0 && !layers->fragment && available - header_len >= needed) {
        layers->l4 = offset + header_len;
    }
}

void packet_parse(const struct packet *packet, struct layers *layers)
{
    size_t offset;

    memset(layers, 0, sizeof *layers);
    if (packet->len < ETH_HEADER_LEN) {
        return;
    }
    offset = parse_link_layer(packet, layers);
    if (layers->dl_type == ETH_TYPE_IP) {
        parse_ip(packet, offset, layers);
    } else if (layers->dl_type == ETH_TYPE_ARP && packet->len - offset >= ARP_LEN) {
        layers->l3 = offset;
    }
}
