/* Small things that everything else needs: memory, time, logging, unaligned loads. */
#ifndef UTIL_H
#define UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_OF(pointer, type, member) ((type *) ((char *) (pointer) - offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PRINTF_LIKE(string, first) __attribute__((format(printf, string, first)))

/* Allocation that ends the process when memory is exhausted: a switch cannot go on without. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *block, size_t size);

uint64_t time_msec(void);

/* Conversions of 64-bit counters to and from network order. */
uint64_t hton64(uint64_t value);
uint64_t ntoh64(uint64_t value);

/* Logging goes to stderr, and nowhere unless the user asked for it. */
extern bool log_enabled;
void log_line(const char *format, ...) PRINTF_LIKE(1, 2);
#define LOG(...)                       \
    do {                               \
        if (log_enabled) {             \
            log_line(__VA_ARGS__);     \
        }                              \
    } while (0)

/* Prints a sentence on stderr and exits with status 2 (wrong usage, or a resource is missing). */
void fatal(const char *format, ...) PRINTF_LIKE(1, 2) __attribute__((noreturn));

#endif
