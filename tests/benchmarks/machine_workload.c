/* What an agent's hot code looks like: hashing, sorting, table look-ups, checksums, text. No library, no data relocations. */

#include <stddef.h>
#include <stdint.h>

static uint32_t hash_words(const uint32_t *p, size_t n, uint32_t hash)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t k = p[i] * 0xcc9e2d51u;
        k = (k << 15 | k >> 17) * 0x1b873593u;
        hash ^= k;
        hash = (hash << 13 | hash >> 19) * 5 + 0xe6546b64u;
    }
    hash ^= hash >> 16;
    hash *= 0x85ebca6bu;
    hash ^= hash >> 13;
    hash *= 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static uint16_t checksum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += p[i] << 8 | p[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}

static int number(char *out, uint64_t value)
{
    char digits[24];
    int n = 0, length = 0;
    do
        digits[n++] = '0' + value % 10;
    while (value /= 10);
    while (n)
        out[length++] = digits[--n];
    out[length] = 0;
    return length;
}

static void sort(uint32_t *a, int n)
{
    for (int i = 1; i < n; i++) {
        uint32_t x = a[i];
        int j = i;
        for (; j > 0 && a[j - 1] > x; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

struct entry {
    struct entry *next;
    uint32_t key, value;
};

struct work {
    uint32_t words[64];
    struct entry *buckets[16];
    struct entry entries[64];
    char text[32];
};

__attribute__((noinline)) static struct entry *lookup(struct work *w, uint32_t key)
{
    for (struct entry *e = w->buckets[hash_words(&key, 1, 0) % 16]; e; e = e->next)
        if (e->key == key)
            return e;
    return NULL;
}

uint64_t work(struct work *w, uint32_t rounds)
{
    uint64_t result = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < 16; i++)
            w->buckets[i] = NULL;
        for (uint32_t i = 0; i < 64; i++) {
            struct entry *e = &w->entries[i];
            e->key = i * 7 + round;
            e->value = i;
            struct entry **head = &w->buckets[hash_words(&e->key, 1, 0) % 16];
            e->next = *head;
            *head = e;
        }
        for (uint32_t i = 0; i < 64; i++) {
            struct entry *e = lookup(w, i * 3 + round);
            w->words[i] = (e ? e->value : 1000 - i) ^ round;
        }
        sort(w->words, 64);
        result = result * 31 + hash_words(w->words, 64, round);
        result += checksum((const uint8_t *)w->words, sizeof w->words);
        result += number(w->text, result);
    }
    return result;
}
