/* A connection to a controller: bytes in, messages out. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "list.h"
#include "loop.h"
#include "openflow.h"
#include "openflow_errors.h"
#include "util.h"

struct channel;
struct vswitch;

enum connection_state {
    CONNECTION_CONNECTING, /* The transport is not there yet. */
    CONNECTION_HANDSHAKE,  /* Our hello is sent, the controller's has not come. */
    CONNECTION_OPEN,
    CONNECTION_CLOSED      /* To be freed by connections_reap(). */
};

struct connection {
    struct list link; /* In the switch. */
    struct watch watch;
    uint32_t watched_events;
    struct vswitch *sw;
    struct channel *channel; /* Where it came from, and who is told when it is over. */
    enum connection_state state;
    uint16_t miss_send_len;
    struct buf received;
    struct buf unsent;
};

/* Takes over a descriptor that is connected or, if `connecting`, about to be. */
struct connection *connection_create(struct vswitch *sw, struct channel *channel, int fd,
                                     bool connecting);
/* Ends the connection; the structure lives on until connections_reap(). */
void connection_close(struct connection *connection);

/* Both take a finished message and free it. */
void connection_send(struct connection *connection, struct buf *message);
/* For messages that may be lost: nothing is sent to a controller that does not keep up. */
void connection_send_lossy(struct connection *connection, struct buf *message);
void connection_send_error(struct connection *connection, of_result error,
                           const struct ofp_header *request, size_t request_size);

/* Frees what was closed; not to be called from a callback of the loop. */
void connections_reap(struct vswitch *sw);
void connections_close_all(struct vswitch *sw);

static inline struct connection *connection_from_link(struct list *link)
{
    return CONTAINER_OF(link, struct connection, link);
}

#endif
