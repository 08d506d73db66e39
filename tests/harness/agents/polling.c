/* poll, select, epoll, and what can be waited for. */
#include "agent.h"

static int ends[2];

static void prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static void fresh_pipe(void)
{
    TRY(pipe2(ends, O_NONBLOCK));
}

static void note_events(struct epoll_event *events, int count)
{
    note("ready", count);
    for (int i = 0; i < count; i++) {
        note("events", events[i].events);
        note("data", events[i].data.u64);
    }
}

static void watch(int set, int operation, int fd, unsigned events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};

    note("epoll_ctl", epoll_ctl(set, operation, fd, &event) ? -errno : 0);
}

static void ask(int set, int most)
{
    struct epoll_event events[8];
    int count = epoll_wait(set, events, most, 0);

    note_events(events, count < 0 ? 0 : count);
}

SPEAKING(poll_of_many)
{
    struct pollfd fds[6] = {{.fd = 999, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

    fresh_pipe();
    fds[2] = (struct pollfd) {.fd = ends[0], .events = POLLIN};
    fds[3] = (struct pollfd) {.fd = ends[1], .events = POLLOUT | POLLIN};
    fds[4] = (struct pollfd) {.fd = control, .events = POLLIN | POLLOUT};
    fds[5] = (struct pollfd) {.fd = port, .events = POLLOUT | POLLRDNORM};
    TRY(poll(fds, 6, 0));
    for (int i = 0; i < 6; i++)
        NOTE(fds[i].revents);
    TRY(write(ends[1], "abc", 3));
    TRY(poll(fds, 6, -1));
    NOTE(fds[2].revents);
    TRY(poll(NULL, 0, 0));
}

SPEAKING(poll_of_a_closed_pipe)
{
    struct pollfd fd;
    char byte;

    fresh_pipe();
    TRY(write(ends[1], "a", 1));
    TRY(close(ends[1]));
    fd = (struct pollfd) {.fd = ends[0], .events = POLLIN};
    TRY(poll(&fd, 1, -1));
    NOTE(fd.revents);
    TRY(read(ends[0], &byte, 1));
    TRY(poll(&fd, 1, -1));
    NOTE(fd.revents);
    TRY(read(ends[0], &byte, 1));
}

SPEAKING(poll_of_a_pipe_without_a_reader)
{
    struct pollfd fd;

    fresh_pipe();
    TRY(close(ends[0]));
    fd = (struct pollfd) {.fd = ends[1], .events = POLLOUT};
    TRY(poll(&fd, 1, 0));
    NOTE(fd.revents & POLLERR);
    TRY(write(ends[1], "a", 1));
}

SPEAKING(poll_until_the_next_message)
{
    struct pollfd fd = {.fd = control, .events = POLLIN};
    unsigned char message[256];

    TRY(poll(&fd, 1, 100000));
    NOTE(fd.revents);
    NOTE(hear(message));
    NOTE(message[9]);
}

SPEAKING(ppoll_until_the_next_message)
{
    struct pollfd fd = {.fd = control, .events = POLLIN};
    struct timespec hour = {3600, 0};
    unsigned char message[256];
    sigset_t none;

    sigemptyset(&none);
    TRY(ppoll(&fd, 1, &hour, &none));
    NOTE(fd.revents);
    NOTE(hear(message));
}

SPEAKING(select_of_many)
{
    struct timeval zero = {0, 0};
    fd_set readable, writable;

    fresh_pipe();
    TRY(write(ends[1], "abc", 3));
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(ends[0], &readable);
    FD_SET(control, &readable);
    FD_SET(ends[1], &writable);
    FD_SET(control, &writable);
    TRY(select(ends[1] + 1, &readable, &writable, NULL, &zero));
    NOTE(FD_ISSET(ends[0], &readable));
    NOTE(FD_ISSET(control, &readable));
    NOTE(FD_ISSET(ends[1], &writable));
    NOTE(FD_ISSET(control, &writable));
    FD_ZERO(&readable);
    FD_SET(60, &readable);
    TRY(select(61, &readable, NULL, NULL, &zero));
}

SPEAKING(select_until_the_next_message)
{
    struct timeval hour = {3600, 0};
    unsigned char message[256];
    fd_set readable;

    FD_ZERO(&readable);
    FD_SET(control, &readable);
    TRY(select(control + 1, &readable, NULL, NULL, &hour));
    NOTE(hour.tv_sec >= 3599);
    NOTE(hear(message));
    FD_SET(control, &readable);
    TRY(pselect(control + 1, &readable, NULL, NULL, NULL, NULL));
    NOTE(hear(message));
}

SPEAKING(epoll_of_a_level)
{
    int set = epoll_create1(0);

    fresh_pipe();
    watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 0x1122334455667788);
    watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 1);
    watch(set, EPOLL_CTL_MOD, ends[1], EPOLLIN, 1);
    watch(set, EPOLL_CTL_DEL, ends[1], EPOLLIN, 1);
    watch(set, EPOLL_CTL_ADD, 999, EPOLLIN, 1);
    watch(ends[0], EPOLL_CTL_ADD, ends[1], EPOLLIN, 1);
    watch(set, EPOLL_CTL_ADD, set, EPOLLIN, 1);
    watch(set, 77, ends[1], EPOLLIN, 1);
    ask(set, 8);
    TRY(write(ends[1], "abc", 3));
    ask(set, 8);
    ask(set, 8);
    watch(set, EPOLL_CTL_ADD, ends[1], EPOLLOUT, 2);
    ask(set, 8);
    watch(set, EPOLL_CTL_MOD, ends[0], 0, 1);
    ask(set, 8);
    watch(set, EPOLL_CTL_DEL, ends[1], 0, 1);
    ask(set, 8);
    TRY(epoll_wait(set, (struct epoll_event[1]) {{0}}, 0, 0));
    TRY(epoll_wait(control, (struct epoll_event[1]) {{0}}, 1, 0));
    TRY(epoll_wait(999, (struct epoll_event[1]) {{0}}, 1, 0));
}

