/* Which port each station was last seen on: the memory of OFPP_NORMAL forwarding. */
#ifndef MAC_TABLE_H
#define MAC_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "hmap.h"
#include "list.h"
#include "packet.h"

struct mac_table {
    struct hmap entries;
    struct list by_age; /* The longest unseen first. */
};

void mac_table_init(struct mac_table *table);
void mac_table_destroy(struct mac_table *table);

void mac_table_learn(struct mac_table *table, const uint8_t address[ETH_ADDR_LEN], uint16_t vlan,
                     uint16_t port);
/* False if the station is unknown or was not seen for too long. */
bool mac_table_lookup(struct mac_table *table, const uint8_t address[ETH_ADDR_LEN], uint16_t vlan,
                      uint16_t *port);

#endif
