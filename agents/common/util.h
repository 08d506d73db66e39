/* Small helpers that every agent needs: logging, time, allocation, byte order. */
#ifndef UTIL_H
#define UTIL_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

extern bool log_enabled; /* Set by --verbose. */

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The arguments are not evaluated unless logging is on. */
#define LOG(...)                                                                                   \
    do {                                                                                           \
        if (log_enabled) {                                                                         \
            log_line(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

/* Milliseconds of the monotonic clock. */
int64_t clock_ms(void);

/* malloc that does not return on failure: an agent without memory cannot serve anyone. */
void *xmalloc(size_t size);
void *xcalloc(size_t size);
void *xrealloc(void *memory, size_t size);

void set_nonblocking(int fd);

#endif
