/* Main loops that look around every 10 ms. Each goes on until its controller says something. */
#include "agent.h"

#define TICK 10

static void prepare(void)
{
}

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int heard(void)
{
    struct pollfd fd = {.fd = control, .events = POLLIN};

    return poll(&fd, 1, TICK) != 0;
}

static void tell(const char *what)
{
    say(3, "tick", what, strlen(what));
}

/* Nothing at all. */
WAITING(empty)
{
    while (!heard())
        ;
}

/* What a real one does: it remembers the time, and counts. */
static struct {
    long long now, before, waited;
    unsigned long long ticks;
    unsigned int wakeups;
    unsigned char round;
    struct timeval of_day;
} loop;

WAITING(busy_with_itself)
{
    loop.now = now_ms();
    while (!heard()) {
        loop.before = loop.now;
        loop.now = now_ms();
        if (loop.now - loop.before > 1000)
            tell("that took long");
        loop.waited += loop.now - loop.before;
        loop.ticks++;
        loop.wakeups++;
        loop.round++;
        gettimeofday(&loop.of_day, NULL);
    }
}

/* Does something at every hundredth tick: it says how many there were. */
static volatile unsigned int counted;

WAITING(every_hundredth)
{
    while (!heard())
        if (++counted % 100 == 0)
            tell("another hundred");
}

/* The same with a counter of 64 bits, and then no more. */
static volatile unsigned long counted_long;

WAITING(once_at_the_thousandth)
{
    while (!heard())
        if (++counted_long == 1000)
            tell("a thousand");
}

/* Something is due at a time of its own, which is no multiple of a tick; then it is due again. */
static volatile long long due;

WAITING(every_five_seconds)
{
    due = now_ms() + 5003;
    while (!heard())
        if (now_ms() >= due) {
            tell("five seconds");
            due += 5003;
        }
}

/* As event libraries keep time: in seconds and microseconds, with a deadline that goes on from the last one. */
static struct timeval deadline;

WAITING(every_second_in_timeval)
{
    struct timespec now;
    struct timeval left;

    clock_gettime(CLOCK_MONOTONIC, &now);
    deadline = (struct timeval){now.tv_sec, now.tv_nsec / 1000 + 250};
    for (;;) {
        struct pollfd fd = {.fd = control, .events = POLLIN};

        deadline.tv_sec++;
        if (deadline.tv_usec >= 1000000) {
            deadline.tv_sec++;
            deadline.tv_usec -= 1000000;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        left = (struct timeval){deadline.tv_sec - now.tv_sec, deadline.tv_usec - now.tv_nsec / 1000};
        if (left.tv_usec < 0) {
            left.tv_sec--;
            left.tv_usec += 1000000;
        }
        if (poll(&fd, 1, left.tv_sec * 1000 + (left.tv_usec + 999) / 1000))
            return;
    }
}

/* Something is due after a time that the controller gives, in seconds. */
WAITING(when_asked)
{
    long long start = now_ms();
    unsigned int seconds = asked[0];
    int told = 0;

    while (!heard())
        if (!told && now_ms() - start >= 1000 * seconds) {
            tell("now");
            told = 1;
        }
}

/* Seconds only. */
WAITING(when_asked_in_seconds)
{
    time_t start = time(NULL), limit = start + 1 + asked[0];
    int told = 0;

    while (!heard())
        if (!told && time(NULL) > limit) {
            tell("now");
            told = 1;
        }
}

WAITING(timerfd)
{
    struct itimerspec every = {{0, TICK * 1000000}, {0, TICK * 1000000}};
    struct itimerspec once = {{0, 0}, {30, 5000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), other = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    uint64_t ticks;

    timerfd_settime(timer, 0, &every, NULL);
    timerfd_settime(other, 0, &once, NULL);
    for (;;) {
        struct pollfd fds[] = {{.fd = control, .events = POLLIN}, {.fd = timer, .events = POLLIN},
                               {.fd = other, .events = POLLIN}};

        poll(fds, 3, -1);
        if (fds[1].revents && read(timer, &ticks, 8) == 8 && ticks > 30)
            tell("some were missed");
        if (fds[2].revents && read(other, &ticks, 8) == 8)
            tell("half a minute");
        if (fds[0].revents)
            break;
    }
    close(timer);
    close(other);
}

static volatile sig_atomic_t rang;

static void ring(int signal)
{
    rang++;
}

WAITING(alarm_clock)
{
    struct itimerval every = {{0, TICK * 1000}, {0, TICK * 1000}}, never = {{0, 0}, {0, 0}};
    struct pollfd fd = {.fd = control, .events = POLLIN};

    signal(SIGALRM, ring);
    setitimer(ITIMER_REAL, &every, NULL);
    while (poll(&fd, 1, -1) <= 0)
        if (rang == 2000)
            tell("twenty seconds");
    setitimer(ITIMER_REAL, &never, NULL);
}

WAITING(select_with_what_is_left)
{
    struct timeval left = {0, 0};
    fd_set set;

    for (;;) {
        if (!left.tv_sec && !left.tv_usec)
            left.tv_usec = TICK * 1000;
        FD_ZERO(&set);
        FD_SET(control, &set);
        if (select(control + 1, &set, NULL, NULL, &left))
            break;
    }
}

/* No tick is like another: a generator of random numbers goes on. */
static volatile unsigned int seed = 1;

WAITING(gambling)
{
    while (!heard()) {
        seed = seed * 1103515245 + 12345;
        if (seed % 4096 == 77)
            tell("won");
    }
}
