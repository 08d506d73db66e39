#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openflow.h"
#include "util.h"

static const char usage[] =
    "usage: %s (--connect | --listen) ADDRESS [--port N=DEVICE]... [OPTION]...\n"
    "An OpenFlow 1.0 switch.\n"
    "  --connect ADDRESS   connect to the controller at tcp:HOST:PORT or unix:PATH\n"
    "  --listen ADDRESS    let controllers connect to tcp:HOST:PORT or unix:PATH\n"
    "  --port N=unix:OWN,PEER\n"
    "                      port N: UNIX datagram socket OWN, frames go to socket PEER\n"
    "  --port N=IFNAME     port N: a network interface\n"
    "  --dpid HEX          datapath id (default 1)\n"
    "  --verbose           say on stderr what happens\n"
    "  --help              print this and exit\n";

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static void parse_unix_path(struct sockaddr_un *address, const char *path, size_t length)
{
    if (length == 0 || length >= sizeof address->sun_path) {
        fail("The UNIX socket path '%.*s' must have 1 to %zu characters.", (int) length, path,
             sizeof address->sun_path - 1);
    }
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
}

static void parse_tcp(struct endpoint *endpoint, const char *text)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const char *colon = strrchr(text, ':');
    char host[256];
    size_t host_length;
    int error;

    if (colon == NULL || colon == text || (size_t) (colon - text) >= sizeof host) {
        fail("'%s' is not tcp:HOST:PORT.", endpoint->text);
    }
    host_length = (size_t) (colon - text);
    if (text[0] == '[' && colon[-1] == ']') { /* An IPv6 address is written in brackets. */
        text++;
        host_length -= 2;
    }
    memcpy(host, text, host_length);
    host[host_length] = '\0';

    error = getaddrinfo(host, colon + 1, &hints, &found);
    if (error) {
        fail("The address '%s' cannot be resolved: %s.", endpoint->text, gai_strerror(error));
    }
    memcpy(&endpoint->address, found->ai_addr, found->ai_addrlen);
    endpoint->address_length = found->ai_addrlen;
    freeaddrinfo(found);
}

static void parse_endpoint(struct endpoint *endpoint, const char *text, bool listen)
{
    if (endpoint->text != NULL) {
        fail("Give either --connect or --listen, once (see --help).");
    }
    endpoint->text = text;
    endpoint->listen = listen;
    if (!strncmp(text, "tcp:", 4)) {
        parse_tcp(endpoint, text + 4);
    } else if (!strncmp(text, "unix:", 5)) {
        struct sockaddr_un address;

        parse_unix_path(&address, text + 5, strlen(text + 5));
        memcpy(&endpoint->address, &address, sizeof address);
        endpoint->address_length = sizeof address;
    } else {
        fail("An address is tcp:HOST:PORT or unix:PATH, not '%s'.", text);
    }
}

static bool port_taken(const struct options *options, unsigned long number)
{
    for (int i = 0; i < options->n_ports; i++) {
        if (options->ports[i].number == number) {
            return true;
        }
    }
    return false;
}

static void parse_port(struct options *options, const char *text)
{
    struct port_option *port;
    unsigned long number;
    char *end;

    number = strtoul(text, &end, 10);
    if (end == text || *end != '=' || number < 1 || number >= OFPP_MAX) {
        fail("'%s' is not N=unix:OWN,PEER or N=IFNAME with N from 1 to %d.", text, OFPP_MAX - 1);
    }
    if (options->n_ports == MAX_PORTS) {
        fail("At most %d ports can be given.", MAX_PORTS);
    }
    if (port_taken(options, number)) {
        fail("Port %lu is given twice.", number);
    }

    port = &options->ports[options->n_ports++];
    port->number = (uint16_t) number;
    text = end + 1;
    if (!strncmp(text, "unix:", 5)) {
        const char *own = text + 5;
        const char *comma = strchr(own, ',');

        if (comma == NULL) {
            fail("Port %lu needs two paths: unix:OWN,PEER.", number);
        }
        parse_unix_path(&port->own, own, (size_t) (comma - own));
        parse_unix_path(&port->peer, comma + 1, strlen(comma + 1));
    } else if (text[0] == '\0' || strlen(text) >= IFNAMSIZ) {
        fail("'%s' is not the name of a network interface.", text);
    } else {
        port->interface = text;
    }
}

static uint64_t parse_dpid(const char *text)
{
    char *end;
    uint64_t dpid;

    errno = 0;
    dpid = strtoull(text, &end, 16);
    if (end == text || *end != '\0' || errno || text[0] == '-') {
        fail("--dpid is a hexadecimal number of at most 64 bits, not '%s'.", text);
    }
    return dpid;
}

void options_parse(struct options *options, int argc, char *argv[])
{
    static const struct option known[] = {
        {"connect", required_argument, NULL, 'c'}, {"listen", required_argument, NULL, 'l'},
        {"dpid", required_argument, NULL, 'd'},    {"port", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},       {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    memset(options, 0, sizeof *options);
    options->dpid = 1;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'c':
            parse_endpoint(&options->endpoint, optarg, false);
            break;
        case 'l':
            parse_endpoint(&options->endpoint, optarg, true);
            break;
        case 'd':
            options->dpid = parse_dpid(optarg);
            break;
        case 'p':
            parse_port(options, optarg);
            break;
        case 'v':
            log_enabled = true;
            break;
        case 'h':
            printf(usage, argv[0]);
            exit(0);
        default:
            fprintf(stderr, usage, argv[0]);
            exit(2);
        }
    }
    if (optind < argc) {
        fail("There is an unexpected argument '%s' (see --help).", argv[optind]);
    }
    if (options->endpoint.text == NULL) {
        fail("Give either --connect or --listen (see --help).");
    }
}
