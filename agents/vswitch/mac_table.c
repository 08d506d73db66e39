/* MAC learning. */
#include "mac_table.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "util.h"

#define MAX_ENTRIES 2048
#define MAX_AGE_MSEC (300 * 1000) /* The default of IEEE 802.1D. */

struct entry {
    struct hmap_node node;
    struct list by_age;
    uint8_t address[ETH_ADDR_LEN];
    uint16_t vlan;
    uint16_t port;
    uint64_t seen;
};

static uint32_t hash_station(const uint8_t address[ETH_ADDR_LEN], uint16_t vlan)
{
    return hash_bytes(address, ETH_ADDR_LEN, vlan);
}

void mac_table_init(struct mac_table *table)
{
    hmap_init(&table->entries);
    list_init(&table->by_age);
}

static void remove_entry(struct mac_table *table, struct entry *entry)
{
    hmap_remove(&table->entries, &entry->node);
    list_remove(&entry->by_age);
    free(entry);
}

void mac_table_destroy(struct mac_table *table)
{
    LIST_FOR_EACH_SAFE (link, &table->by_age) {
        remove_entry(table, CONTAINER_OF(link, struct entry, by_age));
    }
    hmap_destroy(&table->entries);
}

static struct entry *find(const struct mac_table *table, const uint8_t address[ETH_ADDR_LEN],
                          uint16_t vlan)
{
    for (struct hmap_node *node = hmap_first(&table->entries, hash_station(address, vlan));
         node != NULL; node = hmap_next(node)) {
        struct entry *entry = CONTAINER_OF(node, struct entry, node);

        if (entry->vlan == vlan && memcmp(entry->address, address, ETH_ADDR_LEN) == 0) {
            return entry;
        }
    }
    return NULL;
}

static struct entry *create(struct mac_table *table, const uint8_t address[ETH_ADDR_LEN],
                            uint16_t vlan)
{
    struct entry *entry;

    if (table->entries.count >= MAX_ENTRIES) {
        remove_entry(table, CONTAINER_OF(table->by_age.next, struct entry, by_age));
    }
    entry = xmalloc(sizeof *entry);
    memcpy(entry->address, address, ETH_ADDR_LEN);
    entry->vlan = vlan;
    list_init(&entry->by_age);
    hmap_insert(&table->entries, &entry->node, hash_station(address, vlan));
    return entry;
}

void mac_table_learn(struct mac_table *table, const uint8_t address[ETH_ADDR_LEN], uint16_t vlan,
                     uint16_t port)
{
    struct entry *entry = find(table, address, vlan);

    if (entry == NULL) {
        entry = create(table, address, vlan);
    }
    entry->port = port;
    entry->seen = time_msec();
    list_remove(&entry->by_age);
    list_insert_before(&table->by_age, &entry->by_age);
}

bool mac_table_lookup(struct mac_table *table, const uint8_t address[ETH_ADDR_LEN], uint16_t vlan,
                      uint16_t *port)
{
    struct entry *entry = find(table, address, vlan);

    if (entry == NULL) {
        return false;
    }
    if (time_msec() >= entry->seen + MAX_AGE_MSEC) {
        remove_entry(table, entry);
        return false;
    }
    *port = entry->port;
    return true;
}
