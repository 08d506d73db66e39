/* An agent's clock in somebody else's hands (see clock.py).
 *
 * Preloaded into an agent, this answers for the clocks and waits of libc. As long as the clock runs, it is the real one.
 * Once it is stopped, it moves only when it is told to: no wait ends by itself, each says until when it goes, and who
 * moves the clock wakes those whose time has come. The two sides share one page of memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x736f66742d636c6bULL
#define CLOCKS 12
#define SLOTS 128
#define FOREVER INT64_MAX
#define MILLISECOND 1000000LL
#define SECOND 1000000000LL
#define WAKE 62 /* a signal that hardly anybody uses */
/* Who reads a clock that stands still so often waits for it to go on: then it does. The model has the same number. */
#define PATIENCE 20000
/* Condition variables are looked at this often: no signal ends a wait for one. */
#define SLICE (5 * MILLISECOND)

struct slot { /* a thread */
    int32_t process, thread;
    int64_t deadline; /* while it waits: until when, else 0 */
    uint64_t waits;   /* how often it began to wait */
};

struct timer { /* a timerfd; none if the descriptor is 0 */
    int32_t process, descriptor;
    int64_t deadline, interval; /* disarmed if the deadline is 0 */
};

static struct page {
    uint64_t magic;
    int64_t stopped;        /* whether the clock stands still */
    int64_t moved;          /* by how much it was moved since then */
    int64_t clocks[CLOCKS]; /* what each clock said then */
    int64_t alarm, alarm_interval, alarm_process;
    int64_t unmovable; /* timers are in use that nobody can move */
    int64_t reads;
    struct timer timers[SLOTS];
    struct slot slots[SLOTS];
} *page;

static __thread struct slot *own;
static __thread volatile sig_atomic_t woken;

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec timespec_of(int64_t time)
{
    return (struct timespec){time / SECOND, time % SECOND};
}

static int64_t real_now(clockid_t clock)
{
    struct timespec now;

    return syscall(SYS_clock_gettime, clock, &now) ? -1 : nanoseconds(&now);
}

static int follows(clockid_t clock) { return clock >= 0 && clock < CLOCKS && clock != 2 && clock != 3 && clock != 10; }

static int64_t now_on(clockid_t clock)
{
    if (!page || !page->stopped || !follows(clock))
        return real_now(clock);
    if (__atomic_add_fetch(&page->reads, 1, __ATOMIC_RELAXED) > PATIENCE)
        __atomic_add_fetch(&page->moved, MILLISECOND, __ATOMIC_RELAXED);
    return page->clocks[clock] + __atomic_load_n(&page->moved, __ATOMIC_ACQUIRE);
}

static int64_t now(void) { return now_on(CLOCK_MONOTONIC); }

/* ---------------------------------------------------------------------------------------------- the page */

static void wake_up(int signal)
{
    int saved = errno;
    static const struct itimerval none;

    (void) signal;
    woken = 1;
    if (page->stopped && page->alarm && page->alarm_process == getpid())
        syscall(SYS_setitimer, ITIMER_REAL, &none, NULL);
    errno = saved;
}

static void after_fork(void) { own = NULL; }

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SOFT_CLOCK");
    /* Of the calls that a signal interrupts, those that wait for a time are never made again by the kernel. */
    struct sigaction action = {.sa_handler = wake_up, .sa_flags = SA_RESTART};
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory;

    if (file < 0)
        return;
    memory = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return;
    page = memory;
    sigfillset(&action.sa_mask);
    sigaction(WAKE, &action, NULL);
    pthread_atfork(NULL, NULL, after_fork);
    page->magic = MAGIC;
}

static struct slot *slot(void)
{
    int32_t thread = (int32_t) syscall(SYS_gettid);

