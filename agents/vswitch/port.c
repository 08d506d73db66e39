/* Data-plane ports: the table, receiving, sending, description. */
#include "port.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "datapath.h"
#include "util.h"

/* Frames taken from one port before others get their turn. */
#define RECEIVE_BATCH 32

void port_table_init(struct port_table *table) { list_init(&table->ports); }

static void destroy_port(struct port *port, struct loop *loop)
{
    list_remove(&port->link);
    if (port->watch.fd >= 0) {
        watch_remove(loop, &port->watch);
        port->driver->close(port);
    }
    free(port);
}

void port_table_destroy(struct port_table *table, struct loop *loop)
{
    LIST_FOR_EACH_SAFE (link, &table->ports) {
        destroy_port(port_from_link(link), loop);
    }
}

struct port *port_table_find(const struct port_table *table, uint16_t number)
{
    LIST_FOR_EACH (link, &table->ports) {
        struct port *port = port_from_link(link);

        if (port->number == number) {
            return port;
        }
    }
    return NULL;
}

static void insert_in_order(struct port_table *table, struct port *port)
{
    struct list *position = &table->ports;

    LIST_FOR_EACH (link, &table->ports) {
        if (port_from_link(link)->number > port->number) {
            position = link;
            break;
        }
    }
    list_insert_before(position, &port->link);
}

struct port *port_table_add(struct port_table *table, struct vswitch *owner, uint16_t number,
                            const char *name)
{
    struct port *port = xcalloc(1, sizeof *port);
    uint16_t address_end = number == OFPP_LOCAL ? 0 : number;

    port->owner = owner;
    port->number = number;
    port->watch.fd = -1;
    snprintf(port->name, sizeof port->name, "%s", name);
    port->hw_addr[0] = 0x02; /* Locally administered. */
    port->hw_addr[4] = (uint8_t) (address_end >> 8);
    port->hw_addr[5] = (uint8_t) address_end;
    insert_in_order(table, port);
    return port;
}

static void port_ready(struct watch *watch, uint32_t events)
{
    /* Frames are handled one at a time and copied if kept, so that one buffer serves all. */
    static uint8_t storage[PACKET_HEADROOM + PACKET_MAX_LEN];
    struct port *port = CONTAINER_OF(watch, struct port, watch);
    struct packet packet;

    (void) events;
    for (int i = 0; i < RECEIVE_BATCH; i++) {
        if (!port->driver->receive(port, storage, sizeof storage, &packet)) {
            break;
        }
        datapath_receive(port->owner, port, &packet);
    }
}

void port_start(struct port *port, struct loop *loop)
{
    port->watch.callback = port_ready;
    watch_add(loop, &port->watch, EPOLLIN);
}

bool port_send(struct port *port, const struct packet *packet)
{
    if (port->config & (OFPPC_PORT_DOWN | OFPPC_NO_FWD) || port->watch.fd < 0) {
        port->counters.tx_dropped++;
        return false;
    }
    if (!port->driver->send(port, packet)) {
        port->counters.tx_errors++;
        return false;
    }
    port->counters.tx_packets++;
    port->counters.tx_bytes += packet->len;
    return true;
}

void port_describe(const struct port *port, struct ofp_phy_port *wire)
{
    memset(wire, 0, sizeof *wire);
    wire->port_no = htons(port->number);
    memcpy(wire->hw_addr, port->hw_addr, sizeof wire->hw_addr);
    memcpy(wire->name, port->name, sizeof wire->name);
    wire->config = htonl(port->config);
    wire->state = htonl(port->state);
    /* Neither sockets nor virtual interfaces have a medium, a speed or a link partner. */
    wire->advertised = htonl(port->advertised);
}
