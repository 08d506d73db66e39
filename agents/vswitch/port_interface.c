/* Ports over network interfaces, through AF_PACKET sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port.h"
#include "util.h"

/* The kernel takes the outer tag off before a socket sees the frame; put it back. */
static void restore_vlan_tag(struct msghdr *message, struct packet *packet)
{
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control != NULL;
         control = CMSG_NXTHDR(message, control)) {
        struct tpacket_auxdata auxiliary;

        if (control->cmsg_level == SOL_PACKET && control->cmsg_type == PACKET_AUXDATA) {
            memcpy(&auxiliary, CMSG_DATA(control), sizeof auxiliary);
            if (auxiliary.tp_status & TP_STATUS_VLAN_VALID) {
                packet_push_vlan(packet, auxiliary.tp_vlan_tci);
            }
        }
    }
}

static bool interface_receive(struct port *port, uint8_t *storage, size_t size,
                              struct packet *packet)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct sockaddr_ll sender;
    struct iovec vector = {storage + PACKET_HEADROOM, size - PACKET_HEADROOM};
    struct msghdr message = {
        .msg_name = &sender,
        .msg_iov = &vector,
        .msg_iovlen = 1,
    };
    ssize_t n;

    do {
        message.msg_namelen = sizeof sender;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        n = recvmsg(port->watch.fd, &message, 0);
        if (n < 0) {
            return false;
        }
    } while (sender.sll_pkttype == PACKET_OUTGOING); /* Our own, looped back. */
    packet_use(packet, storage + PACKET_HEADROOM, (size_t) n);
    restore_vlan_tag(&message, packet);
    return true;
}

static bool interface_send(struct port *port, const struct packet *packet)
{
    ssize_t n = send(port->watch.fd, packet->data, packet->len, MSG_NOSIGNAL);

    if (n < 0) {
        LOG("port %u: frame lost: %s", port->number, strerror(errno));
    }
    return n >= 0;
}

static void interface_close(struct port *port) { close(port->watch.fd); }

static const struct port_driver interface_driver = {interface_receive, interface_send,
                                                    interface_close};

static bool interface_is_up(int fd, const char *interface)
{
    struct ifreq request;

    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
    if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
        return false;
    }
    return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

static bool attach(int fd, int interface)
{
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(ETH_P_ALL),
        .sll_ifindex = interface,
    };
    struct packet_mreq membership = {.mr_ifindex = interface, .mr_type = PACKET_MR_PROMISC};
    int on = 1;

    return setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) == 0 &&
           setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) == 0 &&
           bind(fd, (const struct sockaddr *) &address, sizeof address) == 0;
}

bool port_open_interface(struct port *port, const char *interface)
{
    int index = (int) if_nametoindex(interface);
    int fd;

    if (index == 0) {
        return false;
    }
    /* Protocol 0: hear nothing until bound, or frames of every interface would queue up here. */
    fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    if (!attach(fd, index)) {
        int reason = errno;

        close(fd);
        errno = reason;
        return false;
    }
    port->watch.fd = fd;
    port->driver = &interface_driver;
    port->interface = index;
    port->state = interface_is_up(fd, interface) ? 0 : OFPPS_LINK_DOWN;
    return true;
}
