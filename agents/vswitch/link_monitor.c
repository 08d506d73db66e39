/* Follows the state of network interfaces, and tells controllers with port_status. */
#include "link_monitor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "async.h"
#include "util.h"
#include "vswitch.h"

#define BUFFER_SIZE 8192

static struct port *find_port(struct vswitch *sw, int interface)
{
    LIST_FOR_EACH (link, &sw->ports.ports) {
        struct port *port = port_from_link(link);

        if (port->interface == interface) {
            return port;
        }
    }
    return NULL;
}

static void link_changed(struct vswitch *sw, const struct nlmsghdr *header)
{
    const struct ifinfomsg *info = NLMSG_DATA(header);
    struct port *port = find_port(sw, info->ifi_index);
    bool up = header->nlmsg_type == RTM_NEWLINK && (info->ifi_flags & IFF_UP) &&
              (info->ifi_flags & IFF_RUNNING);
    uint32_t state = up ? 0 : OFPPS_LINK_DOWN;

    if (port != NULL && port->state != state) {
        port->state = state;
        async_port_status(sw, port, OFPPR_MODIFY);
    }
}

static void monitor_ready(struct watch *watch, uint32_t events)
{
    struct link_monitor *monitor = CONTAINER_OF(watch, struct link_monitor, watch);
    _Alignas(struct nlmsghdr) char buffer[BUFFER_SIZE];
    ssize_t size = recv(watch->fd, buffer, sizeof buffer, 0);

    (void) events;
    if (size < 0) {
        return;
    }
    for (struct nlmsghdr *header = (struct nlmsghdr *) buffer; NLMSG_OK(header, size);
         header = NLMSG_NEXT(header, size)) {
        bool about_link = header->nlmsg_type == RTM_NEWLINK || header->nlmsg_type == RTM_DELLINK;

        if (about_link && header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg))) {
            link_changed(monitor->owner, header);
        }
    }
}

void link_monitor_init(struct link_monitor *monitor) { monitor->watch.fd = -1; }

void link_monitor_start(struct link_monitor *monitor, struct vswitch *owner)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof address) < 0) {
        fatal("cannot watch the state of interfaces: %s", strerror(errno));
    }
    monitor->owner = owner;
    monitor->watch.fd = fd;
    monitor->watch.callback = monitor_ready;
    watch_add(&owner->loop, &monitor->watch, EPOLLIN);
}

void link_monitor_stop(struct link_monitor *monitor, struct loop *loop)
{
    if (monitor->watch.fd >= 0) {
        watch_remove(loop, &monitor->watch);
        close(monitor->watch.fd);
        monitor->watch.fd = -1;
    }
}
