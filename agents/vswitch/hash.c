/* MurmurHash3, x86 32-bit variant (Austin Appleby, public domain algorithm). */
#include "hash.h"

#include <string.h>

static uint32_t rotate_left(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t mix_word(uint32_t hash, uint32_t word)
{
    word *= 0xcc9e2d51;
    word = rotate_left(word, 15);
    word *= 0x1b873593;
    hash ^= word;
    hash = rotate_left(hash, 13);
    return hash * 5 + 0xe6546b64;
}

static uint32_t finish(uint32_t hash)
{
    hash ^= hash >> 16;
    hash *= 0x85ebca6b;
    hash ^= hash >> 13;
    hash *= 0xc2b2ae35;
    hash ^= hash >> 16;
    return hash;
}

/* Never inlined: hashing is one place in a profile, whoever reads that profile. */
__attribute__((noinline)) uint32_t hash_bytes(const void *bytes, size_t size, uint32_t basis)
{
    const uint8_t *cursor = bytes;
    uint32_t hash = basis;
    uint32_t word;
    size_t left;

    for (left = size; left >= sizeof word; left -= sizeof word, cursor += sizeof word) {
        memcpy(&word, cursor, sizeof word);
        hash = mix_word(hash, word);
    }
    if (left > 0) {
        word = 0;
        memcpy(&word, cursor, left);
        hash = mix_word(hash, word);
    }
    return finish(hash ^ (uint32_t) size);
}
