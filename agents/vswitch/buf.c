/* A growable byte buffer. */
#include "buf.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

#define INITIAL_CAPACITY 256

void buf_init(struct buf *buf) { memset(buf, 0, sizeof *buf); }

void buf_free(struct buf *buf)
{
    free(buf->base);
    buf_init(buf);
}

static void move_to_base(struct buf *buf)
{
    memmove(buf->base, buf_front(buf), buf_size(buf));
    buf->tail -= buf->head;
    buf->head = 0;
}

void buf_reserve(struct buf *buf, size_t room)
{
    size_t capacity = buf->capacity > 0 ? buf->capacity : INITIAL_CAPACITY;

    if (buf->capacity - buf->tail >= room) {
        return;
    }
    if (buf->head > 0) {
        move_to_base(buf);
    }
    while (capacity - buf->tail < room) {
        capacity *= 2;
    }
    if (capacity != buf->capacity) {
        buf->base = xrealloc(buf->base, capacity);
        buf->capacity = capacity;
    }
}

void *buf_add(struct buf *buf, size_t size)
{
    void *added;

    buf_reserve(buf, size);
    added = buf->base + buf->tail;
    memset(added, 0, size);
    buf->tail += size;
    return added;
}

void buf_append(struct buf *buf, const void *bytes, size_t size)
{
    if (size > 0) {
        buf_reserve(buf, size);
        memcpy(buf->base + buf->tail, bytes, size);
        buf->tail += size;
    }
}

void buf_consume(struct buf *buf, size_t size)
{
    buf->head += size;
    if (buf->head == buf->tail) {
        buf->head = buf->tail = 0;
    }
}
