/* A reply to a statistics request. */
#include "stats_reply.h"

#include <arpa/inet.h>

#include "connection.h"
#include "message.h"

static struct ofp_stats_header *begin_message(struct stats_reply *reply)
{
    struct ofp_stats_header *header;

    buf_init(&reply->message);
    header = message_begin(&reply->message, OFPT_STATS_REPLY, reply->request->header.xid,
                           sizeof *header);
    header->type = reply->request->type;
    return header;
}

void stats_reply_begin(struct stats_reply *reply, struct connection *connection,
                       const struct ofp_stats_header *request)
{
    reply->connection = connection;
    reply->request = request;
    begin_message(reply);
}

static void send_message(struct stats_reply *reply)
{
    message_finish(&reply->message);
    connection_send(reply->connection, &reply->message);
}

static void make_room(struct stats_reply *reply, size_t size)
{
    if (buf_size(&reply->message) + size > MESSAGE_MAX) {
        struct ofp_stats_header *header = (void *) buf_front(&reply->message);

        header->flags = htons(OFPSF_REPLY_MORE);
        send_message(reply);
        begin_message(reply);
    }
}

void *stats_reply_add(struct stats_reply *reply, size_t size)
{
    make_room(reply, size);
    return buf_add(&reply->message, size);
}

void stats_reply_append(struct stats_reply *reply, const struct buf *entry)
{
    make_room(reply, buf_size(entry));
    buf_append(&reply->message, buf_front(entry), buf_size(entry));
}

void stats_reply_send(struct stats_reply *reply) { send_message(reply); }
