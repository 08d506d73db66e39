/* Bytes of the stack that were never written, and bytes that were. */
#include "agent.h"

static void prepare(void)
{
}

/* The compiler must not know that nothing was written there. */
static volatile char *somewhere(volatile char *place)
{
    __asm__ volatile("" : "+r"(place));
    return place;
}

SPEAKING(branches_on_what_it_never_wrote)
{
    volatile char unwritten[512];

    NOTE(somewhere(unwritten)[200] & 2 ? 1 : 0);
}

SPEAKING(sends_what_it_never_wrote)
{
    volatile char unwritten[512];

    report[reported++] = somewhere(unwritten)[200];
}

SPEAKING(writes_first)
{
    volatile char written[512];

    for (int i = 0; i < 512; i++)
        somewhere(written)[i] = i;
    NOTE(somewhere(written)[200] == 0);
    report[reported++] = somewhere(written)[200];
}

SPEAKING(reads_and_forgets)
{
    volatile char unwritten[512];

    somewhere(unwritten)[0] = somewhere(unwritten)[200];
    NOTE(1);
}
