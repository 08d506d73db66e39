/* The command line. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openflow.h"
#include "util.h"

#define DEFAULT_DATAPATH_ID 1
#define DEFAULT_MAX_PORT 255

static const char usage[] =
    "usage: vswitch (--connect | --listen) ADDRESS [--port N=DEVICE]... [OPTION]...\n"
    "An OpenFlow 1.0 switch.\n"
    "  --connect ADDRESS   connect to the controller at tcp:HOST:PORT or unix:PATH\n"
    "  --listen ADDRESS    let controllers connect to tcp:HOST:PORT or unix:PATH\n"
    "  --port N=unix:OWN,PEER\n"
    "                      port N: UNIX datagram socket OWN, frames go to socket PEER\n"
    "  --port N=IFNAME     port N: a network interface\n"
    "  --dpid HEX          datapath id (default 1)\n"
    "  --max-port N        highest number of a port that rules may name (default 255)\n"
    "  --verbose           say on stderr what happens\n"
    "  --help              print this and exit\n";

static uint64_t parse_number(const char *text, int base, uint64_t minimum, uint64_t maximum,
                             const char *what)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, base);
    if (text[0] == '\0' || text[0] == '-' || *end != '\0' || errno != 0 || value < minimum ||
        value > maximum) {
        fatal("%s is a number from %llu to %llu, not '%s'", what, (unsigned long long) minimum,
              (unsigned long long) maximum, text);
    }
    return value;
}

/* Copies the part of the text before `end`. False if it does not fit. */
static bool copy_until(char *copy, size_t size, const char *text, const char *end)
{
    size_t length = (size_t) (end - text);

    if (length >= size) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return true;
}

/* OWN,PEER */
static void parse_unix_port(struct port_option *port, const char *paths)
{
    const char *comma = strchr(paths, ',');

    if (comma == NULL || comma == paths || comma[1] == '\0') {
        fatal("a UNIX port takes two paths, unix:OWN,PEER, not 'unix:%s'", paths);
    }
    if (!copy_until(port->own_path, sizeof port->own_path, paths, comma)) {
        fatal("the path of a UNIX socket is too long: %s", paths);
    }
    port->peer_path = comma + 1;
}

/* N=unix:OWN,PEER or N=IFNAME */
static void parse_port(struct options *options, const char *text)
{
    const char *equals = strchr(text, '=');
    struct port_option *port;
    char number[8];

    if (equals == NULL || equals[1] == '\0' ||
        !copy_until(number, sizeof number, text, equals)) {
        fatal("--port takes N=unix:OWN,PEER or N=IFNAME, not '%s'", text);
    }
    if (options->n_ports == OPTIONS_MAX_PORTS) {
        fatal("at most %d ports can be given", OPTIONS_MAX_PORTS);
    }
    port = &options->ports[options->n_ports++];
    port->number = (uint16_t) parse_number(number, 10, 1, OFPP_MAX - 1, "a port");
    if (strncmp(equals + 1, "unix:", 5) == 0) {
        parse_unix_port(port, equals + 6);
    } else {
        port->interface = equals + 1;
    }
}

static void check(const struct options *options)
{
    if ((options->connect == NULL) == (options->listen == NULL)) {
        fatal("give either --connect or --listen (see --help)");
    }
    for (size_t i = 0; i < options->n_ports; i++) {
        if (options->ports[i].number > options->max_port) {
            fatal("port %u is above the maximum, %u", options->ports[i].number, options->max_port);
        }
        for (size_t j = 0; j < i; j++) {
            if (options->ports[i].number == options->ports[j].number) {
                fatal("port %u is given twice", options->ports[i].number);
            }
        }
    }
}

void options_parse(struct options *options, int argc, char *argv[])
{
    enum { CONNECT, LISTEN, DPID, PORT, MAX_PORT, VERBOSE, HELP };
    static const struct option long_options[] = {
        {"connect", required_argument, NULL, CONNECT},
        {"listen", required_argument, NULL, LISTEN},
        {"dpid", required_argument, NULL, DPID},
        {"port", required_argument, NULL, PORT},
        {"max-port", required_argument, NULL, MAX_PORT},
        {"verbose", no_argument, NULL, VERBOSE},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    int option;

    memset(options, 0, sizeof *options);
    options->datapath_id = DEFAULT_DATAPATH_ID;
    options->max_port = DEFAULT_MAX_PORT;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case CONNECT:
            options->connect = optarg;
            break;
        case LISTEN:
            options->listen = optarg;
            break;
        case DPID:
            options->datapath_id = parse_number(optarg, 16, 0, UINT64_MAX, "--dpid");
            break;
        case PORT:
            parse_port(options, optarg);
            break;
        case MAX_PORT:
            options->max_port =
                (uint16_t) parse_number(optarg, 10, 1, OFPP_MAX - 1, "--max-port");
            break;
        case VERBOSE:
            log_enabled = true;
            break;
        case HELP:
            fputs(usage, stdout);
            exit(0);
        default: /* getopt has said what is wrong. */
            exit(2);
        }
    }
    if (optind < argc) {
        fatal("unexpected argument '%s' (see --help)", argv[optind]);
    }
    check(options);
}
