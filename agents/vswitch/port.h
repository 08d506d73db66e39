/* Data-plane ports: identity, configuration, counters, and the device behind each. */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "list.h"
#include "loop.h"
#include "openflow.h"
#include "packet.h"
#include "util.h"

struct port;
struct vswitch;

/* How frames get in and out of a kind of port. */
struct port_driver {
    /* Reads a frame into storage with PACKET_HEADROOM free bytes before it. False: no more now. */
    bool (*receive)(struct port *port, uint8_t *storage, size_t size, struct packet *packet);
    bool (*send)(struct port *port, const struct packet *packet);
    void (*close)(struct port *port);
};

struct port_counters {
    uint64_t rx_packets;
    uint64_t tx_packets;
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    uint64_t rx_dropped;
    uint64_t tx_dropped;
    uint64_t rx_errors;
    uint64_t tx_errors;
};

struct port {
    struct list link;   /* In the table of ports. */
    struct watch watch; /* Descriptor -1 if there is no device. */
    struct vswitch *owner;
    const struct port_driver *driver;
    uint16_t number;
    uint8_t hw_addr[OFP_ETH_ALEN];
    char name[OFP_MAX_PORT_NAME_LEN];
    uint32_t config; /* OFPPC_* */
    uint32_t state;  /* OFPPS_* */
    uint32_t advertised;
    struct port_counters counters;
    uint64_t queue_packets; /* Sent through the default queue by an enqueue action. */
    uint64_t queue_bytes;
    struct sockaddr_un own_address; /* UNIX ports. */
    struct sockaddr_un peer_address;
    int interface; /* Index; AF_PACKET ports. */
};

/* Ports in ascending order of number. A switch has few: a list is searched faster than hashed. */
struct port_table {
    struct list ports;
};

void port_table_init(struct port_table *table);
void port_table_destroy(struct port_table *table, struct loop *loop);
struct port *port_table_find(const struct port_table *table, uint16_t number);

/* A port without a device; the drivers give it one. */
struct port *port_table_add(struct port_table *table, struct vswitch *owner, uint16_t number,
                            const char *name);

/* Both return false, with errno set, if the device cannot be opened. */
bool port_open_unix(struct port *port, const char *own_path, const char *peer_path);
bool port_open_interface(struct port *port, const char *interface);
void port_start(struct port *port, struct loop *loop); /* Begins to receive. */

/* Sends unless the port's configuration forbids it; counts the outcome. */
bool port_send(struct port *port, const struct packet *packet);

void port_describe(const struct port *port, struct ofp_phy_port *wire);

static inline struct port *port_from_link(struct list *link)
{
    return CONTAINER_OF(link, struct port, link);
}

#endif
