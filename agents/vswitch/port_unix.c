/* Ports over UNIX datagram sockets: one datagram is one frame. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port.h"
#include "util.h"

static bool unix_receive(struct port *port, uint8_t *storage, size_t size, struct packet *packet)
{
    ssize_t n = recv(port->watch.fd, storage + PACKET_HEADROOM, size - PACKET_HEADROOM, 0);

    if (n < 0) {
        return false;
    }
    packet_use(packet, storage + PACKET_HEADROOM, (size_t) n);
    return true;
}

static bool unix_send(struct port *port, const struct packet *packet)
{
    ssize_t n = sendto(port->watch.fd, packet->data, packet->len, MSG_NOSIGNAL,
                       (const struct sockaddr *) &port->peer_address, sizeof port->peer_address);

    if (n < 0) {
        LOG("port %u: frame lost: %s", port->number, strerror(errno));
    }
    return n >= 0;
}

static void unix_close(struct port *port)
{
    close(port->watch.fd);
    unlink(port->own_address.sun_path);
}

static const struct port_driver unix_driver = {unix_receive, unix_send, unix_close};

static bool set_address(struct sockaddr_un *address, const char *path)
{
    size_t length = strlen(path);

    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (length == 0 || length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address->sun_path, path, length);
    return true;
}

bool port_open_unix(struct port *port, const char *own_path, const char *peer_path)
{
    int fd;

    if (!set_address(&port->own_address, own_path) ||
        !set_address(&port->peer_address, peer_path)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    unlink(own_path); /* Left behind by a switch that was killed. */
    if (bind(fd, (const struct sockaddr *) &port->own_address, sizeof port->own_address) < 0) {
        int reason = errno;

        close(fd);
        errno = reason;
        return false;
    }
    port->watch.fd = fd;
    port->driver = &unix_driver;
    return true;
}
