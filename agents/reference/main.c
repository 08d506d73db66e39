/* reference: an OpenFlow 1.0 switch.  Puts the parts together and polls until told to stop. */
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "../common/options.h"
#include "../common/stop.h"
#include "../common/util.h"
#include "async.h"
#include "datapath.h"

/* The descriptors that the loop waits for. */
struct poll_set {
    struct pollfd fds[REMOTES_MAX_POLLFDS + MAX_PORTS + 2];
    int n_fds;
    int n_remotes;              /* The controllers come first, */
    int stop;                   /* at these indices are the others. */
    int links;
    int ports;
};

static int add_fd(struct poll_set *set, int fd)
{
    set->fds[set->n_fds] = (struct pollfd){.fd = fd, .events = POLLIN};
    return set->n_fds++;
}

static void fill_poll_set(struct poll_set *set, const struct datapath *datapath, int stop,
                          int links)
{
    set->n_remotes = remotes_poll_set(&datapath->remotes, set->fds);
    set->n_fds = set->n_remotes;
    set->stop = add_fd(set, stop);
    set->links = add_fd(set, links); /* poll() passes over a descriptor of -1. */
    set->ports = set->n_fds;
    for (int i = 0; i < datapath->ports.n_ports; i++) {
        if (datapath->ports.ports[i].netdev != NULL) {
            add_fd(set, datapath->ports.ports[i].netdev->fd);
        }
    }
}

/* How long there is nothing to do without any event, in ms; -1 for ever. */
static int next_timeout(const struct datapath *datapath, int64_t now)
{
    int remotes = remotes_timeout(&datapath->remotes, now);
    int64_t expiry = table_next_expiry(&datapath->table);
    int64_t flows = expiry > now ? expiry - now : 0;

    if (expiry == INT64_MAX) {
        return remotes;
    }
    if (flows > INT_MAX) {
        flows = INT_MAX;
    }
    return remotes >= 0 && remotes < flows ? remotes : (int) flows;
}

static void update_links(struct datapath *datapath, int links)
{
    linkwatch_drain(links);
    for (int i = 0; i < datapath->ports.n_ports; i++) {
        struct port *port = &datapath->ports.ports[i];

        if (port_update_link(port)) {
            async_port_status(datapath, port, OFPPR_MODIFY);
        }
    }
}

/* The local port, which is the last, has no descriptor: the others are in the order of the set. */
static void receive_packets(struct datapath *datapath, const struct poll_set *set)
{
    for (int i = set->ports; i < set->n_fds; i++) {
        if (set->fds[i].revents) {
            datapath_receive(datapath, &datapath->ports.ports[i - set->ports]);
        }
    }
}

static void run(struct datapath *datapath, int stop, int links)
{
    struct poll_set set;

    for (;;) {
        int64_t now;

        fill_poll_set(&set, datapath, stop, links);
        if (poll(set.fds, (nfds_t) set.n_fds, next_timeout(datapath, clock_ms())) < 0) {
            continue; /* Interrupted; the pipe knows why. */
        }
        if (set.fds[set.stop].revents) {
            return;
        }
        now = clock_ms();
        table_expire(&datapath->table, now, async_flow_removed, datapath);
        remotes_run(&datapath->remotes, set.fds, set.n_remotes, now);
        if (set.fds[set.links].revents) {
            update_links(datapath, links);
        }
        receive_packets(datapath, &set);
    }
}

static bool has_interface(const struct options *options)
{
    for (int i = 0; i < options->n_ports; i++) {
        if (options->ports[i].interface != NULL) {
            return true;
        }
    }
    return false;
}

int main(int argc, char *argv[])
{
    static struct datapath datapath;
    struct options options;
    int links = -1;
    int stop;

    options_parse(&options, argc, argv);
    stop = stop_open();
    datapath_open(&datapath, &options);
    if (has_interface(&options)) {
        links = linkwatch_open();
    }
    run(&datapath, stop, links);
    datapath_close(&datapath);
    if (links >= 0) {
        close(links);
    }
    stop_close();
    return 0;
}
