/* figure1-agent1 and figure1-agent2: opens the ports and polls until told to stop. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/options.h"
#include "../common/stop.h"
#include "../common/util.h"
#include "agent.h"

#define MAX_FRAME 65536

static void open_ports(struct agent *agent, const struct options *options)
{
    for (int i = 0; i < options->n_ports; i++) {
        const struct port_option *option = &options->ports[i];

        if (option->number >= N_PORTS) {
            fprintf(stderr, "Port %u is above %d.\n", option->number, N_PORTS - 1);
            exit(2);
        }
        agent->ports[option->number] = netdev_open(option);
    }
}

static void receive(struct agent *agent, uint16_t port)
{
    static uint8_t frame[MAX_FRAME];
    ssize_t length = netdev_receive(agent->ports[port], frame, sizeof frame);

    if (length > 0) {
        send_packet_in(agent, frame, (size_t) length, port, OFPR_NO_MATCH);
    }
}

static void run(struct agent *agent, int stop)
{
    struct pollfd fds[1 + N_PORTS + REMOTES_MAX_POLLFDS];
    struct pollfd *ports = fds + 1;
    struct pollfd *remotes = ports + N_PORTS;

    for (;;) {
        int n_remotes = remotes_poll_set(&agent->remotes, remotes);
        nfds_t n_fds = (nfds_t) (1 + N_PORTS + n_remotes);

        fds[0] = (struct pollfd){.fd = stop, .events = POLLIN};
        for (int i = 0; i < N_PORTS; i++) { /* poll() passes over a descriptor of -1. */
            int fd = agent->ports[i] != NULL ? agent->ports[i]->fd : -1;

            ports[i] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
        if (poll(fds, n_fds, remotes_timeout(&agent->remotes, clock_ms())) < 0) {
            continue; /* Interrupted; the pipe knows why. */
        }
        if (fds[0].revents) {
            return;
        }
        remotes_run(&agent->remotes, remotes, n_remotes, clock_ms());
        for (int i = 0; i < N_PORTS; i++) {
            if (ports[i].revents) {
                receive(agent, (uint16_t) i);
            }
        }
    }
}

int main(int argc, char *argv[])
{
    static struct agent agent;
    struct options options;
    int stop;

    options_parse(&options, argc, argv);
    stop = stop_open();
    agent.dpid = options.dpid;
    open_ports(&agent, &options);
    remotes_open(&agent.remotes, &options.endpoint, &control_handler, &agent);
    run(&agent, stop);
    remotes_close(&agent.remotes);
    for (int i = 0; i < N_PORTS; i++) {
        netdev_close(agent.ports[i]);
    }
    stop_close();
    return 0;
}
