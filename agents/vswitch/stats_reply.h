/* A reply to a statistics request, in as many messages as it takes. */
#ifndef STATS_REPLY_H
#define STATS_REPLY_H

#include <stddef.h>

#include "buf.h"
#include "openflow_stats.h"

struct connection;

struct stats_reply {
    struct connection *connection;
    const struct ofp_stats_header *request;
    struct buf message;
};

void stats_reply_begin(struct stats_reply *reply, struct connection *connection,
                       const struct ofp_stats_header *request);
/* Room for one more entry, zeroed; entries of that size never straddle two messages. */
void *stats_reply_add(struct stats_reply *reply, size_t size);
/* The same for an entry composed elsewhere. */
void stats_reply_append(struct stats_reply *reply, const struct buf *entry);
void stats_reply_send(struct stats_reply *reply);

#endif
