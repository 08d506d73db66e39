/* The queues of the ports: one each, that guarantees nothing. */
#ifndef QUEUES_H
#define QUEUES_H

#include <stdint.h>

#include "ports.h"

#define DEFAULT_QUEUE 0

/* A queue's properties end with one of type OFPQT_NONE. */
struct queue_property {
    uint16_t type;              /* OFPQT_* */
    uint16_t rate;              /* Of OFPQT_MIN_RATE, in tenths of a percent. */
};

struct queue {
    uint16_t port;
    uint32_t id;
    const struct queue_property *properties;
    uint64_t tx_packets;
    uint64_t tx_bytes;
    uint64_t tx_errors;
};

struct queues {
    struct queue queues[MAX_PORTS + 1]; /* The local port has one too. */
    int n_queues;
};

void queues_add(struct queues *queues, uint16_t port);

/* The queue of a port, or NULL if there is no such port. */
struct queue *queues_find(struct queues *queues, uint16_t port);

#endif
