/* Data of the request decides what happens: for explorations whose paths are known. */
#include "agent.h"

static void prepare(void)
{
}

static void note_byte(unsigned char byte)
{
    report[reported++] = byte;
}

/* Not inlined, so that neither a compiler nor an explorer makes one way of several. */
__attribute__((noinline)) static void word(const char *text)
{
    note_text(text);
}

/* 9 * 4 paths, each with a long answer of its own; the last byte is only repeated. */
SPEAKING(branches)
{
    int bits = 0;

    for (unsigned left = asked[0]; left; left >>= 1) {
        word("bit ");
        bits++;
    }
    if (asked[1] < 10)
        word("few");
    else if (asked[1] < 100)
        word("many");
    else if (asked[1] == 200)
        word("two hundred");
    else
        word("another number");
    note_byte(asked[2]);
    while (reported < 700)
        note_byte('a' + bits);
}

static void one(void)
{
    note_text("one");
}

static void two(void)
{
    note_text("two");
}

/* Numbers, strings and functions by a symbolic index; a jump table; a write at a symbolic place. */
SPEAKING(tables)
{
    static const unsigned char squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
    static const char *const names[4] = {"zero", "one", "two", "three"};
    static void (*const functions[2])(void) = {one, two};
    unsigned char marks[2] = {0};

    note_byte(squares[asked[0] & 15]);
    note_text(names[asked[1] & 3]);
    functions[asked[2] & 1]();
    switch (asked[1] >> 4) {
    case 1: note_text("a"); break;
    case 3: note_text("bb"); break;
    case 4: note_text("ccc"); break;
    case 6: note_text("dddd"); break;
    case 7: note_text("eeeee"); break;
    }
    marks[asked[2] >> 1 & 1] = 1;
    note_byte(marks[0]);
}

/* An answer whose length is an input, and arithmetic that a solver has to look at. */
SPEAKING(lengths)
{
    unsigned short wide = asked[1] << 8 | asked[2];

    memset(report, 'x', 64);
    reported = asked[0] & 31;
    if (wide * 3 % 1000 == 7)
        report[0] = 'y';
    if ((short) wide < -30000)
        reported += 32;
}

/* Every way to end. */
SPEAKING(ends)
{
    static volatile int zero;
    void *nothing = NULL;

    switch (asked[0]) {
    case 1: abort();
    case 2: *(volatile char *) 16 = 0; break;
    case 3: note_byte(100 / zero); break;
    case 4: exit(asked[1] & 1);
    case 5: close(control); control = port; for (;;) poll(NULL, 0, -1);
    case 6: note_byte(100 / (asked[1] & 15)); break;
    case 7: note_byte(*(volatile unsigned char *) ((uintptr_t) asked[1] << 4)); break;
    case 8: syscall(SYS_swapon, nothing, 0); break;
    case 9: __asm__ volatile("vpaddd %zmm0, %zmm0, %zmm0"); break;
    case 10: note_byte(syscall(SYS_getrandom, report, 8, 0)); break;
    }
    note_text("fine");
}

/* A copy of so many bytes: what is not copied stays. */
SPEAKING(copies)
{
    char bytes[24] = "0123456789abcdefghijklm";
    volatile size_t size = asked[0] & 15;

    memcpy(bytes + 2, "ABCDEFGHIJKLMNOP", size);
    memmove(bytes + 1, bytes, 12);
    memset(bytes + 18, asked[1], 4);
    memcpy(report, bytes, sizeof bytes);
    reported = sizeof bytes;
}

SPEAKING(never_ends)
{
    if (asked[0] == 1)
        for (;;)
            __asm__ volatile("");
    while (asked[0] == 2)
        say(3, "more", report, sizeof report);
    note_text("fine");
}
