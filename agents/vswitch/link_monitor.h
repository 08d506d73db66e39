/* Follows the state of the interfaces behind AF_PACKET ports, through a netlink socket. */
#ifndef LINK_MONITOR_H
#define LINK_MONITOR_H

#include "loop.h"

struct vswitch;

struct link_monitor {
    struct watch watch; /* Descriptor -1 while not running. */
    struct vswitch *owner;
};

void link_monitor_init(struct link_monitor *monitor);
void link_monitor_start(struct link_monitor *monitor, struct vswitch *owner);
void link_monitor_stop(struct link_monitor *monitor, struct loop *loop);

#endif
