/* Statistics requests.  What a function cannot answer it returns false for. */
#include <arpa/inet.h>
#include <string.h>

#include "../common/message.h"
#include "../common/util.h"
#include "control.h"
#include "datapath.h"
#include "deviation.h"

#define TABLE_ID 0
#define TABLE_EMERGENCY 0xfe
#define TABLE_ALL 0xff
#define NOT_COUNTED UINT64_MAX

/* An answer being composed: one message, or several if it does not fit into one. */
struct stats_reply {
    struct channel *channel;
    const struct ofp_stats_msg *request;
    struct message message;
};

static void start_part(struct stats_reply *reply)
{
    struct ofp_stats_msg *part = message_start(&reply->message, OFPT_STATS_REPLY,
                                               reply->request->header.xid, sizeof *part);

    part->type = reply->request->type;
}

/* Adds an entry of 'size' zeroed bytes; it is never cut in two. */
static void *put_entry(struct stats_reply *reply, size_t size)
{
    if (reply->message.size + size > UINT16_MAX) {
        ((struct ofp_stats_msg *) reply->message.data)->flags = htons(OFPSF_REPLY_MORE);
        message_send(&reply->message, reply->channel);
        start_part(reply);
    }
    return message_put(&reply->message, size);
}

static size_t body_size(const struct stats_reply *reply)
{
    return ntohs(reply->request->header.length) - sizeof *reply->request;
}

static bool put_desc(struct datapath *datapath, struct stats_reply *reply)
{
    struct ofp_desc_stats *desc = put_entry(reply, sizeof *desc);

    (void) datapath;
    message_put_string(desc->mfr_desc, sizeof desc->mfr_desc, "SOFT");
    message_put_string(desc->hw_desc, sizeof desc->hw_desc, "software");
    message_put_string(desc->sw_desc, sizeof desc->sw_desc, "reference");
    message_put_string(desc->serial_num, sizeof desc->serial_num, "none");
    message_put_string(desc->dp_desc, sizeof desc->dp_desc, "reference switch");
    return true;
}

/* The flows that a flow or an aggregate request is about.  NULL if it cannot be understood. */
static struct flow_table *select_flows(struct datapath *datapath, const struct stats_reply *reply,
                                       struct flow_selection *selection)
{
    const struct ofp_flow_stats_request *body = (const void *) reply->request->body;

    if (body_size(reply) != sizeof *body) {
        return NULL;
    }
    match_from_wire(&selection->match, &body->match);
    selection->strict = false;
    selection->out_port = ntohs(body->out_port);
    if (body->table_id == TABLE_EMERGENCY) {
        return &datapath->emergency;
    }
    return body->table_id == TABLE_ID || body->table_id == TABLE_ALL ? &datapath->table : NULL;
}

static void put_flow(struct stats_reply *reply, const struct flow *flow, int64_t now)
{
    size_t size = sizeof(struct ofp_flow_stats) + flow->actions_length;
    struct ofp_flow_stats *stats = put_entry(reply, size);
    int64_t duration = now - flow->created;

    stats->length = htons((uint16_t) size);
    stats->table_id = TABLE_ID;
    match_to_wire(&flow->match, &stats->match);
    stats->duration_sec = htonl((uint32_t) (duration / 1000));
    stats->duration_nsec = htonl((uint32_t) (duration % 1000) * 1000000);
    stats->priority = htons(flow->priority);
    stats->idle_timeout = htons(flow->idle_timeout);
    stats->hard_timeout = htons(flow->hard_timeout);
    stats->cookie = htobe64(flow->cookie);
    stats->packet_count = htobe64(flow->packet_count);
    stats->byte_count = htobe64(flow->byte_count);
    memcpy(stats->actions, flow->actions, flow->actions_length);
}

static bool put_flows(struct datapath *datapath, struct stats_reply *reply)
{
    struct flow_selection selection;
    const struct flow_table *table = select_flows(datapath, reply, &selection);
    int64_t now = clock_ms();

    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->n_flows; i++) {
        if (flow_is_selected(table->flows[i], &selection)) {
            put_flow(reply, table->flows[i], now);
        }
    }
    return true;
}

static bool put_aggregate(struct datapath *datapath, struct stats_reply *reply)
{
    struct flow_selection selection;
    const struct flow_table *table = select_flows(datapath, reply, &selection);
    struct ofp_aggregate_stats_reply *stats;
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint32_t flows = 0;

    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->n_flows; i++) {
        const struct flow *flow = table->flows[i];

        if (flow_is_selected(flow, &selection)) {
            packets += flow->packet_count;
            bytes += flow->byte_count;
            flows++;
        }
    }
    stats = put_entry(reply, sizeof *stats);
    stats->packet_count = htobe64(packets);
    stats->byte_count = htobe64(bytes);
    stats->flow_count = htonl(flows);
    return true;
}