    for (int i = 0; !own && i < SLOTS; i++) {
        int32_t expected = 0;

        if (__atomic_compare_exchange_n(&page->slots[i].thread, &expected, thread, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            own = &page->slots[i];
    }
    if (!own) { /* more threads than there is room for */
        page->unmovable = 1;
        return NULL;
    }
    own->process = getpid();
    return own;
}

/* ---------------------------------------------------------------------------------------------- waiting */

struct wait {
    int (*call)(const struct wait *, const struct timespec *limit);
    void *first, *second, *third, *fourth;
    long number;
    const sigset_t *mask;
    int64_t whole; /* how long, where that was said and no point in time; else 0 */
};

/* Wait in the kernel until something happens, or the deadline. */
static int wait_until(int64_t deadline, const struct wait *wait)
{
    struct slot *mine = slot();
    sigset_t mask;
    struct wait with_mask = *wait;

    if (wait->mask) {
        mask = *wait->mask;
        sigdelset(&mask, WAKE);
        with_mask.mask = &mask;
    }
    for (;;) {
        int64_t left = deadline == FOREVER ? FOREVER : deadline - now();
        struct timespec limit = timespec_of(left > 0 ? left : 0);
        int was_running = !page->stopped, result, saved;

        woken = 0;
        page->reads = 0;
        if (mine) {
            __atomic_store_n(&mine->deadline, deadline, __ATOMIC_RELEASE);
            __atomic_add_fetch(&mine->waits, 1, __ATOMIC_RELEASE);
        }
        result = with_mask.call(&with_mask, left == FOREVER || (left > 0 && page->stopped && mine) ? NULL : &limit);
        saved = errno;
        if (mine)
            __atomic_store_n(&mine->deadline, 0, __ATOMIC_RELEASE);
        errno = saved;
        if (result >= 0 || saved != EINTR || !woken)
            return result;
        /* The model makes the calls in which it finds an agent once more: how far a wait had come when the clock was
         * stopped is chance. */
        if (was_running && page->stopped && wait->whole > 0)
            deadline = now() + wait->whole;
    }
}

static int64_t after(int64_t time) { return time < 0 ? FOREVER : now() + time; }

static int call_ppoll(const struct wait *wait, const struct timespec *limit)
{
    struct timespec left = limit ? *limit : (struct timespec){0, 0};

    return (int) syscall(SYS_ppoll, wait->first, wait->number, limit ? &left : NULL, wait->mask, 8);
}

static int wait_for_poll(struct pollfd *fds, nfds_t count, int64_t time, const sigset_t *mask)
{
    struct wait wait = {.call = call_ppoll, .first = fds, .number = (long) count, .mask = mask, .whole = time};

    return wait_until(after(time), &wait);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (!page || timeout == 0)
        return (int) syscall(SYS_poll, fds, count, timeout);
    return wait_for_poll(fds, count, timeout < 0 ? -1 : timeout * MILLISECOND, NULL);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
    if (size / sizeof *fds < count)
        abort();
    return poll(fds, count, timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    struct wait wait = {.call = call_ppoll, .first = fds, .number = (long) count, .mask = mask};

    if (!page)
        return call_ppoll(&wait, timeout);
    return wait_for_poll(fds, count, timeout ? nanoseconds(timeout) : -1, mask);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
    if (size / sizeof *fds < count)
        abort();
    return ppoll(fds, count, timeout, mask);
}

static int call_epoll(const struct wait *wait, const struct timespec *limit)
{
    int64_t time = limit ? (nanoseconds(limit) + MILLISECOND - 1) / MILLISECOND : -1;

    return (int) syscall(SYS_epoll_pwait, (int) (intptr_t) wait->first, wait->second, (int) wait->number,
                         time > INT32_MAX ? INT32_MAX : (int) time, wait->mask, 8);
}

int epoll_pwait(int set, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
    struct wait wait = {
        .call = call_epoll, .first = (void *) (intptr_t) set, .second = events, .number = most, .mask = mask};

    if (!page || timeout == 0)
        return (int) syscall(SYS_epoll_pwait, set, events, most, timeout, mask, 8);
    wait.whole = timeout < 0 ? -1 : timeout * MILLISECOND;
    return wait_until(after(wait.whole), &wait);
}

int epoll_wait(int set, struct epoll_event *events, int most, int timeout)
{
    return epoll_pwait(set, events, most, timeout, NULL);
}

static int call_pselect(const struct wait *wait, const struct timespec *limit)
{
    struct timespec left = limit ? *limit : (struct timespec){0, 0};
    struct {
        const sigset_t *mask;
        size_t size;
    } mask = {wait->mask, 8};

    return (int) syscall(SYS_pselect6, wait->number, wait->first, wait->second, wait->third, limit ? &left : NULL, &mask);
}

int pselect(int count, fd_set *read, fd_set *write, fd_set *error, const struct timespec *timeout, const sigset_t *mask)
{
    struct wait wait = {
        .call = call_pselect, .first = read, .second = write, .third = error, .number = count, .mask = mask};

    if (!page)
        return call_pselect(&wait, timeout);
    wait.whole = timeout ? nanoseconds(timeout) : -1;
    return wait_until(after(wait.whole), &wait);
}

int select(int count, fd_set *read, fd_set *write, fd_set *error, struct timeval *timeout)
{
    struct timespec time;
    int64_t deadline, left;
    int result, saved;

    if (!timeout)
        return pselect(count, read, write, error, NULL, NULL);
    time = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
    deadline = now() + nanoseconds(&time);
    result = pselect(count, read, write, error, &time, NULL);
    saved = errno;
    left = deadline - now();
    *timeout = left > 0 ? (struct timeval){left / SECOND, left % SECOND / 1000} : (struct timeval){0, 0};
    errno = saved;
    return result;
}

/* ---------------------------------------------------------------------------------------------- sleeping */

static int sleep_until(int64_t deadline, int64_t whole)
{
    struct wait wait = {.call = call_ppoll, .whole = whole};

    return wait_until(deadline, &wait) < 0 ? errno : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    int64_t deadline;
    int error;

    if (!page || !follows(clock))
        return syscall(SYS_clock_nanosleep, clock, flags, time, left) ? errno : 0;
    if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= SECOND)
        return EINVAL;
    deadline = nanoseconds(time) + now() - (flags & TIMER_ABSTIME ? now_on(clock) : 0);
    error = sleep_until(deadline, flags & TIMER_ABSTIME ? 0 : nanoseconds(time));
    if (error && left && !(flags & TIMER_ABSTIME))
        *left = timespec_of(deadline > now() ? deadline - now() : 0);
    return error;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);

    errno = error ? error : errno;
    return error ? -1 : 0;
}

int usleep(useconds_t time)
{
    return nanosleep(&(struct timespec){time / 1000000, time % 1000000 * 1000}, NULL);
}

unsigned int sleep(unsigned int seconds)
{
    struct timespec left = {0, 0};

    return nanosleep(&(struct timespec){seconds, 0}, &left) ? (unsigned int) left.tv_sec + (left.tv_nsec > 0) : 0;
}

/* A wait for a condition may end without one: so it does, now and then, and is begun again by whoever wants it. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    clockid_t clock = condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    struct slot *mine = page ? slot() : NULL;
    struct timespec limit;
    int64_t left;
    int result;

    if (!real)
        *(void **) &real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!mine)
        return real(condition, mutex, time);
    left = nanoseconds(time) - now_on(clock);
    limit = timespec_of(real_now(clock) + (left > SLICE ? SLICE : left > 0 ? left : 0));
    __atomic_store_n(&mine->deadline, now() + left, __ATOMIC_RELEASE);
    __atomic_add_fetch(&mine->waits, 1, __ATOMIC_RELEASE);
    page->reads = 0;
    result = real(condition, mutex, &limit);
    __atomic_store_n(&mine->deadline, 0, __ATOMIC_RELEASE);
    return result == ETIMEDOUT && nanoseconds(time) > now_on(clock) ? 0 : result;
}

/* ---------------------------------------------------------------------------------------------- clocks */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!page || !page->stopped || !follows(clock))
        return (int) syscall(SYS_clock_gettime, clock, time);
    *time = timespec_of(now_on(clock));
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    int64_t today = now_on(CLOCK_REALTIME);

    *time = (struct timeval){today / SECOND, today % SECOND / 1000};
    if (zone)
        memset(zone, 0, sizeof(struct timezone));
    return 0;
}

