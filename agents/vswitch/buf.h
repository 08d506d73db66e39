/* A growable byte buffer, filled at the end and consumed at the front. */
#ifndef BUF_H
#define BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *base;
    size_t capacity;
    size_t head; /* Offset of the first byte not consumed yet. */
    size_t tail; /* Offset just past the last byte. */
};

void buf_init(struct buf *buf);
void buf_free(struct buf *buf);

static inline size_t buf_size(const struct buf *buf) { return buf->tail - buf->head; }
static inline uint8_t *buf_front(const struct buf *buf) { return buf->base + buf->head; }

void buf_reserve(struct buf *buf, size_t room); /* Room for that many bytes at the tail. */
void *buf_add(struct buf *buf, size_t size);    /* Appends zeros; valid until the next append. */
void buf_append(struct buf *buf, const void *bytes, size_t size);
void buf_consume(struct buf *buf, size_t size);

#endif
