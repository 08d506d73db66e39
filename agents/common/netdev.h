/* The wire behind a data-plane port: an AF_PACKET socket on an interface, or a UNIX datagram socket. */
#ifndef NETDEV_H
#define NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "options.h"

struct netdev {
    int fd;
    char name[IFNAMSIZ];
    int ifindex;                /* 0 for a UNIX port. */
    struct sockaddr_un own;     /* Of a UNIX port: bound here, */
    struct sockaddr_un peer;    /* sends there. */
};

/* Opens the wire that 'option' names; on failure prints a sentence and exits with status 2. */
struct netdev *netdev_open(const struct port_option *option);
void netdev_close(struct netdev *netdev);

/* Receives one frame.  Returns its length, or -1 if there is none now (or it did not fit). */
ssize_t netdev_receive(struct netdev *netdev, uint8_t *frame, size_t capacity);

/* Sends one frame.  Returns false if the wire did not take it: like a cable, nothing waits. */
bool netdev_send(struct netdev *netdev, const uint8_t *frame, size_t length);

/* Whether the interface has a link now; a UNIX port always has. */
bool netdev_link_is_up(const struct netdev *netdev);

/* A descriptor that becomes readable when some interface's link changes, or -1 on failure. */
int linkwatch_open(void);
void linkwatch_drain(int fd);

#endif
