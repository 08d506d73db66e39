/* Where controllers are: an address to connect to again and again, or one to listen on. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "loop.h"

struct vswitch;

struct channel {
    struct vswitch *sw;
    struct address address;
    bool listening;
    struct watch listener; /* If listening. */
    struct timer retry;    /* If connecting. */
    uint64_t backoff_msec;
};

/* Both end the process with a message if the address cannot be used at all. */
void channel_listen(struct channel *channel, struct vswitch *sw, const char *where);
void channel_connect(struct channel *channel, struct vswitch *sw, const char *where);
/* After the connections have been closed. */
void channel_close(struct channel *channel);

/* Called by a connection of this channel. */
void channel_connection_works(struct channel *channel);
void channel_connection_over(struct channel *channel);

#endif
