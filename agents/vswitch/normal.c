/* OFPP_NORMAL: forwarding by MAC learning. */
#include "normal.h"

#include "headers.h"
#include "output.h"
#include "vswitch.h"

static bool is_multicast(const uint8_t *address) { return (address[0] & 1) != 0; }

/* Link-local protocols (01:80:c2:00:00:0x), which no bridge forwards. */
static bool is_reserved(const uint8_t *address)
{
    static const uint8_t prefix[] = {0x01, 0x80, 0xc2, 0x00, 0x00};

    return memcmp(address, prefix, sizeof prefix) == 0 && (address[5] & 0xf0) == 0;
}

static void learn_source(struct vswitch *sw, const uint8_t *source, uint16_t vlan, uint16_t in_port)
{
    /* A packet_out may claim to come from nowhere. */
    if (!is_multicast(source) && port_table_find(&sw->ports, in_port) != NULL) {
        mac_table_learn(&sw->macs, source, vlan, in_port);
    }
}

void normal_forward(struct vswitch *sw, const struct packet *packet, uint16_t in_port)
{
    const uint8_t *destination = packet->data + ETH_DST;
    struct layers layers;
    uint16_t vlan;
    uint16_t port;

    packet_parse(packet, &layers);
    vlan = layers.vlan_tci & 0x0fff;
    learn_source(sw, packet->data + ETH_SRC, vlan, in_port);
    if (is_reserved(destination)) {
        return;
    }
    if (is_multicast(destination) || !mac_table_lookup(&sw->macs, destination, vlan, &port)) {
        output_to_all(sw, packet, in_port, OFPPC_NO_FLOOD);
    } else if (port != in_port) {
        output_to_port(sw, packet, port);
    }
}
