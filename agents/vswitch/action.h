/* Actions, decoded from their wire form once and kept as structures. */
#ifndef ACTION_H
#define ACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "openflow.h"
#include "openflow_errors.h"
#include "packet.h"

#define DEFAULT_QUEUE 0 /* The one queue of every port. */

struct action {
    enum ofp_action_type type;
    union {
        struct {
            uint16_t port;
            uint16_t max_len;
        } output;
        struct {
            uint16_t port;
            uint32_t queue_id;
        } enqueue;
        uint16_t vlan_vid;
        uint8_t vlan_pcp;
        uint8_t nw_tos;
        uint8_t dl_addr[ETH_ADDR_LEN];
        uint32_t nw_addr; /* Network order. */
        uint16_t tp_port;
    };
};

struct action_list {
    struct action *actions;
    size_t count;
};

/* Decodes and validates; on any result but OF_OK the list is empty. Errors in form, type or port
 * of any action are reported; values that do not fit their field then discard the whole message
 * (OF_DISCARD). */
of_result action_list_decode(struct action_list *list, const void *wire, size_t size,
                             uint16_t max_port);
void action_list_free(struct action_list *list);
struct action_list action_list_copy(const struct action_list *list);

void action_list_encode(const struct action_list *list, struct buf *buf);
bool action_list_outputs_to(const struct action_list *list, uint16_t port);

#endif
