/* Sending a packet out of ports. */
#include "output.h"

#include "vswitch.h"

void output_to_port(struct vswitch *sw, const struct packet *packet, uint16_t port_number)
{
    struct port *port = port_table_find(&sw->ports, port_number);

    if (port != NULL) {
        port_send(port, packet);
    }
}

void output_to_queue(struct vswitch *sw, const struct packet *packet, uint16_t port_number)
{
    struct port *port = port_table_find(&sw->ports, port_number);

    if (port != NULL && port_send(port, packet)) {
        port->queue_packets++;
        port->queue_bytes += packet->len;
    }
}

void output_to_all(struct vswitch *sw, const struct packet *packet, uint16_t in_port,
                   uint32_t except)
{
    LIST_FOR_EACH (link, &sw->ports.ports) {
        struct port *port = port_from_link(link);

        if (port->number != in_port && !(port->config & except)) {
            port_send(port, packet);
        }
    }
}
