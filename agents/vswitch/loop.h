/* The event loop: descriptors and timers with callbacks, over epoll and timerfd. */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop {
    int epoll_fd;
};

struct watch;
typedef void watch_callback(struct watch *watch, uint32_t events);

/* Embedded in whoever owns the descriptor, which must not be freed inside loop_run_once(): an
 * event for it may already be waiting to be delivered. */
struct watch {
    int fd;
    watch_callback *callback;
};

void loop_init(struct loop *loop);
void loop_destroy(struct loop *loop);
void loop_run_once(struct loop *loop); /* Blocks until something happens. */

void watch_add(struct loop *loop, struct watch *watch, uint32_t events);
void watch_change(struct loop *loop, struct watch *watch, uint32_t events);
void watch_remove(struct loop *loop, struct watch *watch);

struct timer;
typedef void timer_callback(struct timer *timer);

struct timer {
    struct watch watch;
    timer_callback *callback;
    bool running; /* Started, and not stopped since. */
};

void timer_open(struct loop *loop, struct timer *timer, timer_callback *callback);
void timer_close(struct loop *loop, struct timer *timer);
void timer_start_once(struct timer *timer, uint64_t msec);
void timer_start_periodic(struct timer *timer, uint64_t msec);
void timer_stop(struct timer *timer);

#endif
