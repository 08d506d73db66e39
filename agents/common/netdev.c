#include "netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

#define ETH_ADDRESSES_LENGTH (2 * ETH_ALEN)
#define VLAN_TAG_LENGTH 4

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

static void __attribute__((noreturn)) fail(const char *what, const char *name)
{
    fprintf(stderr, "%s '%s': %s.\n", what, name, strerror(errno));
    exit(2);
}

static void open_unix(struct netdev *netdev, const struct port_option *option)
{
    netdev->own = option->own;
    netdev->peer = option->peer;
    snprintf(netdev->name, sizeof netdev->name, "port%u", option->number);

    netdev->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unlink(netdev->own.sun_path); /* A killed predecessor leaves its socket behind. */
    if (netdev->fd < 0
        || bind(netdev->fd, (struct sockaddr *) &netdev->own, sizeof netdev->own) < 0) {
        fail("Cannot bind the port's socket", netdev->own.sun_path);
    }
}

/* Bound to its interface, an AF_PACKET socket would also see what the host sends there, and would
 * lose VLAN tags that the kernel keeps beside the frame: a switch wants neither. */
static void set_packet_options(struct netdev *netdev)
{
    struct packet_mreq promiscuous = {.mr_ifindex = netdev->ifindex, .mr_type = PACKET_MR_PROMISC};
    int on = 1;

    if (setsockopt(netdev->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)
            < 0
        || setsockopt(netdev->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) < 0
        || setsockopt(netdev->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) < 0) {
        fail("Cannot set up the packet socket of interface", netdev->name);
    }
}

static void open_interface(struct netdev *netdev, const struct port_option *option)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

    snprintf(netdev->name, sizeof netdev->name, "%s", option->interface);
    netdev->ifindex = (int) if_nametoindex(netdev->name);
    if (netdev->ifindex == 0) {
        fail("There is no interface", netdev->name);
    }
    /* Protocol 0 until bound, or frames of every interface would arrive in between. */
    netdev->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (netdev->fd < 0) {
        fail("Cannot open a packet socket for interface", netdev->name);
    }
    set_packet_options(netdev);
    address.sll_ifindex = netdev->ifindex;
    if (bind(netdev->fd, (struct sockaddr *) &address, sizeof address) < 0) {
        fail("Cannot bind to interface", netdev->name);
    }
}

struct netdev *netdev_open(const struct port_option *option)
{
    struct netdev *netdev = xcalloc(sizeof *netdev);

    if (option->interface != NULL) {
        open_interface(netdev, option);
    } else {
        open_unix(netdev, option);
    }
    set_nonblocking(netdev->fd);
    return netdev;
}

void netdev_close(struct netdev *netdev)
{
    if (netdev == NULL) {
        return;
    }
    close(netdev->fd);
    if (netdev->ifindex == 0) {
        unlink(netdev->own.sun_path);
    }
    free(netdev);
}

/* Puts the VLAN tag that the kernel took off a received frame back into it. */
static size_t restore_vlan_tag(struct msghdr *message, uint8_t *frame, size_t length)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        struct tpacket_auxdata aux;
        uint16_t tag[2];

        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) {
            continue;
        }
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || length < ETH_ADDRESSES_LENGTH) {
            continue;
        }
        tag[0] = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid
                                                                : ETHERTYPE_VLAN);
        tag[1] = htons(aux.tp_vlan_tci);
        memmove(frame + ETH_ADDRESSES_LENGTH + VLAN_TAG_LENGTH, frame + ETH_ADDRESSES_LENGTH,
                length - ETH_ADDRESSES_LENGTH);
        memcpy(frame + ETH_ADDRESSES_LENGTH, tag, sizeof tag);
        return length + VLAN_TAG_LENGTH;
    }
    return length;
}

static ssize_t receive_from_interface(struct netdev *netdev, uint8_t *frame, size_t capacity)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
        struct cmsghdr align;
    } control;
    struct iovec vector = {.iov_base = frame, .iov_len = capacity - VLAN_TAG_LENGTH};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    ssize_t length = recvmsg(netdev->fd, &message, MSG_DONTWAIT);

    if (length < 0 || (message.msg_flags & MSG_TRUNC)) {
        return -1;
    }
    return (ssize_t) restore_vlan_tag(&message, frame, (size_t) length);
}

ssize_t netdev_receive(struct netdev *netdev, uint8_t *frame, size_t capacity)
{
    ssize_t length;

    if (netdev->ifindex != 0) {
        return receive_from_interface(netdev, frame, capacity);
    }
    /* With MSG_TRUNC the length is the datagram's own, so that a too long one is recognised. */
    length = recv(netdev->fd, frame, capacity, MSG_DONTWAIT | MSG_TRUNC);
    return length > (ssize_t) capacity ? -1 : length;
}

bool netdev_send(struct netdev *netdev, const uint8_t *frame, size_t length)
{
    ssize_t sent;

    if (netdev->ifindex != 0) {
        sent = send(netdev->fd, frame, length, MSG_DONTWAIT);
    } else {
        sent = sendto(netdev->fd, frame, length, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *) &netdev->peer, sizeof netdev->peer);
    }
    return sent == (ssize_t) length;
}

bool netdev_link_is_up(const struct netdev *netdev)
{
    struct ifreq request;

    if (netdev->ifindex == 0) {
        return true;
    }
    memset(&request, 0, sizeof request);
    memcpy(request.ifr_name, netdev->name, sizeof request.ifr_name);
    if (ioctl(netdev->fd, SIOCGIFFLAGS, &request) < 0) {
        return false;
    }
    return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

int linkwatch_open(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (struct sockaddr *) &address, sizeof address) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The messages only say that something changed; the state itself is asked for. */
void linkwatch_drain(int fd)
{
    char ignored[4096];

    while (recv(fd, ignored, sizeof ignored, MSG_DONTWAIT) > 0 || errno == ENOBUFS) {
        errno = 0;
    }
}