time_t time(time_t *place)
{
    time_t seconds = now_on(CLOCK_REALTIME) / SECOND;

    if (place)
        *place = seconds;
    return seconds;
}

int timespec_get(struct timespec *time, int base)
{
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, time) ? base : 0;
}

/* ---------------------------------------------------------------------------------------------- timers */

static struct timer *timer_of(int descriptor, int make)
{
    int32_t process = getpid();

    for (int i = 0; i < SLOTS; i++)
        if (page->timers[i].descriptor == descriptor && page->timers[i].process == process)
            return &page->timers[i];
    for (int i = 0; make && i < SLOTS; i++)
        if (!page->timers[i].descriptor) {
            page->timers[i] = (struct timer){.process = process, .descriptor = descriptor};
            return &page->timers[i];
        }
    page->unmovable |= make;
    return NULL;
}

static struct itimerspec what_is_left(const struct timer *timer)
{
    struct itimerspec left = {{0, 0}, {0, 0}};

    if (timer && timer->deadline) {
        left.it_interval = timespec_of(timer->interval);
        left.it_value = timespec_of(timer->deadline > now() ? timer->deadline - now() : 1);
    }
    return left;
}

int timerfd_settime(int descriptor, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    struct itimerspec none = {{0, 0}, {0, 0}}, at_once = {{0, 0}, {0, 1}};
    struct timer *timer;
    int64_t value, deadline;

    if (!page || !page->stopped)
        return (int) syscall(SYS_timerfd_settime, descriptor, flags, new, old);
    timer = timer_of(descriptor, 1);
    value = nanoseconds(&new->it_value);
    /* A time of day cannot be told from a time since the start by the descriptor, but by its size. */
    deadline = flags & TFD_TIMER_ABSTIME ? value - (value > now_on(CLOCK_REALTIME) / 2 ? now_on(CLOCK_REALTIME) - now() : 0)
                                         : now() + value;
    if (syscall(SYS_timerfd_settime, descriptor, 0, value && deadline <= now() ? &at_once : &none, NULL) < 0)
        return -1;
    if (old)
        *old = what_is_left(timer);
    if (timer) {
        timer->interval = nanoseconds(&new->it_interval);
        timer->deadline = !value ? 0 : deadline > now() ? deadline : timer->interval ? now() + timer->interval : 0;
    }
    return 0;
}

