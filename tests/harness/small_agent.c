/* A tiny OpenFlow 1.0 agent for the tests of snapshots. It waits for its controller in any of the ways there are,
 * and holds a descriptor of every kind.
 *
 *     small_agent WAY CONTROLLER [PORT]...
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct {
    char mark[16];
    uint32_t by_function;
    uint32_t inlined;
    uint64_t alarms;
} state = {.mark = "a mark in memory"};

static const char *way;
static int control = -1;
static int epoll = -1;
static int quiet_pipe[2];
static char *volatile heap;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) uint32_t hash_word(uint32_t word)
{
    return (word ^ word >> 15) * 0x2c1b3c6d + 7;
}

static inline uint32_t finish(uint32_t hash)
{
    return (hash ^ hash >> 13) * 0xc2b2ae35;
}

static void on_alarm(int number)
{
    state.alarms += number;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return connect(fd, (struct sockaddr *) &address, sizeof address) ? -1 : fd;
}

static int connect_to(const char *where)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd;

    if (!strncmp(where, "unix:", 5))
        return connect_unix(where + 5);
    address.sin_port = htons(strtol(strrchr(where, ':') + 1, NULL, 10));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *) &address, sizeof address) ? -1 : fd;
}

/* unix:OWN,PEER is a datagram socket, unix:PEER a stream, anything else an interface. */
static void open_port(const char *spec)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    struct sockaddr_ll link = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    const char *comma = strchr(spec, ',');

    if (strncmp(spec, "unix:", 5)) {
        link.sll_ifindex = if_nametoindex(spec);
        bind(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), (struct sockaddr *) &link, sizeof link);
    } else if (comma) {
        memcpy(own.sun_path, spec + 5, comma - spec - 5);
        bind(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), (struct sockaddr *) &own, sizeof own);
    } else {
        connect_unix(spec + 5);
    }
}

/* One descriptor of each kind, with something in it. */
static void open_all_kinds(void)
{
    struct itimerspec every = {.it_interval = {3, 250}, .it_value = {1000, 0}};
    struct itimerval alarm = {.it_interval = {7, 0}, .it_value = {1000, 0}};
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1122334455667788};
    sigset_t set;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int counter = eventfd(5, EFD_NONBLOCK);

    heap = strdup("so that there is a heap");
    timerfd_settime(timer, 0, &every, NULL);
    if (pipe(quiet_pipe) || write(quiet_pipe[1], "abc", 3) != 3)
        exit(9);
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event);
    epoll_ctl(epoll, EPOLL_CTL_DEL, counter, &event);
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    signalfd(-1, &set, 0);
    listen(socket(AF_INET, SOCK_STREAM, 0), 1);
    socket(AF_NETLINK, SOCK_RAW, 0);
    socket(AF_INET, SOCK_DGRAM, 0);
    lseek(open("/proc/self/exe", O_RDONLY), 11, SEEK_SET);
    open("/", O_RDONLY | O_DIRECTORY);
    signal(SIGALRM, on_alarm);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &alarm, NULL);
}

/* Returns when there may be something to read. */
static void await(void)
{
    struct pollfd poll_control = {.fd = control, .events = POLLIN};
    struct timespec tick = {0, 5000000};
    struct epoll_event event;
    sigset_t none;
    fd_set set;

    sigemptyset(&none);
    if (!strcmp(way, "poll")) {
        poll(&poll_control, 1, 100000);
    } else if (!strcmp(way, "ppoll")) {
        ppoll(&poll_control, 1, NULL, &none);
    } else if (!strcmp(way, "select")) {
        FD_ZERO(&set);
        FD_SET(control, &set);
        select(control + 1, &set, NULL, NULL, NULL);
    } else if (!strcmp(way, "epoll")) {
        epoll_wait(epoll, &event, 1, -1);
    } else if (!strcmp(way, "sleep")) {
        nanosleep(&tick, NULL);
    } else if (!strcmp(way, "busy")) {
        poll(&poll_control, 1, 0);
    }
}

static void say(int version, int type, const void *xid, const void *body, int size)
{
    unsigned char message[256] = {version, type, 0, 8 + size};

    memcpy(message + 4, xid, 4);
    memcpy(message + 8, body, size);
    if (send(control, message, 8 + size, MSG_NOSIGNAL) < 0)
        exit(0);
}

static void *serve(void *unused)
{
    static const unsigned char only13[8] = {0, 1, 0, 8, 0, 0, 0, 0x10};
    unsigned char header[8], body[24] = {0};
    ssize_t size;

    if (!strcmp(way, "openflow13"))
        say(4, 0, "hell", only13, 8);
    else
        say(1, 0, "hell", "", 0);
    if (!strcmp(way, "leave"))
        exit(3);
    for (;;) {
        await();
        size = recv(control, header, 8, strcmp(way, "busy") && strcmp(way, "sleep") ? MSG_WAITALL : MSG_DONTWAIT);
        if (size == 0)
            exit(0);
        if (size == 8 && header[1] == 2)
            say(1, 3, header + 4, "", 0);
        if (size == 8 && header[1] == 5)
            say(1, 6, header + 4, body, sizeof body);
        if (size == 8 && header[1] == 5 && !strcmp(way, "stuck"))
            pause();
    }
    return unused;
}

static void *wait_for_ever(void *unused)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
    return unused;
}

static void *sleep_for_ever(void *unused)
{
    for (;;)
        sleep(1000);
    return unused;
}

int main(int argc, char **argv)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = 42};
    pthread_t threads[3];
    int i;

    way = argv[1];
    if (!strcmp(way, "exit"))
        return fputs("cannot find my configuration\n", stderr), 3;
    if (!strcmp(way, "idle"))
        return pause();
    state.by_function = hash_word(argc);
    state.inlined = finish(argc);
    open_all_kinds();
    for (i = 3; i < argc; i++)
        open_port(argv[i]);
    control = connect_to(argv[2]);
    if (control < 0)
        return 4;
    epoll_ctl(epoll, EPOLL_CTL_ADD, control, &event);
    if (strcmp(way, "threads") && strcmp(way, "stuck"))
        return serve(NULL) != NULL;
    pthread_create(&threads[0], NULL, wait_for_ever, NULL);
    pthread_create(&threads[1], NULL, sleep_for_ever, NULL);
    pthread_create(&threads[2], NULL, serve, NULL);
    pthread_setname_np(threads[2], "server");
    return pthread_join(threads[2], NULL);
}
