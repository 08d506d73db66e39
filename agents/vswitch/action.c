/* Decoding, validating and encoding of actions. */
#include "action.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "headers.h"
#include "util.h"

#define ACTION_UNIT 8 /* Every action's length is a multiple of this. */
/* Enough for any sane rule, and few enough that an entry's statistics fit in one message. */
#define MAX_ACTIONS 512
#define VLAN_VID_MAX 0x0fff
#define VLAN_PCP_MAX 7

#define BAD_ACTION(code) OF_ERROR(OFPET_BAD_ACTION, OFPBAC_##code)

/* Length of each action on the wire, or zero for a type that does not exist. */
static size_t wire_size(uint16_t type)
{
    switch (type) {
    case OFPAT_OUTPUT:
    case OFPAT_SET_VLAN_VID:
    case OFPAT_SET_VLAN_PCP:
    case OFPAT_STRIP_VLAN:
    case OFPAT_SET_NW_SRC:
    case OFPAT_SET_NW_DST:
    case OFPAT_SET_NW_TOS:
    case OFPAT_SET_TP_SRC:
    case OFPAT_SET_TP_DST:
        return sizeof(struct ofp_action_header);
    case OFPAT_SET_DL_SRC:
    case OFPAT_SET_DL_DST:
        return sizeof(struct ofp_action_dl_addr);
    case OFPAT_ENQUEUE:
        return sizeof(struct ofp_action_enqueue);
    default:
        return 0;
    }
}

/* A port that does not exist now may be added later; one above the maximum never can be. */
static of_result check_output_port(uint16_t port, uint16_t max_port)
{
    switch (port) {
    case OFPP_IN_PORT:
    case OFPP_TABLE:
    case OFPP_NORMAL:
    case OFPP_FLOOD:
    case OFPP_ALL:
    case OFPP_CONTROLLER:
    case OFPP_LOCAL:
        return OF_OK;
    default:
        return port <= max_port ? OF_OK : BAD_ACTION(BAD_OUT_PORT);
    }
}

static of_result check_enqueue(uint16_t port, uint32_t queue_id, uint16_t max_port)
{
    /* Only a port with a transmitter has queues. */
    if (port > max_port && port != OFPP_IN_PORT && port != OFPP_LOCAL) {
        return BAD_ACTION(BAD_OUT_PORT);
    }
    return queue_id == DEFAULT_QUEUE ? OF_OK : BAD_ACTION(BAD_QUEUE);
}

static of_result decode_output(struct action *action, const void *wire, uint16_t max_port)
{
    const struct ofp_action_output *output = wire;

    action->output.port = ntohs(output->port);
    action->output.max_len = ntohs(output->max_len);
    return check_output_port(action->output.port, max_port);
}

static of_result decode_enqueue(struct action *action, const void *wire, uint16_t max_port)
{
    const struct ofp_action_enqueue *enqueue = wire;

    action->enqueue.port = ntohs(enqueue->port);
    action->enqueue.queue_id = ntohl(enqueue->queue_id);
    return check_enqueue(action->enqueue.port, action->enqueue.queue_id, max_port);
}

/* The wire action is whole and of the right length for its type. */
static of_result decode_body(struct action *action, const void *wire, uint16_t max_port)
{
    switch (action->type) {
    case OFPAT_OUTPUT:
        return decode_output(action, wire, max_port);
    case OFPAT_ENQUEUE:
        return decode_enqueue(action, wire, max_port);
    case OFPAT_SET_VLAN_VID:
        action->vlan_vid = ntohs(((const struct ofp_action_u16 *) wire)->value);
        break;
    case OFPAT_SET_VLAN_PCP:
        action->vlan_pcp = ((const struct ofp_action_u8 *) wire)->value;
        break;
    case OFPAT_SET_NW_TOS:
        action->nw_tos = ((const struct ofp_action_u8 *) wire)->value;
        break;
    case OFPAT_SET_DL_SRC:
    case OFPAT_SET_DL_DST:
        memcpy(action->dl_addr, ((const struct ofp_action_dl_addr *) wire)->dl_addr, ETH_ADDR_LEN);
        break;
    case OFPAT_SET_NW_SRC:
    case OFPAT_SET_NW_DST:
        action->nw_addr = ((const struct ofp_action_nw_addr *) wire)->nw_addr;
        break;
    case OFPAT_SET_TP_SRC:
    case OFPAT_SET_TP_DST:
        action->tp_port = ntohs(((const struct ofp_action_u16 *) wire)->value);
        break;
    case OFPAT_STRIP_VLAN:
    case OFPAT_VENDOR:
        break;
    }
    return OF_OK;
}

