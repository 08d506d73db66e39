/* Signals, handlers and alarms. */
#include "agent.h"
#include <setjmp.h>

static volatile int handled, last, depth, most_depth;
static sigjmp_buf back;

static void count(int number)
{
    handled++;
    last = number;
}

static void prepare(void)
{
    signal(SIGALRM, count);
    signal(SIGUSR1, count);
}

static void detailed(int number, siginfo_t *info, void *context)
{
    count(number);
    NOTE(info->si_signo);
    NOTE(context != NULL);
}

static void nesting(int number)
{
    if (++depth > most_depth)
        most_depth = depth;
    if (handled++ < 2)
        raise(number);
    depth--;
}

static void note_handled(void)
{
    NOTE(handled);
    NOTE(last);
}

SPEAKING(raises)
{
    TRY(raise(SIGUSR1));
    note_handled();
    TRY(kill(getpid(), SIGUSR1));
    note_handled();
    TRY(kill(getpid(), 0));
}

SPEAKING(actions)
{
    struct sigaction new = {.sa_sigaction = detailed, .sa_flags = SA_SIGINFO}, old;

    TRY(sigaction(SIGUSR2, &new, &old));
    NOTE(old.sa_handler == SIG_DFL);
    TRY(sigaction(SIGUSR1, NULL, &old));
    NOTE(old.sa_handler == count);
    TRY(raise(SIGUSR2));
    note_handled();
    new.sa_handler = count;
    new.sa_flags = SA_RESETHAND;
    TRY(sigaction(SIGUSR2, &new, NULL));
    TRY(raise(SIGUSR2));
    TRY(sigaction(SIGUSR2, NULL, &old));
    NOTE(old.sa_handler == SIG_DFL);
    TRY(sigaction(SIGKILL, &new, NULL));
    TRY(sigaction(99, &new, NULL));
}

SPEAKING(masks)
{
    sigset_t set, old, waiting;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    TRY(sigprocmask(SIG_BLOCK, &set, &old));
    NOTE(sigismember(&old, SIGUSR1));
    raise(SIGUSR1);
    raise(SIGUSR1);
    note_handled();
    TRY(sigpending(&waiting));
    NOTE(sigismember(&waiting, SIGUSR1));
    TRY(sigprocmask(SIG_SETMASK, &old, NULL));
    note_handled();
    TRY(sigprocmask(SIG_UNBLOCK, &set, NULL));
    TRY(sigprocmask(77, &set, NULL));
}

SPEAKING(nests)
{
    struct sigaction new = {.sa_handler = nesting};

    TRY(sigaction(SIGUSR2, &new, NULL));
    TRY(raise(SIGUSR2));
    NOTE(handled);
    NOTE(most_depth);
    handled = most_depth = 0;
    new.sa_flags = SA_NODEFER;
    TRY(sigaction(SIGUSR2, &new, NULL));
    TRY(raise(SIGUSR2));
    NOTE(handled);
    NOTE(most_depth);
}

SPEAKING(ignores)
{
    signal(SIGUSR1, SIG_IGN);
    TRY(raise(SIGUSR1));
    TRY(raise(SIGCHLD));
    note_handled();
}

static void jump(int number)
{
    siglongjmp(back, number);
}

SPEAKING(jumps_out_of_a_handler)
{
    int number;

    signal(SIGUSR1, jump);
    number = sigsetjmp(back, 1);
    if (!number)
        raise(SIGUSR1);
    NOTE(number);
    signal(SIGUSR1, count);
    TRY(raise(SIGUSR1));
    note_handled();
}

static void leave(int number)
{
    _exit(number + 100);
}

SPEAKING(handles_its_own_fault)
{
    signal(SIGSEGV, leave);
    *(volatile char *) 16 = 0;
}

SPEAKING(handles_its_own_division)
{
    signal(SIGFPE, leave);
    NOTE(100 / handled);
}

SPEAKING(survives_its_own_fault)
{
    signal(SIGSEGV, jump);
    if (!sigsetjmp(back, 1))
        *(volatile char *) 16 = 0;
    NOTE(1);
}

SPEAKING(handles_its_own_abort)
{
    signal(SIGABRT, leave);
    abort();
}

SPEAKING(is_terminated)
{
    raise(SIGTERM);
}

WAITING(alarms)
{
    struct itimerval once = {.it_value = {0, 60000}}, old;

    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(getitimer(ITIMER_REAL, &old));
    NOTE(old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 60000);
    TRY(poll(NULL, 0, -1));
    note_handled();
    TRY(poll(NULL, 0, 30));
    TRY(getitimer(ITIMER_REAL, &old));
    NOTE(old.it_value.tv_usec);
    TRY(alarm(100));
    TRY(alarm(0));
}

WAITING(alarms_repeat)
{
    struct itimerval every = {.it_value = {0, 50000}, .it_interval = {0, 40000}}, off = {0};

    TRY(setitimer(ITIMER_REAL, &every, NULL));
    while (handled < 3)
        poll(NULL, 0, -1);
    TRY(setitimer(ITIMER_REAL, &off, NULL));
    NOTE(handled >= 3);
}

WAITING(alarm_interrupts_a_sleep)
{
    struct itimerval once = {.it_value = {0, 60000}};
    struct timespec left = {0, 0};

    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(nanosleep(&(struct timespec) {10, 0}, &left));
    NOTE(left.tv_sec);
    note_handled();
}

WAITING(alarm_and_a_read)
{
    struct itimerval once = {.it_value = {0, 60000}};
    struct sigaction plain = {.sa_handler = count};
    int ends[2];
    char byte;

    TRY(pipe(ends));
    TRY(sigaction(SIGALRM, &plain, NULL));
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(read(ends[0], &byte, 1));
    note_handled();
}

static void feed(int number)
{
    count(number);
    raise(SIGUSR1);
}

static int fed[2];

static void feed_pipe(int number)
{
    count(number);
    if (write(fed[1], "x", 1) != 1)
        handled = 99;
}

WAITING(alarm_restarts_a_read)
{
    struct itimerval once = {.it_value = {0, 60000}};
    struct sigaction restart = {.sa_handler = feed_pipe, .sa_flags = SA_RESTART};
    char byte = 0;

    TRY(pipe(fed));
    TRY(sigaction(SIGALRM, &restart, NULL));
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(read(fed[0], &byte, 1));
    NOTE(byte);
    note_handled();
}

WAITING(alarm_in_the_mask_of_ppoll)
{
    struct itimerval once = {.it_value = {0, 60000}};
    sigset_t set, none;

    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    TRY(sigprocmask(SIG_BLOCK, &set, NULL));
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(poll(NULL, 0, 100));
    note_handled();
    TRY(ppoll(NULL, 0, NULL, &none));
    note_handled();
    TRY(sigprocmask(SIG_BLOCK, NULL, &none));
    NOTE(sigismember(&none, SIGALRM));
}

WAITING(a_handler_that_raises)
{
    struct itimerval once = {.it_value = {0, 60000}};

    signal(SIGALRM, feed);
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(poll(NULL, 0, -1));
    note_handled();
}

WAITING(pauses)
{
    struct itimerval once = {.it_value = {0, 60000}};
    sigset_t none;

    sigemptyset(&none);
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(pause());
    note_handled();
    TRY(setitimer(ITIMER_REAL, &once, NULL));
    TRY(sigsuspend(&none));
    note_handled();
}

WAITING(an_alarm_nobody_handles)
{
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &(struct itimerval) {.it_value = {0, 60000}}, NULL);
    poll(NULL, 0, -1);
}