SPEAKING(epoll_of_an_edge)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    char byte;

    fresh_pipe();
    watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLET, 1);
    ask(set, 8);
    TRY(write(ends[1], "abc", 3));
    ask(set, 8);
    ask(set, 8);
    TRY(read(ends[0], &byte, 1));
    ask(set, 8);
    TRY(write(ends[1], "d", 1));
    ask(set, 8);
    watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 3);
    ask(set, 8);
    ask(set, 8);
}

SPEAKING(epoll_once)
{
    int set = epoll_create(1);

    fresh_pipe();
    TRY(write(ends[1], "abc", 3));
    watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLONESHOT, 7);
    ask(set, 8);
    ask(set, 8);
    watch(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT, 8);
    ask(set, 8);
    ask(set, 8);
}

SPEAKING(epoll_takes_turns)
{
    int set = epoll_create1(0), counters[3];

    for (int i = 0; i < 3; i++) {
        counters[i] = eventfd(1, EFD_NONBLOCK);
        watch(set, EPOLL_CTL_ADD, counters[i], EPOLLIN, i);
    }
    for (int i = 0; i < 4; i++)
        ask(set, 1);
    ask(set, 8);
}

SPEAKING(epoll_forgets_what_is_closed)
{
    int set = epoll_create1(0), counter = eventfd(1, EFD_NONBLOCK), copy = dup(counter);

    watch(set, EPOLL_CTL_ADD, counter, EPOLLIN, 5);
    TRY(close(counter));
    ask(set, 8);
    TRY(close(copy));
    ask(set, 8);
}

SPEAKING(epoll_inside_poll)
{
    int set = epoll_create1(0), counter = eventfd(0, EFD_NONBLOCK);
    struct pollfd fd = {.fd = set, .events = POLLIN};
    uint64_t one = 1;

    watch(set, EPOLL_CTL_ADD, counter, EPOLLIN, 5);
    TRY(poll(&fd, 1, 0));
    TRY(write(counter, &one, 8));
    TRY(poll(&fd, 1, 0));
    NOTE(fd.revents);
}

