/* The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_PORTS 64

#define OPTIONS_MAX_PATH 108 /* As long as a UNIX socket address allows. */

struct port_option {
    uint16_t number;
    const char *interface; /* NULL for a UNIX port. */
    char own_path[OPTIONS_MAX_PATH];
    const char *peer_path;
};

struct options {
    const char *connect; /* Exactly one of the two is set. */
    const char *listen;
    uint64_t datapath_id;
    uint16_t max_port;
    struct port_option ports[OPTIONS_MAX_PORTS];
    size_t n_ports;
};

/* Ends the process with a message if something is wrong. Strings point into the arguments. */
void options_parse(struct options *options, int argc, char *argv[]);

#endif
