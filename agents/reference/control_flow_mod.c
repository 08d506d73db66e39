/* flow_mod: changes to the flow table, or to that of the emergency flows. */
#include <arpa/inet.h>

#include "../common/util.h"
#include "actions.h"
#include "async.h"
#include "control.h"
#include "datapath.h"

/* A flow and its actions must fit into one statistics reply. */
#define MAX_ACTIONS_LENGTH \
    (UINT16_MAX - sizeof(struct ofp_stats_msg) - sizeof(struct ofp_flow_stats))

struct flow_mod {
    struct datapath *datapath;
    struct channel *channel;
    const struct ofp_flow_mod *request;
    size_t actions_length;
    struct flow_table *table;
    struct flow_selection selection;    /* What is to be modified or deleted. */
};

static void fail(const struct flow_mod *mod, enum ofp_error_type type, int code)
{
    control_error(mod->channel, &mod->request->header, type, (uint16_t) code);
}

static bool actions_are_valid(const struct flow_mod *mod)
{
    int error
        = actions_validate(mod->request->actions, mod->actions_length, &mod->selection.match);

    if (error == ACTIONS_VALID && mod->actions_length > MAX_ACTIONS_LENGTH) {
        error = OFPBAC_TOO_MANY;
    }
    if (error != ACTIONS_VALID) {
        fail(mod, OFPET_BAD_ACTION, error);
        return false;
    }
    return true;
}

/* Lets the flow handle the packet that the controller answers to.  The change to the table stands,
 * whether or not there is such a packet. */
static void release_buffer(const struct flow_mod *mod, struct flow *flow)
{
    uint32_t buffer_id = ntohl(mod->request->buffer_id);
    struct packet *packet;
    struct flow_key key;
    uint16_t in_port;

    if (buffer_id == OFP_NO_BUFFER) {
        return;
    }
    packet = buffers_take(&mod->datapath->buffers, buffer_id, &in_port);
    if (packet != NULL) {
        flow_extract(packet, in_port, &key);
        datapath_apply_flow(mod->datapath, flow, packet, &key);
        packet_free(packet);
    }
}

/* Returns an OFPFMFC_* code, or -1 if the flow was inserted. */
static int insert(const struct flow_mod *mod, struct flow *flow)
{
    uint16_t flags = ntohs(mod->request->flags);

    if ((flags & OFPFF_CHECK_OVERLAP) && table_has_overlap(mod->table, flow)) {
        return OFPFMFC_OVERLAP;
    }
    if ((flags & OFPFF_EMERG) && (flow->idle_timeout || flow->hard_timeout)) {
        return OFPFMFC_BAD_EMERG_TIMEOUT; /* What is for emergencies stays. */
    }
    return table_insert(mod->table, flow) ? -1 : OFPFMFC_ALL_TABLES_FULL;
}

static void add(const struct flow_mod *mod)
{
    struct flow *flow = flow_new(mod->request, mod->actions_length, clock_ms());
    int error = insert(mod, flow);

    if (error >= 0) {
        flow_free(flow);
        fail(mod, OFPET_FLOW_MOD_FAILED, error);
    } else {
        release_buffer(mod, flow);
    }
}

/* Counters and timeouts go on as they were.  If there is nothing to modify, the flow is added. */
static void modify(const struct flow_mod *mod)
{
    struct flow *last = NULL;

    for (size_t i = 0; i < mod->table->n_flows; i++) {
        struct flow *flow = mod->table->flows[i];

        if (flow_is_selected(flow, &mod->selection)) {
            flow_set_actions(flow, mod->request->actions, mod->actions_length);
            flow->cookie = be64toh(mod->request->cookie);
            last = flow;
        }
    }
    if (last == NULL) {
        add(mod);
    } else {
        release_buffer(mod, last); /* Any of them will do: they all have the same actions now. */
    }
}

void control_flow_mod(struct datapath *datapath, struct channel *channel,
                      const struct ofp_header *message)
{
    const struct ofp_flow_mod *request = (const void *) message;
    bool emergency = ntohs(request->flags) & OFPFF_EMERG;
    struct flow_mod mod = {
        .datapath = datapath,
        .channel = channel,
        .request = request,
        .actions_length = ntohs(message->length) - sizeof *request,
        .table = emergency ? &datapath->emergency : &datapath->table,
        .selection = {.priority = ntohs(request->priority), .out_port = OFPP_NONE},
    };
    uint16_t command = ntohs(request->command);

    match_from_wire(&mod.selection.match, &request->match);
    mod.selection.strict = command == OFPFC_MODIFY_STRICT || command == OFPFC_DELETE_STRICT;
    switch (command) {
    case OFPFC_ADD:
        if (actions_are_valid(&mod)) {
            add(&mod);
        }
        break;
    case OFPFC_MODIFY:
    case OFPFC_MODIFY_STRICT:
        if (actions_are_valid(&mod)) {
            modify(&mod);
        }
        break;
    case OFPFC_DELETE:
    case OFPFC_DELETE_STRICT: /* The actions do not matter, and are not looked at. */
        mod.selection.out_port = ntohs(request->out_port);
        table_delete(mod.table, &mod.selection, async_flow_removed, datapath);
        break;
    default:
        fail(&mod, OFPET_FLOW_MOD_FAILED, OFPFMFC_BAD_COMMAND);
        break;
    }
}
