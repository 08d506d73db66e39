/* Data-plane ports: identity, configuration, counters, and the wire behind each. */
#ifndef PORTS_H
#define PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/netdev.h"
#include "../common/openflow.h"
#include "../common/options.h"
#include "packet.h"

struct port {
    uint16_t number;
    uint8_t hw_addr[OFP_ETH_ALEN];
    const char *name;
    struct netdev *netdev;      /* NULL for the local port: there is no host behind it. */
    uint32_t config;            /* OFPPC_* */
    uint32_t state;             /* OFPPS_* */
    uint32_t advertised;
    uint64_t rx_packets;
    uint64_t tx_packets;
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    uint64_t rx_dropped;
    uint64_t tx_dropped;
    uint64_t rx_errors;
    uint64_t tx_errors;
};

/* In ascending order of number; the local port is the last. */
struct ports {
    struct port ports[MAX_PORTS + 1];
    int n_ports;
};

/* Opens the ports; on failure prints a sentence and exits. */
void ports_open(struct ports *ports, const struct options *options);
void ports_close(struct ports *ports);

struct port *ports_find(struct ports *ports, uint16_t number);

/* Sends unless the port's configuration forbids it, and counts the outcome. */
bool port_send(struct port *port, const struct packet *packet);

/* Asks for the state of the link.  Returns true if it has changed. */
bool port_update_link(struct port *port);

void port_describe(const struct port *port, struct ofp_phy_port *wire);

#endif
