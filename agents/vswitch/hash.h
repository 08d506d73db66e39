/* The one hash function of the switch. */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

uint32_t hash_bytes(const void *bytes, size_t size, uint32_t basis);

#endif
