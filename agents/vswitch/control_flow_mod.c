/* flow_mod: changes to the flow table. */
#include <arpa/inet.h>

#include "control.h"
#include "datapath.h"
#include "util.h"
#include "vswitch.h"

#define FLOW_MOD_FAILED(code) OF_ERROR(OFPET_FLOW_MOD_FAILED, OFPFMFC_##code)

/* A flow_mod in host order, its match and actions decoded. */
struct flow_mod {
    struct match match;
    uint32_t rank;
    uint64_t cookie;
    uint16_t command;
    uint16_t idle_timeout;
    uint16_t hard_timeout;
    uint16_t out_port;
    uint16_t flags;
    uint32_t buffer_id;
    struct action_list actions;
};

static uint32_t rank_of(const struct ofp_flow_mod *wire)
{
    bool exact = (ntohl(wire->match.wildcards) & OFPFW_ALL) == 0;

    return exact ? RANK_EXACT : ntohs(wire->priority);
}

static of_result decode(struct vswitch *sw, struct flow_mod *mod, const struct ofp_flow_mod *wire)
{
    mod->flags = ntohs(wire->flags);
    if (mod->flags & OFPFF_EMERG) {
        /* There is no emergency flow cache, and no error that says so: it is always full. */
        return FLOW_MOD_FAILED(ALL_TABLES_FULL);
    }
    match_from_wire(&mod->match, &wire->match);
    mod->rank = rank_of(wire);
    mod->cookie = ntoh64(wire->cookie);
    mod->command = ntohs(wire->command);
    mod->idle_timeout = ntohs(wire->idle_timeout);
    mod->hard_timeout = ntohs(wire->hard_timeout);
    mod->out_port = ntohs(wire->out_port);
    mod->buffer_id = ntohl(wire->buffer_id);
    return action_list_decode(&mod->actions, wire + 1, ntohs(wire->header.length) - sizeof *wire,
                              sw->max_port);
}

/* Moves the actions of the request into the flow. */
static void take_actions(struct flow *flow, struct flow_mod *mod)
{
    action_list_free(&flow->actions);
    flow->actions = mod->actions;
    mod->actions = (struct action_list){NULL, 0};
}

/* Lets the flow handle the packet that the controller answers to. The change to the table stands,
 * whether or not there is such a packet. */
static of_result release_buffer(struct vswitch *sw, struct flow *flow, uint32_t buffer_id)
{
    struct packet packet;
    uint16_t in_port;

    if (buffer_id == OFP_NO_BUFFER) {
        return OF_OK;
    }
    if (!packet_buffers_take(&sw->buffers, buffer_id, &packet, &in_port)) {
        return BAD_REQUEST(BUFFER_UNKNOWN);
    }
    datapath_apply_flow(sw, flow, &packet, in_port);
    packet_free(&packet);
    return OF_OK;
}

static of_result add(struct vswitch *sw, struct flow_mod *mod)
{
    struct flow *flow;

    if ((mod->flags & OFPFF_CHECK_OVERLAP) &&
        flow_table_overlaps(&sw->flows, &mod->match, mod->rank)) {
        return FLOW_MOD_FAILED(OVERLAP);
    }
    flow = flow_create(&mod->match, mod->rank);
    flow->cookie = mod->cookie;
    flow->idle_timeout = mod->idle_timeout;
    flow->hard_timeout = mod->hard_timeout;
    flow->flags = mod->flags;
    take_actions(flow, mod);
    if (!flow_table_insert(&sw->flows, flow)) {
        flow_destroy(flow);
        return FLOW_MOD_FAILED(ALL_TABLES_FULL);
    }
    vswitch_schedule_expiry(sw);
    return release_buffer(sw, flow, mod->buffer_id);
}

/* Counters and timeouts go on as they were. */
static void modify_one(struct flow *flow, struct flow_mod *mod)
{
    take_actions(flow, mod);
    flow->cookie = mod->cookie;
}

static of_result modify_strict(struct vswitch *sw, struct flow_mod *mod)
{
    struct flow *flow = flow_table_find(&sw->flows, &mod->match, mod->rank);

    if (flow == NULL) {
        return add(sw, mod);
    }
    modify_one(flow, mod);
    return release_buffer(sw, flow, mod->buffer_id);
}

static of_result modify(struct vswitch *sw, struct flow_mod *mod)
{
    struct flow *last = NULL;

    LIST_FOR_EACH (link, &sw->flows.flows) {
        struct flow *flow = flow_in_table(link);

        if (match_covers(&mod->match, &flow->rule.match)) {
            if (last != NULL) {
                mod->actions = action_list_copy(&last->actions);
            }
            modify_one(flow, mod);
            last = flow;
        }
    }
    if (last == NULL) {
        return add(sw, mod);
    }
    /* Any of the flows will do for the buffered packet: they all have the same actions now. */
    return release_buffer(sw, last, mod->buffer_id);
}

static bool passes_out_port_filter(const struct flow *flow, uint16_t out_port)
{
    return out_port == OFPP_NONE || action_list_outputs_to(&flow->actions, out_port);
}

static of_result delete_strict(struct vswitch *sw, const struct flow_mod *mod)
{
    struct flow *flow = flow_table_find(&sw->flows, &mod->match, mod->rank);

    if (flow != NULL && passes_out_port_filter(flow, mod->out_port)) {
        vswitch_remove_flow(sw, flow, OFPRR_DELETE);
    }
    return OF_OK;
}

static of_result delete_loose(struct vswitch *sw, const struct flow_mod *mod)
{
    LIST_FOR_EACH_SAFE (link, &sw->flows.flows) {
        struct flow *flow = flow_in_table(link);

        if (match_covers(&mod->match, &flow->rule.match) &&
            passes_out_port_filter(flow, mod->out_port)) {
            vswitch_remove_flow(sw, flow, OFPRR_DELETE);
        }
    }
    return OF_OK;
}

static of_result apply(struct vswitch *sw, struct flow_mod *mod)
{
    switch (mod->command) {
    case OFPFC_ADD:
        return add(sw, mod);
    case OFPFC_MODIFY:
        return modify(sw, mod);
    case OFPFC_MODIFY_STRICT:
        return modify_strict(sw, mod);
    case OFPFC_DELETE:
        return delete_loose(sw, mod);
    case OFPFC_DELETE_STRICT:
        return delete_strict(sw, mod);
    default:
        return FLOW_MOD_FAILED(BAD_COMMAND);
    }
}

of_result control_flow_mod(struct vswitch *sw, const struct ofp_header *message)
{
    const struct ofp_flow_mod *wire = (const void *) message;
    struct flow_mod mod;
    of_result result;

    if (ntohs(message->length) < sizeof *wire) {
        return BAD_REQUEST(BAD_LEN);
    }
    result = decode(sw, &mod, wire);
    if (result != OF_OK) {
        return result;
    }
    result = apply(sw, &mod);
    action_list_free(&mod.actions);
    return result;
}
