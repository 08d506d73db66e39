/* One control connection: a byte stream cut into OpenFlow messages, and a queue of bytes to send. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openflow.h"

struct channel {
    int fd;
    bool connecting;            /* connect() has not finished. */
    bool greeted;               /* The peer's HELLO was accepted. */
    bool closing;               /* To be closed once the bytes at hand are sent. */

    uint8_t *received;          /* Bytes not yet handled. */
    size_t n_received;
    uint8_t *unsent;            /* Bytes that the socket did not take. */
    size_t n_unsent;
};

struct channel *channel_new(int fd, bool connecting);
void channel_free(struct channel *channel);

/* The events that poll() should wait for. */
short channel_poll_events(const struct channel *channel);

/* Sends 'size' bytes, or queues what the socket does not take. */
void channel_send(struct channel *channel, const void *data, size_t size);

/* Whether so much is queued that messages nobody asked for are better dropped. */
bool channel_is_congested(const struct channel *channel);

/* Tries again to send what is queued. */
void channel_flush(struct channel *channel);

/* Reads what has arrived.  Returns false if the peer has closed or the connection failed. */
bool channel_receive(struct channel *channel);

/* The first message at or after '*offset' in the received bytes, or NULL if it is not whole yet.
 * Moves '*offset' behind it.  A message whose length field is too small for its own header is
 * returned with '*malformed' set: nothing after it can be understood. */
const struct ofp_header *channel_next_message(const struct channel *channel, size_t *offset,
                                              bool *malformed);

/* Forgets the first 'size' received bytes. */
void channel_consume(struct channel *channel, size_t size);

#endif
