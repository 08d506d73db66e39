/* The controllers: one that the agent connects to, or any number that connect to it. */
#ifndef REMOTES_H
#define REMOTES_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "options.h"

#define MAX_CHANNELS 16
#define REMOTES_MAX_POLLFDS (1 + MAX_CHANNELS)

/* What the agent wants to be told.  'agent' is the pointer given to remotes_open. */
struct remote_handler {
    void (*connected)(void *agent, struct channel *channel);
    void (*message)(void *agent, struct channel *channel, const struct ofp_header *message);
    /* The length field of 'header' is smaller than a header. */
    void (*malformed)(void *agent, struct channel *channel, const struct ofp_header *header,
                      size_t available);
    void (*disconnected)(void *agent, struct channel *channel);
};

struct remotes {
    const struct endpoint *endpoint;
    const struct remote_handler *handler;
    void *agent;
    int listener;                               /* -1 if the agent connects out. */
    struct channel *channels[MAX_CHANNELS];
    int n_channels;
    int64_t next_attempt;                       /* When to try to connect again, in ms. */
    int backoff;                                /* ms. */
};

/* Starts to listen or to connect; on failure to listen prints a sentence and exits with status 2. */
void remotes_open(struct remotes *remotes, const struct endpoint *endpoint,
                  const struct remote_handler *handler, void *agent);
void remotes_close(struct remotes *remotes);

/* Fills at most REMOTES_MAX_POLLFDS entries and returns their number. */
int remotes_poll_set(const struct remotes *remotes, struct pollfd *fds);

/* Milliseconds until remotes_run has something to do without any event, or -1. */
int remotes_timeout(const struct remotes *remotes, int64_t now);

/* Handles the events of the entries that remotes_poll_set filled. */
void remotes_run(struct remotes *remotes, const struct pollfd *fds, int n_fds, int64_t now);

/* Sends a message that no controller asked for to all of them. */
void remotes_broadcast(struct remotes *remotes, const void *data, size_t size);

/* Whether some controller's HELLO was accepted. */
bool remotes_any_greeted(const struct remotes *remotes);

#endif