int timerfd_gettime(int descriptor, struct itimerspec *left)
{
    if (!page || !page->stopped)
        return (int) syscall(SYS_timerfd_gettime, descriptor, left);
    *left = what_is_left(timer_of(descriptor, 0));
    return 0;
}

static int64_t microseconds(const struct timeval *time) { return time->tv_sec * SECOND + time->tv_usec * 1000; }

static struct itimerval until_alarm(void)
{
    int64_t interval = page->alarm_interval, left = page->alarm ? page->alarm - now() : 0;

    if (page->alarm && left < 1000)
        left = 1000;
    return (struct itimerval){{interval / SECOND, interval % SECOND / 1000}, {left / SECOND, left % SECOND / 1000}};
}

int getitimer(__itimer_which_t which, struct itimerval *left)
{
    if (!page || !page->stopped || which != ITIMER_REAL)
        return (int) syscall(SYS_getitimer, which, left);
    *left = until_alarm();
    return 0;
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
    struct itimerval before;

    if (!page || which != ITIMER_REAL)
        return (int) syscall(SYS_setitimer, which, new, old);
    before = until_alarm();
    if (new) {
        page->alarm_process = getpid();
        page->alarm_interval = microseconds(&new->it_interval);
        page->alarm = microseconds(&new->it_value) ? now() + microseconds(&new->it_value) : 0;
        if (!page->stopped)
            return (int) syscall(SYS_setitimer, which, new, old);
    }
    if (old)
        *old = before;
    return 0;
}

unsigned int alarm(unsigned int seconds)
{
    struct itimerval new = {{0, 0}, {seconds, 0}}, old = {{0, 0}, {0, 0}};

    setitimer(ITIMER_REAL, &new, &old);
    return (unsigned int) old.it_value.tv_sec + (old.it_value.tv_usec > 0);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    static int (*real)(timer_t, int, const struct itimerspec *, struct itimerspec *);

    if (!real)
        *(void **) &real = dlsym(RTLD_NEXT, "timer_settime");
    if (page)
        page->unmovable = 1;
    return real(timer, flags, new, old);
}

/* ---------------------------------------------------------------------------------------------- signals */

/* The signal that ends a wait is never blocked, nor are the two that libc keeps for itself. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
    if (!set)
        return set;
    *copy = *set;
    copy->__val[0] &= ~(3UL << 31);
    if (page)
        sigdelset(copy, WAKE);
    return copy;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;

    return syscall(SYS_rt_sigprocmask, how, without_ours(set, &copy), old, 8) ? errno : 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;

    return (int) syscall(SYS_rt_sigprocmask, how, without_ours(set, &copy), old, 8);
}
