/* The command line that all our agents share. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX_PORTS 64

/* Where the control channel is. */
struct endpoint {
    bool listen;                      /* Otherwise connect out. */
    struct sockaddr_storage address;  /* AF_INET, AF_INET6 or AF_UNIX. */
    socklen_t address_length;
    const char *text;                 /* As given, for messages. */
};

/* One data-plane port: a network interface, or a pair of UNIX datagram sockets. */
struct port_option {
    uint16_t number;
    const char *interface;            /* NULL for a UNIX port. */
    struct sockaddr_un own;
    struct sockaddr_un peer;
};

struct options {
    struct endpoint endpoint;
    uint64_t dpid;
    struct port_option ports[MAX_PORTS];
    int n_ports;
};

/* Parses the command line; on a mistake prints one sentence to stderr and exits with status 2. */
void options_parse(struct options *options, int argc, char *argv[]);

#endif
