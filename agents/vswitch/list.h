/* An intrusive doubly linked list with a sentinel. */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>

struct list {
    struct list *next;
    struct list *previous;
};

static inline void list_init(struct list *list) { list->next = list->previous = list; }

static inline bool list_is_empty(const struct list *list) { return list->next == list; }

/* Also the way to append to a list: insert before its sentinel. */
static inline void list_insert_before(struct list *position, struct list *element)
{
    element->previous = position->previous;
    element->next = position;
    position->previous->next = element;
    position->previous = element;
}

/* Leaves the element initialised, so that removing it twice is harmless. */
static inline void list_remove(struct list *element)
{
    element->previous->next = element->next;
    element->next->previous = element->previous;
    list_init(element);
}

#define LIST_FOR_EACH(cursor, head) \
    for (struct list *cursor = (head)->next; cursor != (head); cursor = cursor->next)

/* The body may remove the cursor's own element, but no other. */
#define LIST_FOR_EACH_SAFE(cursor, head)                                                   \
    for (struct list *cursor = (head)->next, *cursor##_next = cursor->next; cursor != (head); \
         cursor = cursor##_next, cursor##_next = cursor->next)

#endif
