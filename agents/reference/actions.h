/* Action lists: checking them, and carrying them out on a packet. */
#ifndef ACTIONS_H
#define ACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow.h"
#include "packet.h"

struct datapath;

#define ACTIONS_VALID (-1)

/* Returns ACTIONS_VALID or an OFPBAC_* code.  'match' is the rule's, or NULL if the actions come
 * with a packet_out. */
int actions_validate(const uint8_t *actions, size_t length, const struct match *match);

/* Whether a validated list outputs or enqueues to 'port'. */
bool actions_output_to(const uint8_t *actions, size_t length, uint16_t port);

/* Carries out a validated list on 'packet', whose fields are 'key'.  Both change. */
void actions_execute(struct datapath *datapath, struct packet *packet, struct flow_key *key,
                     const uint8_t *actions, size_t length);

#endif
