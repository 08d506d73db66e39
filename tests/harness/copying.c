/* Answers an echo_request of four bytes, WAY 0 NUMBER NUMBER, after a copy of NUMBER - 20 bytes of some kind. */
#include "echoing.h"

static char area[1 << 16];

__attribute__((constructor)) static void prepare(void)
{
    for (int i = 0; i < (int) sizeof area; i++)
        area[i] = i % 251;
}

/* Not inlined, or the compiler would know how much room there is. */
__attribute__((noinline)) static void copy(int way, char *to, char *from, size_t size)
{
    if (way == 0)
        memcpy(to, from, size);
    else if (way == 1)
        memmove(to, from, size);
    else
        memset(to, 'x', size);
}

static void answer(unsigned char *m)
{
    size_t size = (size_t) (m[10] << 8 | m[11]) - 20;
    char *heap, place[24];
    switch (m[8]) {
    case 0: case 1: case 2: /* within static memory, up and down */
        copy(m[8], area + 8000, area + 8100, size);
        copy(m[8], area + 9000, area + 8900, size);
        break;
    case 3: case 4: case 5: /* more than there is */
        copy(m[8] - 3, area + 8000, area + 8100, size << 40);
        break;
    case 6: case 7: case 8: /* on the heap */
        heap = malloc(4096);
        memset(heap, 0, 4096);
        copy(m[8] - 6, heap + 2000, area + 2048, size);
        memcpy(area + 7990, heap + 1990, 40);
        break;
    case 9: case 10: case 11: /* where the compiler knows how much room there is */
        if (m[8] == 9)
            memcpy(place, area, size);
        else if (m[8] == 10)
            memmove(place, area, size);
        else
            memset(place, 'x', size);
        memcpy(area + 7990, place, 4);
        break;
    }
    reply(m, area + 7990, 40);
}
