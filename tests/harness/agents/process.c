/* The process itself: its names, its locks, and every way to end. */
#include "agent.h"
#include <assert.h>
#include <pthread.h>

static volatile int zero;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;

static void prepare(void)
{
}

SPEAKING(names)
{
    struct rusage usage;
    struct rlimit limit;

    NOTE(getpid() == gettid());
    NOTE(getpid() > 1);
    NOTE(geteuid() == getuid());
    NOTE(getegid() == getgid());
    TRY(getrusage(RUSAGE_SELF, &usage));
    NOTE(usage.ru_utime.tv_sec >= 0);
    TRY(getrlimit(RLIMIT_NOFILE, &limit));
    NOTE(limit.rlim_cur > 0);
    TRY(sched_yield());
    TRY(waitpid(-1, NULL, WNOHANG));
}

SPEAKING(locks)
{
    pthread_mutex_t recursive;
    pthread_mutexattr_t kind;
    pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    NOTE(pthread_mutex_lock(&mutex));
    NOTE(pthread_mutex_trylock(&mutex));
    NOTE(pthread_mutex_unlock(&mutex));
    NOTE(pthread_mutex_lock(&recursive));
    NOTE(pthread_mutex_lock(&recursive));
    NOTE(pthread_mutex_unlock(&recursive));
    NOTE(pthread_rwlock_rdlock(&shared));
    NOTE(pthread_rwlock_trywrlock(&shared));
    NOTE(pthread_cond_signal(&nobody));
    NOTE(pthread_cond_broadcast(&nobody));
}

WAITING(waits_for_nobody)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 60000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    NOTE(pthread_mutex_lock(&mutex));
    NOTE(pthread_cond_timedwait(&nobody, &mutex, &until));
    NOTE(pthread_mutex_unlock(&mutex));
}

SPEAKING(leaves)
{
    exit(0);
}

SPEAKING(leaves_with_a_number)
{
    _exit(300);
}

SPEAKING(says_something_and_leaves)
{
    say(3, "last", "bye", 3);
    exit(3);
}

SPEAKING(aborts)
{
    abort();
}

SPEAKING(fails_an_assertion)
{
    assert(zero);
}

SPEAKING(reads_through_null)
{
    NOTE(*(volatile int *) (uintptr_t) zero);
}

SPEAKING(calls_null)
{
    ((void (*)(void))(uintptr_t) zero)();
}

SPEAKING(runs_data)
{
    ((void (*)(void))(uintptr_t) report)();
}

SPEAKING(divides_by_zero)
{
    NOTE(100 / zero);
}

SPEAKING(divides_too_much)
{
    volatile int least = -2147483647 - 1, minus = -1;

    NOTE(least / minus);
}

SPEAKING(executes_nonsense)
{
    __builtin_trap();
}

SPEAKING(meets_a_breakpoint)
{
    __asm__("int3");
}

SPEAKING(does_what_only_a_kernel_may)
{
    __asm__("hlt");
}

static int recursion(int depth)
{
    volatile char frame[200];

    frame[depth % 200] = 1;
    return recursion(depth + 1) + frame[3];
}

SPEAKING(recurses)
{
    NOTE(recursion(zero));
}

SPEAKING(smashes_a_free_block)
{
    void *block = malloc(100);

    free(block);
    __asm__("" : "+r"(block));
    free(block);
}

SPEAKING(is_killed)
{
    kill(getpid(), SIGKILL);
}
