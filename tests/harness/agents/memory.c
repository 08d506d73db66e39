/* Memory that comes and goes. */
#include "agent.h"

#define PAGE 4096

static void prepare(void)
{
}

static char *pages(int count, int protection)
{
    return mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A checksum of a block, so that all of it is read. */
static long sum(const char *bytes, size_t size)
{
    long total = 0;

    for (size_t i = 0; i < size; i += 97)
        total = total * 31 + bytes[i];
    return total;
}

SPEAKING(maps)
{
    char *block = pages(3, PROT_READ | PROT_WRITE);

    NOTE((uintptr_t) block % PAGE);
    NOTE(sum(block, 3 * PAGE));
    memset(block, 'x', 3 * PAGE);
    NOTE(sum(block, 3 * PAGE));
    TRY(mprotect(block + PAGE, PAGE, PROT_READ));
    NOTE(sum(block, 3 * PAGE));
    TRY(munmap(block + 2 * PAGE, PAGE));
    NOTE(sum(block, 2 * PAGE));
    TRY(munmap(block, 2 * PAGE));
    TRY(munmap(block, PAGE));
    TRY(munmap(block + 1, PAGE));
    NOTE(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    NOTE(errno);
}

SPEAKING(maps_over_a_map)
{
    char *block = pages(3, PROT_READ | PROT_WRITE);

    memset(block, 'x', 3 * PAGE);
    NOTE(mmap(block + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == block + PAGE);
    NOTE(block[PAGE - 1]);
    NOTE(block[PAGE]);
    NOTE(block[2 * PAGE]);
}

SPEAKING(gives_pages_back)
{
    char *block = pages(3, PROT_READ | PROT_WRITE);

    memset(block, 'x', 3 * PAGE);
    TRY(madvise(block + PAGE, PAGE, MADV_DONTNEED));
    NOTE(block[PAGE - 1]);
    NOTE(block[PAGE]);
    NOTE(block[2 * PAGE]);
    TRY(madvise(block, PAGE, MADV_WILLNEED));
}

SPEAKING(grows_and_shrinks)
{
    char *block = pages(2, PROT_READ | PROT_WRITE), *moved;

    memset(block, 'x', 2 * PAGE);
    moved = mremap(block, 2 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
    NOTE(moved != MAP_FAILED);
    NOTE(sum(moved, 300 * PAGE));
    NOTE(mremap(moved, 300 * PAGE, PAGE, 0) == moved);
    NOTE(sum(moved, PAGE));
    TRY(munmap(moved, PAGE));
}

SPEAKING(big_blocks)
{
    char *one = malloc(1 << 20), *two = calloc(1, 3 << 20);

    NOTE(sum(two, 3 << 20));
    memset(one, 'x', 1 << 20);
    one = realloc(one, 4 << 20);
    NOTE(sum(one, 1 << 20));
    memset(one, 'y', 4 << 20);
    free(two);
    one = realloc(one, 100);
    NOTE(sum(one, 100));
    free(one);
    NOTE(malloc((size_t) 1 << 46) == NULL);
}

SPEAKING(small_blocks)
{
    static char *blocks[600];
    long total = 0;

    for (int round = 0; round < 3; round++) {
        for (int i = round % 2; i < 600; i += 1 + round) {
            free(blocks[i]);
            blocks[i] = malloc(17 * (i % 90) + 1);
            memset(blocks[i], i, 17 * (i % 90) + 1);
        }
        for (int i = 0; i < 600; i++)
            total += blocks[i] ? sum(blocks[i], 17 * (i % 90) + 1) : 0;
    }
    NOTE(total);
}

SPEAKING(the_heaps_end)
{
    char *before = sbrk(0), *block = sbrk(5 * PAGE);

    NOTE(block - before);
    memset(block, 'x', 5 * PAGE);
    NOTE((char *) sbrk(0) - before);
    NOTE(sum(block, 5 * PAGE));
    NOTE((char *) sbrk(-5 * PAGE) - before);
    NOTE((char *) sbrk(0) - before);
    block = sbrk(PAGE);
    NOTE(block[0]);
}

SPEAKING(much_stack)
{
    volatile char much[1 << 20];

    much[0] = much[sizeof much - 1] = 'x';
    for (size_t i = 0; i < sizeof much; i += PAGE)
        much[i] = i / PAGE;
    NOTE(sum((const char *) much, sizeof much) != 0);
}

SPEAKING(writes_where_it_may_not)
{
    char *block = pages(2, PROT_READ | PROT_WRITE);

    block[0] = 'x';
    mprotect(block, PAGE, PROT_READ);
    NOTE(block[0]);
    block[0] = 'y';
}

SPEAKING(reads_behind_its_memory)
{
    char *block = pages(2, PROT_READ | PROT_WRITE);

    munmap(block + PAGE, PAGE);
    NOTE(*(volatile char *) (block + PAGE));
}

SPEAKING(reads_a_guard_page)
{
    NOTE(*(volatile char *) pages(1, PROT_NONE));
}

SPEAKING(gives_a_bad_buffer)
{
    static char *volatile nowhere = (char *) 16;
    int ends[2];

    TRY(pipe(ends));
    TRY(write(ends[1], nowhere, 3));
    TRY(write(ends[1], "abc", 3));
    TRY(read(ends[0], nowhere, 3));
    TRY(poll((void *) nowhere, 1, 0));
    TRY(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, nowhere));
}
