/* Memory, time and logging. */
#include "util.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

bool log_enabled;

static void *check_allocation(void *block)
{
    if (block == NULL) {
        fputs("vswitch: out of memory\n", stderr);
        abort();
    }
    return block;
}

void *xmalloc(size_t size) { return check_allocation(malloc(size > 0 ? size : 1)); }

void *xcalloc(size_t count, size_t size) { return check_allocation(calloc(count, size)); }

void *xrealloc(void *block, size_t size) { return check_allocation(realloc(block, size)); }

uint64_t time_msec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

uint64_t hton64(uint64_t value) { return htobe64(value); }

uint64_t ntoh64(uint64_t value) { return be64toh(value); }

static void print_line(const char *format, va_list arguments)
{
    fputs("vswitch: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void log_line(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
}

void fatal(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
    exit(2);
}
