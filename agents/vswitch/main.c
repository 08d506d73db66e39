/* vswitch: an OpenFlow 1.0 switch. Puts the parts together and runs them until told to stop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "connection.h"
#include "options.h"
#include "util.h"
#include "vswitch.h"

static int stop_fd; /* An eventfd, so that a signal is an event of the loop like any other. */

static void request_stop(int signal_number)
{
    uint64_t one = 1;
    int saved = errno;

    (void) signal_number;
    if (write(stop_fd, &one, sizeof one) < 0) {
        /* The counter is at its maximum: the loop will stop as it is. */
    }
    errno = saved;
}

struct stop_watch {
    struct watch watch;
    bool requested;
};

static void stop_requested(struct watch *watch, uint32_t events)
{
    (void) events;
    CONTAINER_OF(watch, struct stop_watch, watch)->requested = true;
}

static void catch_signals(struct loop *loop, struct stop_watch *stop)
{
    struct sigaction action = {.sa_handler = request_stop};

    stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (stop_fd < 0) {
        fatal("cannot create an eventfd: %s", strerror(errno));
    }
    stop->watch.fd = stop_fd;
    stop->watch.callback = stop_requested;
    stop->requested = false;
    watch_add(loop, &stop->watch, EPOLLIN);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void open_port(struct vswitch *sw, const struct port_option *option)
{
    char name[OFP_MAX_PORT_NAME_LEN];
    struct port *port;
    bool opened;

    snprintf(name, sizeof name, "port%u", option->number);
    port = port_table_add(&sw->ports, sw, option->number,
                          option->interface != NULL ? option->interface : name);
    if (option->interface != NULL) {
        opened = port_open_interface(port, option->interface);
    } else {
        opened = port_open_unix(port, option->own_path, option->peer_path);
    }
    if (!opened) {
        fatal("cannot open %s as port %u: %s",
              option->interface != NULL ? option->interface : option->own_path, option->number,
              strerror(errno));
    }
    port_start(port, &sw->loop);
    if (option->interface != NULL && sw->links.watch.fd < 0) {
        link_monitor_start(&sw->links, sw);
    }
}

int main(int argc, char *argv[])
{
    struct options options;
    struct vswitch sw;
    struct channel channel;
    struct stop_watch stop;

    options_parse(&options, argc, argv);
    vswitch_init(&sw, options.datapath_id, options.max_port);
    catch_signals(&sw.loop, &stop);
    for (size_t i = 0; i < options.n_ports; i++) {
        open_port(&sw, &options.ports[i]);
    }
    if (options.listen != NULL) {
        channel_listen(&channel, &sw, options.listen);
    } else {
        channel_connect(&channel, &sw, options.connect);
    }
    while (!stop.requested) {
        loop_run_once(&sw.loop);
        connections_reap(&sw);
    }
    connections_close_all(&sw);
    channel_close(&channel);
    vswitch_destroy(&sw);
    close(stop_fd);
    return 0;
}