/* Decodes the action at the start of the remaining bytes, and says how long it is. */
static of_result decode_one(struct action *action, const uint8_t *wire, size_t remaining,
                            size_t *length, uint16_t max_port)
{
    const struct ofp_action_header *header = (const void *) wire;
    uint16_t type;
    size_t expected;

    if (remaining < sizeof *header) {
        return BAD_ACTION(BAD_LEN);
    }
    *length = ntohs(header->len);
    if (*length < sizeof *header || *length % ACTION_UNIT != 0 || *length > remaining) {
        return BAD_ACTION(BAD_LEN);
    }
    type = ntohs(header->type);
    if (type == OFPAT_VENDOR) {
        return BAD_ACTION(BAD_VENDOR);
    }
    expected = wire_size(type);
    if (expected == 0) {
        return BAD_ACTION(BAD_TYPE);
    }
    if (*length != expected) {
        return BAD_ACTION(BAD_LEN);
    }
    action->type = (enum ofp_action_type) type;
    return decode_body(action, wire, max_port);
}

static bool value_fits(const struct action *action)
{
    switch (action->type) {
    case OFPAT_SET_VLAN_VID:
        return action->vlan_vid <= VLAN_VID_MAX;
    case OFPAT_SET_VLAN_PCP:
        return action->vlan_pcp <= VLAN_PCP_MAX;
    case OFPAT_SET_NW_TOS:
        return (action->nw_tos & ~IPV4_TOS_DSCP) == 0;
    default:
        return true;
    }
}

static of_result decode_all(struct action_list *list, const uint8_t *wire, size_t size,
                            uint16_t max_port)
{
    size_t length;

    for (size_t offset = 0; offset < size; offset += length) {
        of_result result;

        if (list->count >= MAX_ACTIONS) {
            return BAD_ACTION(TOO_MANY);
        }
        result = decode_one(&list->actions[list->count], wire + offset, size - offset, &length,
                            max_port);
        if (result != OF_OK) {
            return result;
        }
        list->count++;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!value_fits(&list->actions[i])) {
            LOG("discarding a message: the value of an action of type %d does not fit its field",
                (int) list->actions[i].type);
            return OF_DISCARD;
        }
    }
    return OF_OK;
}

of_result action_list_decode(struct action_list *list, const void *wire, size_t size,
                             uint16_t max_port)
{
    of_result result;

    list->count = 0;
    list->actions = NULL;
    if (size == 0) {
        return OF_OK;
    }
    /* One more than fit, for a last one that turns out to be truncated. */
    list->actions = xmalloc(MIN(size / ACTION_UNIT + 1, MAX_ACTIONS) * sizeof *list->actions);
    result = decode_all(list, wire, size, max_port);
    if (result != OF_OK) {
        action_list_free(list);
    }
    return result;
}

void action_list_free(struct action_list *list)
{
    free(list->actions);
    list->actions = NULL;
    list->count = 0;
}

struct action_list action_list_copy(const struct action_list *list)
{
    struct action_list copy = {NULL, list->count};

    if (list->count > 0) {
        copy.actions = xmalloc(list->count * sizeof *list->actions);
        memcpy(copy.actions, list->actions, list->count * sizeof *list->actions);
    }
    return copy;
}

static void encode_one(const struct action *action, struct buf *buf)
{
    size_t size = wire_size((uint16_t) action->type);
    struct ofp_action_header *header = buf_add(buf, size);
    void *wire = header;

    header->type = htons((uint16_t) action->type);
    header->len = htons((uint16_t) size);
    switch (action->type) {
    case OFPAT_OUTPUT:
        ((struct ofp_action_output *) wire)->port = htons(action->output.port);
        ((struct ofp_action_output *) wire)->max_len = htons(action->output.max_len);
        break;
    case OFPAT_ENQUEUE:
        ((struct ofp_action_enqueue *) wire)->port = htons(action->enqueue.port);
        ((struct ofp_action_enqueue *) wire)->queue_id = htonl(action->enqueue.queue_id);
        break;
    case OFPAT_SET_VLAN_VID:
        ((struct ofp_action_u16 *) wire)->value = htons(action->vlan_vid);
        break;
    case OFPAT_SET_VLAN_PCP:
        ((struct ofp_action_u8 *) wire)->value = action->vlan_pcp;
        break;
    case OFPAT_SET_NW_TOS:
        ((struct ofp_action_u8 *) wire)->value = action->nw_tos;
        break;
    case OFPAT_SET_DL_SRC:
    case OFPAT_SET_DL_DST:
        memcpy(((struct ofp_action_dl_addr *) wire)->dl_addr, action->dl_addr, ETH_ADDR_LEN);
        break;
    case OFPAT_SET_NW_SRC:
    case OFPAT_SET_NW_DST:
        ((struct ofp_action_nw_addr *) wire)->nw_addr = action->nw_addr;
        break;
    case OFPAT_SET_TP_SRC:
    case OFPAT_SET_TP_DST:
        ((struct ofp_action_u16 *) wire)->value = htons(action->tp_port);
        break;
    case OFPAT_STRIP_VLAN:
    case OFPAT_VENDOR:
        break;
    }
}

void action_list_encode(const struct action_list *list, struct buf *buf)
{
    for (size_t i = 0; i < list->count; i++) {
        encode_one(&list->actions[i], buf);
    }
}

bool action_list_outputs_to(const struct action_list *list, uint16_t port)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct action *action = &list->actions[i];

        if ((action->type == OFPAT_OUTPUT && action->output.port == port) ||
            (action->type == OFPAT_ENQUEUE && action->enqueue.port == port)) {
            return true;
        }
    }
    return false;
}
