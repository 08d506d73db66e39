/* The event loop. */
#include "loop.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util.h"

#define EVENTS_AT_ONCE 16

void loop_init(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0) {
        fatal("cannot create an epoll descriptor: %s", strerror(errno));
    }
}

void loop_destroy(struct loop *loop) { close(loop->epoll_fd); }

void loop_run_once(struct loop *loop)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(loop->epoll_fd, events, EVENTS_AT_ONCE, -1);

    if (n < 0 && errno != EINTR) {
        fatal("cannot wait for events: %s", strerror(errno));
    }
    for (int i = 0; i < n; i++) {
        struct watch *watch = events[i].data.ptr;

        watch->callback(watch, events[i].events);
    }
}

static void control(struct loop *loop, int operation, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll_fd, operation, watch->fd, &event) < 0) {
        fatal("cannot watch descriptor %d: %s", watch->fd, strerror(errno));
    }
}

void watch_add(struct loop *loop, struct watch *watch, uint32_t events)
{
    control(loop, EPOLL_CTL_ADD, watch, events);
}

void watch_change(struct loop *loop, struct watch *watch, uint32_t events)
{
    control(loop, EPOLL_CTL_MOD, watch, events);
}

void watch_remove(struct loop *loop, struct watch *watch)
{
    control(loop, EPOLL_CTL_DEL, watch, 0);
}

static void timer_ready(struct watch *watch, uint32_t events)
{
    struct timer *timer = CONTAINER_OF(watch, struct timer, watch);
    uint64_t expirations;

    (void) events;
    /* Stopped, or read already, between the event and its delivery: nothing to do. */
    if (read(watch->fd, &expirations, sizeof expirations) == sizeof expirations) {
        timer->callback(timer);
    }
}

void timer_open(struct loop *loop, struct timer *timer, timer_callback *callback)
{
    timer->watch.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->watch.fd < 0) {
        fatal("cannot create a timer: %s", strerror(errno));
    }
    timer->watch.callback = timer_ready;
    timer->callback = callback;
    timer->running = false;
    watch_add(loop, &timer->watch, EPOLLIN);
}

void timer_close(struct loop *loop, struct timer *timer)
{
    watch_remove(loop, &timer->watch);
    close(timer->watch.fd);
}

static void set_timer(struct timer *timer, uint64_t first_msec, uint64_t period_msec)
{
    struct itimerspec when = {
        .it_value = {(time_t) (first_msec / 1000), (long) (first_msec % 1000) * 1000000},
        .it_interval = {(time_t) (period_msec / 1000), (long) (period_msec % 1000) * 1000000},
    };

    timerfd_settime(timer->watch.fd, 0, &when, NULL);
    timer->running = first_msec > 0;
}

void timer_start_once(struct timer *timer, uint64_t msec) { set_timer(timer, msec, 0); }

void timer_start_periodic(struct timer *timer, uint64_t msec) { set_timer(timer, msec, msec); }

void timer_stop(struct timer *timer) { set_timer(timer, 0, 0); }