SPEAKING(epoll_until_the_next_messages)
{
    int set = epoll_create1(0);
    struct epoll_event events[8];
    unsigned char message[256];
    sigset_t none;

    sigemptyset(&none);
    watch(set, EPOLL_CTL_ADD, control, EPOLLIN | EPOLLRDHUP, 1);
    watch(set, EPOLL_CTL_ADD, port, EPOLLIN | EPOLLET, 2);
    note_events(events, epoll_wait(set, events, 8, -1));
    NOTE(hear(message));
    note_events(events, epoll_pwait(set, events, 8, -1, &none));
    TRY(recv(port, message, sizeof message, 0));
    note_events(events, epoll_wait(set, events, 8, 100000));
    TRY(recv(port, message, sizeof message, 0));
}

SPEAKING(poll_of_an_eventfd)
{
    int counter = eventfd(0, EFD_NONBLOCK);
    struct pollfd fd = {.fd = counter, .events = POLLIN | POLLOUT};
    uint64_t number = 0xfffffffffffffffe;

    TRY(poll(&fd, 1, 0));
    NOTE(fd.revents);
    TRY(write(counter, &number, 8));
    TRY(poll(&fd, 1, 0));
    NOTE(fd.revents);
}

WAITING(poll_ends)
{
    struct pollfd fd;

    fresh_pipe();
    fd = (struct pollfd) {.fd = ends[0], .events = POLLIN, .revents = 99};
    TRY(poll(&fd, 1, 60));
    NOTE(fd.revents);
    TRY(ppoll(&fd, 1, &(struct timespec) {0, 40000000}, NULL));
    TRY(poll(NULL, 0, 10));
}

WAITING(select_ends)
{
    struct timeval left = {0, 60000};
    struct timespec same = {0, 40000000};
    fd_set readable;

    fresh_pipe();
    FD_ZERO(&readable);
    FD_SET(ends[0], &readable);
    TRY(select(ends[0] + 1, &readable, NULL, NULL, &left));
    NOTE(FD_ISSET(ends[0], &readable));
    NOTE(left.tv_sec);
    NOTE(left.tv_usec);
    TRY(pselect(0, NULL, NULL, NULL, &same, NULL));
    NOTE(same.tv_nsec);
}

WAITING(epoll_ends)
{
    int set = epoll_create1(0);
    struct epoll_event event;

    fresh_pipe();
    watch(set, EPOLL_CTL_ADD, ends[0], EPOLLIN, 1);
    TRY(epoll_wait(set, &event, 1, 60));
    TRY(epoll_pwait(set, &event, 1, 40, NULL));
}

WAITING(timerfd)
{
    struct itimerspec once = {.it_value = {0, 60000000}}, old;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct pollfd fd = {.fd = timer, .events = POLLIN};
    uint64_t ticks = 0;

    TRY(read(timer, &ticks, 8));
    TRY(timerfd_settime(timer, 0, &once, NULL));
    TRY(timerfd_gettime(timer, &old));
    NOTE(old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 60000000);
    TRY(poll(&fd, 1, 0));
    TRY(poll(&fd, 1, -1));
    TRY(read(timer, &ticks, 8));
    NOTE(ticks);
    TRY(read(timer, &ticks, 8));
    TRY(timerfd_gettime(timer, &old));
    NOTE(old.it_value.tv_nsec);
    TRY(read(timer, &ticks, 4));
}

WAITING(timerfd_that_blocks)
{
    struct itimerspec every = {.it_value = {0, 60000000}, .it_interval = {0, 30000000}}, off = {0}, old;
    struct timespec now;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t ticks, total = 0;

    TRY(timerfd_settime(timer, 0, &every, NULL));
    while (total < 3) {
        if (read(timer, &ticks, 8) != 8)
            break;
        total += ticks;
    }
    NOTE(total >= 3);
    TRY(timerfd_settime(timer, 0, &off, &old));
    NOTE(old.it_interval.tv_nsec);
    TRY(timerfd_gettime(timer, &old));
    NOTE(old.it_value.tv_nsec);
    clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_sec += 1;
    TRY(timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec) {.it_value = now}, NULL));
    TRY(timerfd_gettime(timer, &old));
    NOTE(old.it_value.tv_sec * 1000 + old.it_value.tv_nsec / 1000000 > 500);
    TRY(timerfd_settime(control, 0, &off, NULL));
}
