/* An agent of four threads: one speaks with the controller, another looks around every 100 ms and wakes it if asked,
 * and two do what they are told. */
#include "agent.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked_for = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int task, answered, idle;

static void *do_as_told(void *number)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        idle++;
        while (!task)
            pthread_cond_wait(&asked_for, &lock);
        idle--;
        answered = task * 2;
        task = 0;
        pthread_cond_signal(&done);
    }
}

/* These wait at a futex of their own making. */
static int gate, second_gate, through;

static void *wait_at_the_gate(void *unused)
{
    for (;;) {
        syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 0, NULL);
        __sync_fetch_and_add(&through, 1);
    }
}

static void prepare(void)
{
    pthread_t thread;

    if (pipe(bell) || pthread_create(&thread, NULL, look_around, NULL))
        exit(1);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, do_as_told, NULL) || pthread_create(&thread, NULL, wait_at_the_gate, NULL))
            exit(1);
    usleep(20000); /* until they wait */
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

static int ask(int what, int milliseconds)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    answered = 0;
    task = what;
    if (what)
        pthread_cond_signal(&asked_for);
    while (!answered && !error)
        error = pthread_cond_timedwait(&done, &lock, &until);
    pthread_mutex_unlock(&lock);
    return error ? -error : answered;
}

/* Another thread does it, and this one waits for that. */
SPEAKING(done_by_another)
{
    TRY(ask(21, 900));
    TRY(ask(4, 900));
}

/* Nobody does it in time. */
WAITING(done_by_nobody)
{
    TRY(ask(0, 50));
}

/* As many are woken as are asked for, and they have gone when this one waits. */
WAITING(through_the_gate)
{
    TRY(syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 1));
    TRY(poll(NULL, 0, 10));
    NOTE(through);
    TRY(syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 5));
    TRY(poll(NULL, 0, 10));
    NOTE(through);
}

/* One is woken, the other sent to wait elsewhere. */
WAITING(to_another_gate)
{
    TRY(syscall(SYS_futex, &gate, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &second_gate, 7));
    TRY(syscall(SYS_futex, &gate, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &second_gate, 0));
    TRY(poll(NULL, 0, 10));
    NOTE(through);
    TRY(syscall(SYS_futex, &second_gate, FUTEX_WAKE_PRIVATE, 5));
    TRY(poll(NULL, 0, 10));
    NOTE(through);
    TRY(syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 5));
    TRY(poll(NULL, 0, 10));
    NOTE(through);
}

/* It gives way until another thread has run. */
SPEAKING(yielding)
{
    int before = through;

    TRY(syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 1));
    while (through == before)
        sched_yield();
    NOTE(through - before);
}

/* The other threads have nothing to do with it. */
SPEAKING(alone)
{
    NOTE(looks_left);
}
