/* Statistics requests. */
#include <arpa/inet.h>
#include <string.h>

#include "action.h"
#include "connection.h"
#include "control.h"
#include "openflow_stats.h"
#include "stats_reply.h"
#include "util.h"
#include "vswitch.h"

#define TABLE_ID 0
#define NOT_COUNTED UINT64_MAX

#define QUEUE_OP_FAILED(code) OF_ERROR(OFPET_QUEUE_OP_FAILED, OFPQOFC_##code)

static size_t body_size(const struct ofp_stats_header *request)
{
    return ntohs(request->header.length) - sizeof *request;
}

static of_result reply_desc(struct vswitch *sw, struct stats_reply *reply)
{
    struct ofp_desc_stats *desc = stats_reply_add(reply, sizeof *desc);

    strcpy(desc->mfr_desc, "SOFT");
    strcpy(desc->hw_desc, "software");
    strcpy(desc->sw_desc, "vswitch");
    strcpy(desc->serial_num, "none");
    strcpy(desc->dp_desc, sw->description);
    return OF_OK;
}

/* Flow and aggregate requests share their body: which flows they are about. */
struct flow_filter {
    struct match match;
    uint16_t out_port;
    bool no_table; /* Asks for a table that is always empty. */
};

static of_result read_filter(const struct ofp_stats_header *request, struct flow_filter *filter)
{
    const struct ofp_flow_stats_request *body = (const void *) (request + 1);

    if (body_size(request) != sizeof *body) {
        return BAD_REQUEST(BAD_LEN);
    }
    switch (body->table_id) {
    case TABLE_ID:
    case OFP_TABLE_ALL:
        filter->no_table = false;
        break;
    case OFP_TABLE_EMERGENCY:
        filter->no_table = true;
        break;
    default:
        return BAD_REQUEST(BAD_STAT);
    }
    match_from_wire(&filter->match, &body->match);
    filter->out_port = ntohs(body->out_port);
    return OF_OK;
}

static bool passes(const struct flow *flow, const struct flow_filter *filter)
{
    return !filter->no_table && match_covers(&filter->match, &flow->rule.match) &&
           (filter->out_port == OFPP_NONE ||
            action_list_outputs_to(&flow->actions, filter->out_port));
}

static void compose_flow_entry(struct buf *entry, const struct flow *flow, uint64_t now)
{
    uint64_t duration = now - flow->created;
    struct ofp_flow_stats *stats = buf_add(entry, sizeof *stats);

    stats->table_id = TABLE_ID;
    match_to_wire(&flow->rule.match, &stats->match);
    stats->duration_sec = htonl((uint32_t) (duration / 1000));
    stats->duration_nsec = htonl((uint32_t) (duration % 1000) * 1000000);
    stats->priority = htons(flow_priority(flow));
    stats->idle_timeout = htons(flow->idle_timeout);
    stats->hard_timeout = htons(flow->hard_timeout);
    stats->cookie = hton64(flow->cookie);
    stats->packet_count = hton64(flow->packets);
    stats->byte_count = hton64(flow->bytes);
    action_list_encode(&flow->actions, entry);
    /* Encoding may have moved the entry. */
    ((struct ofp_flow_stats *) buf_front(entry))->length = htons((uint16_t) buf_size(entry));
}

static of_result reply_flow(struct vswitch *sw, struct stats_reply *reply)
{
    uint64_t now = time_msec();
    struct flow_filter filter;
    of_result result = read_filter(reply->request, &filter);

    if (result != OF_OK) {
        return result;
    }
    LIST_FOR_EACH (link, &sw->flows.flows) {
        const struct flow *flow = flow_in_table(link);

        if (passes(flow, &filter)) {
            struct buf entry;

            buf_init(&entry);
            compose_flow_entry(&entry, flow, now);
            stats_reply_append(reply, &entry);
            buf_free(&entry);
        }
    }
    return OF_OK;
}

static of_result reply_aggregate(struct vswitch *sw, struct stats_reply *reply)
{
    uint64_t packets = 0;
    uint64_t bytes = 0;
    uint32_t flows = 0;
    struct ofp_aggregate_stats *stats;
    struct flow_filter filter;
    of_result result = read_filter(reply->request, &filter);

    if (result != OF_OK) {
        return result;
    }
    LIST_FOR_EACH (link, &sw->flows.flows) {
        const struct flow *flow = flow_in_table(link);

        if (passes(flow, &filter)) {
            packets += flow->packets;
            bytes += flow->bytes;
            flows++;
        }
    }
    stats = stats_reply_add(reply, sizeof *stats);
    stats->packet_count = hton64(packets);
    stats->byte_count = hton64(bytes);
    stats->flow_count = htonl(flows);
    return OF_OK;
}

