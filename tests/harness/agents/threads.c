/* An agent of two threads: one speaks with the controller, the other looks around every 100 ms and wakes it if asked. */
#include "agent.h"
#include <pthread.h>

static int bell[2];
static volatile int looks_left; /* until it rings */

static void *look_around(void *unused)
{
    for (;;) {
        poll(NULL, 0, 100);
        if (looks_left && !--looks_left)
            write(bell[1], "!", 1);
    }
}

static void prepare(void)
{
    pthread_t thread;

    if (pipe(bell) || pthread_create(&thread, NULL, look_around, NULL))
        exit(1);
}

static void await_the_bell(int looks)
{
    struct pollfd fd = {.fd = bell[0], .events = POLLIN};
    char sign;

    looks_left = looks;
    TRY(poll(&fd, 1, -1));
    TRY(read(bell[0], &sign, 1));
}

/* What is due while the scenario waits may be the other thread's affair. */
WAITING(woken_in_a_wait)
{
    await_the_bell(2);
}

WAITING(woken_behind_the_wait)
{
    await_the_bell(6);
}

/* The next message lies unread until the other thread has rung. */
SPEAKING(woken_while_something_is_unread)
{
    await_the_bell(2);
}

/* The other thread has nothing to do with it. */
SPEAKING(alone)
{
    NOTE(looks_left);
}
