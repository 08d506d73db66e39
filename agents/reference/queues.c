#include "queues.h"

#include <stddef.h>

#include "../common/openflow.h"
#include "../common/util.h"

static const struct queue_property no_properties[] = {{.type = OFPQT_NONE}};

void queues_add(struct queues *queues, uint16_t port)
{
    struct queue *queue = &queues->queues[queues->n_queues++];

    queue->port = port;
    queue->id = DEFAULT_QUEUE;
    queue->properties = no_properties;
}

struct queue *queues_find(struct queues *queues, uint16_t port)
{
    for (size_t i = 0; i < ARRAY_SIZE(queues->queues); i++) {
        if (queues->queues[i].port == port) {
            return &queues->queues[i];
        }
    }
    return NULL;
}