static of_result reply_table(struct vswitch *sw, struct stats_reply *reply)
{
    struct ofp_table_stats *stats = stats_reply_add(reply, sizeof *stats);

    stats->table_id = TABLE_ID;
    strcpy(stats->name, "classifier");
    stats->wildcards = htonl(OFPFW_ALL);
    stats->max_entries = htonl(FLOW_TABLE_MAX);
    stats->active_count = htonl(sw->flows.count);
    stats->lookup_count = hton64(sw->flows.lookups);
    stats->matched_count = hton64(sw->flows.matched);
    return OF_OK;
}

static void add_port_entry(struct stats_reply *reply, const struct port *port)
{
    const struct port_counters *counters = &port->counters;
    struct ofp_port_stats *stats = stats_reply_add(reply, sizeof *stats);

    stats->port_no = htons(port->number);
    stats->rx_packets = hton64(counters->rx_packets);
    stats->tx_packets = hton64(counters->tx_packets);
    stats->rx_bytes = hton64(counters->rx_bytes);
    stats->tx_bytes = hton64(counters->tx_bytes);
    stats->rx_dropped = hton64(counters->rx_dropped);
    stats->tx_dropped = hton64(counters->tx_dropped);
    stats->rx_errors = hton64(counters->rx_errors);
    stats->tx_errors = hton64(counters->tx_errors);
    stats->rx_frame_err = NOT_COUNTED;
    stats->rx_over_err = NOT_COUNTED;
    stats->rx_crc_err = NOT_COUNTED;
    stats->collisions = NOT_COUNTED;
}

static of_result reply_port(struct vswitch *sw, struct stats_reply *reply)
{
    const struct ofp_port_stats_request *body = (const void *) (reply->request + 1);
    const struct port *port;
    uint16_t number;

    if (body_size(reply->request) != sizeof *body) {
        return BAD_REQUEST(BAD_LEN);
    }
    number = ntohs(body->port_no);
    if (number == OFPP_NONE) {
        LIST_FOR_EACH (link, &sw->ports.ports) {
            add_port_entry(reply, port_from_link(link));
        }
        return OF_OK;
    }
    port = port_table_find(&sw->ports, number);
    if (port == NULL) {
        return BAD_REQUEST(BAD_STAT);
    }
    add_port_entry(reply, port);
    return OF_OK;
}

static void add_queue_entry(struct stats_reply *reply, const struct port *port)
{
    struct ofp_queue_stats *stats = stats_reply_add(reply, sizeof *stats);

    stats->port_no = htons(port->number);
    stats->queue_id = htonl(DEFAULT_QUEUE);
    stats->tx_bytes = hton64(port->queue_bytes);
    stats->tx_packets = hton64(port->queue_packets);
}

static of_result reply_queue(struct vswitch *sw, struct stats_reply *reply)
{
    const struct ofp_queue_stats_request *body = (const void *) (reply->request + 1);
    const struct port *port;
    uint32_t queue_id;
    uint16_t number;

    if (body_size(reply->request) != sizeof *body) {
        return BAD_REQUEST(BAD_LEN);
    }
    number = ntohs(body->port_no);
    queue_id = ntohl(body->queue_id);
    port = port_table_find(&sw->ports, number);
    if (number != OFPP_ALL && port == NULL) {
        return QUEUE_OP_FAILED(BAD_PORT);
    }
    if (queue_id != OFPQ_ALL && queue_id != DEFAULT_QUEUE) {
        return QUEUE_OP_FAILED(BAD_QUEUE);
    }
    if (port != NULL) {
        add_queue_entry(reply, port);
        return OF_OK;
    }
    LIST_FOR_EACH (link, &sw->ports.ports) {
        add_queue_entry(reply, port_from_link(link));
    }
    return OF_OK;
}

static of_result fill_reply(struct vswitch *sw, struct stats_reply *reply)
{
    switch (ntohs(reply->request->type)) {
    case OFPST_DESC:
        return reply_desc(sw, reply);
    case OFPST_FLOW:
        return reply_flow(sw, reply);
    case OFPST_AGGREGATE:
        return reply_aggregate(sw, reply);
    case OFPST_TABLE:
        return reply_table(sw, reply);
    case OFPST_PORT:
        return reply_port(sw, reply);
    case OFPST_QUEUE:
        return reply_queue(sw, reply);
    case OFPST_VENDOR:
        return BAD_REQUEST(BAD_VENDOR);
    default:
        return BAD_REQUEST(BAD_STAT);
    }
}

of_result control_stats_request(struct vswitch *sw, struct connection *connection,
                                const struct ofp_header *message)
{
    const struct ofp_stats_header *request = (const void *) message;
    struct stats_reply reply;
    of_result result;

    if (ntohs(message->length) < sizeof *request) {
        return BAD_REQUEST(BAD_LEN);
    }
    stats_reply_begin(&reply, connection, request);
    result = fill_reply(sw, &reply);
    if (result == OF_OK) {
        stats_reply_send(&reply);
    } else {
        buf_free(&reply.message);
    }
    return result;
}
