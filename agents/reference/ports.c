#include "ports.h"

#include <arpa/inet.h>
#include <string.h>

#include "../common/message.h"

static void insert_in_order(struct ports *ports, const struct port *port)
{
    int i = ports->n_ports++;

    while (i > 0 && ports->ports[i - 1].number > port->number) {
        ports->ports[i] = ports->ports[i - 1];
        i--;
    }
    ports->ports[i] = *port;
}

static void add_port(struct ports *ports, uint16_t number, uint16_t address_end, const char *name,
                     struct netdev *netdev)
{
    struct port port = {.number = number, .name = name, .netdev = netdev};

    port.hw_addr[0] = 0x02; /* Locally administered. */
    port.hw_addr[4] = (uint8_t) (address_end >> 8);
    port.hw_addr[5] = (uint8_t) address_end;
    port_update_link(&port);
    insert_in_order(ports, &port);
}

void ports_open(struct ports *ports, const struct options *options)
{
    for (int i = 0; i < options->n_ports; i++) {
        struct netdev *netdev = netdev_open(&options->ports[i]);

        add_port(ports, options->ports[i].number, options->ports[i].number, netdev->name, netdev);
    }
    add_port(ports, OFPP_LOCAL, 0, "local", NULL);
}

void ports_close(struct ports *ports)
{
    for (int i = 0; i < ports->n_ports; i++) {
        netdev_close(ports->ports[i].netdev);
    }
}

struct port *ports_find(struct ports *ports, uint16_t number)
{
    for (int i = 0; i < ports->n_ports; i++) {
        if (ports->ports[i].number == number) {
            return &ports->ports[i];
        }
    }
    return NULL;
}

bool port_send(struct port *port, const struct packet *packet)
{
    if (port->netdev == NULL || (port->config & (OFPPC_PORT_DOWN | OFPPC_NO_FWD))) {
        port->tx_dropped++;
        return false;
    }
    if (!netdev_send(port->netdev, packet->data, packet->size)) {
        port->tx_errors++;
        return false;
    }
    port->tx_packets++;
    port->tx_bytes += packet->size;
    return true;
}

bool port_update_link(struct port *port)
{
    bool up = port->netdev == NULL || netdev_link_is_up(port->netdev);
    uint32_t state = up ? 0 : OFPPS_LINK_DOWN;
    bool changed = state != port->state;

    port->state = state;
    return changed;
}

void port_describe(const struct port *port, struct ofp_phy_port *wire)
{
    memset(wire, 0, sizeof *wire);
    wire->port_no = htons(port->number);
    memcpy(wire->hw_addr, port->hw_addr, sizeof wire->hw_addr);
    message_put_string(wire->name, sizeof wire->name, port->name);
    wire->config = htonl(port->config);
    wire->state = htonl(port->state);
    /* Neither sockets nor virtual interfaces have a medium, a speed or a link partner. */
    wire->advertised = htonl(port->advertised);
}