static bool put_table(struct datapath *datapath, struct stats_reply *reply)
{
    struct ofp_table_stats *stats = put_entry(reply, sizeof *stats);
    uint32_t wildcards = OFPFW_ALL;

    if (DEVIATES(3)) { /* Denies that the type of service can be wildcarded. */
        wildcards &= ~(uint32_t) OFPFW_NW_TOS;
    }
    stats->table_id = TABLE_ID;
    message_put_string(stats->name, sizeof stats->name, "linear");
    stats->wildcards = htonl(wildcards);
    stats->max_entries = htonl(TABLE_MAX_FLOWS);
    stats->active_count = htonl((uint32_t) datapath->table.n_flows);
    stats->lookup_count = htobe64(datapath->table.lookup_count);
    stats->matched_count = htobe64(datapath->table.matched_count);
    return true;
}

static void put_port(struct stats_reply *reply, const struct port *port)
{
    struct ofp_port_stats *stats = put_entry(reply, sizeof *stats);

    stats->port_no = htons(port->number);
    stats->rx_packets = htobe64(port->rx_packets);
    stats->tx_packets = htobe64(port->tx_packets);
    stats->rx_bytes = htobe64(port->rx_bytes);
    stats->tx_bytes = htobe64(port->tx_bytes);
    stats->rx_dropped = htobe64(port->rx_dropped);
    stats->tx_dropped = htobe64(port->tx_dropped);
    stats->rx_errors = htobe64(port->rx_errors);
    stats->tx_errors = htobe64(port->tx_errors);
    stats->rx_frame_err = NOT_COUNTED;
    stats->rx_over_err = NOT_COUNTED;
    stats->rx_crc_err = NOT_COUNTED;
    stats->collisions = NOT_COUNTED;
}

static bool put_ports(struct datapath *datapath, struct stats_reply *reply)
{
    const struct ofp_port_stats_request *body = (const void *) reply->request->body;
    const struct port *port;
    uint16_t number;

    if (body_size(reply) != sizeof *body) {
        return false;
    }
    number = ntohs(body->port_no);
    if (number == OFPP_NONE) {
        for (int i = 0; i < datapath->ports.n_ports; i++) {
            put_port(reply, &datapath->ports.ports[i]);
        }
        return true;
    }
    port = ports_find(&datapath->ports, number);
    if (port == NULL) {
        return false;
    }
    put_port(reply, port);
    return true;
}

static void put_queue(struct stats_reply *reply, const struct queue *queue)
{
    struct ofp_queue_stats *stats = put_entry(reply, sizeof *stats);

    stats->port_no = htons(queue->port);
    stats->queue_id = htonl(queue->id);
    stats->tx_packets = htobe64(queue->tx_packets);
    stats->tx_bytes = htobe64(queue->tx_bytes);
    stats->tx_errors = htobe64(queue->tx_errors);
}

static bool put_queues(struct datapath *datapath, struct stats_reply *reply)
{
    const struct ofp_queue_stats_request *body = (const void *) reply->request->body;
    uint32_t queue_id;
    uint16_t port;

    if (body_size(reply) != sizeof *body) {
        return false;
    }
    port = ntohs(body->port_no);
    queue_id = ntohl(body->queue_id);
    if ((port != OFPP_ALL && ports_find(&datapath->ports, port) == NULL)
        || (queue_id != OFPQ_ALL && queue_id != DEFAULT_QUEUE)) {
        return false;
    }
    for (int i = 0; i < datapath->queues.n_queues; i++) {
        const struct queue *queue = &datapath->queues.queues[i];

        if (port == OFPP_ALL || port == queue->port) {
            put_queue(reply, queue);
        }
    }
    return true;
}

static bool fill_reply(struct datapath *datapath, struct stats_reply *reply)
{
    switch (ntohs(reply->request->type)) {
    case OFPST_DESC:
        return put_desc(datapath, reply);
    case OFPST_FLOW:
        return put_flows(datapath, reply);
    case OFPST_AGGREGATE:
        return put_aggregate(datapath, reply);
    case OFPST_TABLE:
        return put_table(datapath, reply);
    case OFPST_PORT:
        return put_ports(datapath, reply);
    case OFPST_QUEUE:
        return put_queues(datapath, reply);
    default: /* OFPST_VENDOR is among them: we know no vendor's statistics. */
        return false;
    }
}

void control_stats_request(struct datapath *datapath, struct channel *channel,
                           const struct ofp_header *message)
{
    struct stats_reply reply = {.channel = channel, .request = (const void *) message};

    start_part(&reply);
    if (fill_reply(datapath, &reply)) {
        message_send(&reply.message, channel);
    } else {
        message_free(&reply.message);
    }
}
