/* What was there before the freeze is there behind it: descriptors with their content, signals, timers, memory. */
#include "agent.h"

static int full[2], counter, semaphore, timer, short_timer, set, edge_set, listener, null, copy;
static volatile int handled;
static char *block;

static void count(int number)
{
    handled += number;
}

static void watch(int epoll, int fd, unsigned events, uint64_t data)
{
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event) {.events = events, .data.u64 = data});
}

static void prepare(void)
{
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    sigset_t blocked;

    pipe2(full, O_NONBLOCK | O_CLOEXEC);
    write(full[1], "abc", 3);
    counter = eventfd(5, EFD_NONBLOCK);
    semaphore = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(timer, 0, &(struct itimerspec) {.it_value = {1000, 0}, .it_interval = {7, 0}}, NULL);
    short_timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(short_timer, 0, &(struct itimerspec) {.it_value = {0, 1}}, NULL);
    set = epoll_create1(0);
    watch(set, full[0], EPOLLIN, 0x1122334455667788);
    watch(set, timer, EPOLLIN, 2);
    watch(set, control, EPOLLIN, 3);
    edge_set = epoll_create1(0);
    watch(edge_set, control, EPOLLIN | EPOLLET, 4);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bind(listener, (struct sockaddr *) &any, sizeof(sa_family_t));
    listen(listener, 1);
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    copy = dup(port);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval) {.it_value = {2000, 0}, .it_interval = {9, 0}}, NULL);
    block = strcpy(malloc(200000), "far away");
}

SPEAKING(contents)
{
    char bytes[8] = {0};
    uint64_t number = 0;

    TRY(read(full[0], bytes, 8));
    NOTE(bytes[2]);
    TRY(read(full[0], bytes, 8));
    TRY(write(full[1], "x", 1));
    TRY(read(full[0], bytes, 8));
    TRY(read(counter, &number, 8));
    NOTE(number);
    TRY(read(counter, &number, 8));
    TRY(read(semaphore, &number, 8));
    NOTE(number);
    TRY(read(semaphore, &number, 8));
    TRY(read(semaphore, &number, 8));
    TRY(read(short_timer, &number, 8));
    NOTE(number);
    TRY(write(null, "x", 1));
    TRY(accept(listener, NULL, NULL));
}

SPEAKING(flags)
{
    int kinds[] = {full[0], full[1], counter, timer, set, listener, control, port};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        TRY(fcntl(kinds[i], F_GETFL));
        TRY(fcntl(kinds[i], F_GETFD));
    }
    TRY(fcntl(null, F_GETFD));
    TRY(fcntl(null, F_GETFL) & O_ACCMODE);
    TRY(open("/dev/null", O_RDONLY));
}

SPEAKING(epoll)
{
    struct epoll_event events[4];
    unsigned char message[256];
    int found = epoll_wait(set, events, 4, 0);

    NOTE(found);
    NOTE(events[0].events);
    NOTE(events[0].data.u64);
    TRY(read(full[0], message, 8));
    TRY(epoll_wait(set, events, 4, 0));
    TRY(epoll_wait(set, events, 4, -1));
    NOTE(events[0].data.u64);
    TRY(epoll_wait(edge_set, events, 4, -1));
    NOTE(events[0].data.u64);
    TRY(epoll_wait(edge_set, events, 4, 0));
    NOTE(hear(message));
}

SPEAKING(signals)
{
    struct sigaction action;
    struct itimerval alarm;
    sigset_t blocked;

    TRY(raise(SIGUSR1));
    NOTE(handled);
    TRY(sigaction(SIGUSR1, NULL, &action));
    NOTE(action.sa_handler == count);
    NOTE(action.sa_flags & SA_RESTART);
    TRY(sigaction(SIGPIPE, NULL, &action));
    NOTE(action.sa_handler == SIG_IGN);
    TRY(sigprocmask(SIG_BLOCK, NULL, &blocked));
    NOTE(sigismember(&blocked, SIGUSR1));
    NOTE(sigismember(&blocked, SIGUSR2));
    TRY(raise(SIGUSR2));
    TRY(getitimer(ITIMER_REAL, &alarm));
    NOTE(alarm.it_interval.tv_sec);
    NOTE(alarm.it_value.tv_sec > 1900 && alarm.it_value.tv_sec <= 2000);
}

SPEAKING(timers)
{
    struct itimerspec left;

    TRY(timerfd_gettime(timer, &left));
    NOTE(left.it_interval.tv_sec);
    NOTE(left.it_value.tv_sec > 900 && left.it_value.tv_sec <= 1000);
    TRY(timerfd_gettime(short_timer, &left));
    NOTE(left.it_value.tv_sec);
}

SPEAKING(memory)
{
    NOTE(strcmp(block, "far away"));
    block = realloc(block, 400000);
    NOTE(strcmp(block, "far away"));
    block[399999] = 'x';
    free(block);
    NOTE(malloc(200000) != NULL);
}

SPEAKING(copies)
{
    struct pollfd fd = {.fd = copy, .events = POLLIN};
    char frame[100];

    TRY(close(port));
    TRY(poll(&fd, 1, -1));
    TRY(recv(copy, frame, sizeof frame, 0));
    TRY(dup2(copy, port));
}

WAITING(an_alarm_set_before)
{
    signal(SIGALRM, count);
    setitimer(ITIMER_REAL, &(struct itimerval) {.it_value = {0, 60000}}, NULL);
    TRY(poll(NULL, 0, -1));
    NOTE(handled);
}
