/* What the experiments share: a small OpenFlow 1.0 agent that does one experiment with system calls for its controller.
 *
 *     agent CONTROLLER PORT
 *
 * The controller asks by an echo request whose first byte of data is the experiment's number, in the order of this
 * file. The answer is an echo reply with what the calls returned, as text. Every other echo is answered as usual.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* SPEAKING experiments are followed by more messages and a frame, WAITING ones by some time. Kept in order. */
struct experiment {
    void (*run)(void);
    void *unused;
};
#define EXPERIMENT(name)                                                                                               \
    static void name(void);                                                                                            \
    static const struct experiment experiment_##name __attribute__((section("experiments"), used)) = {name, NULL};    \
    static void name(void)
#define SPEAKING(name) EXPERIMENT(name)
#define WAITING(name) EXPERIMENT(name)
extern const struct experiment __start_experiments[], __stop_experiments[];

static int control, port;
static struct sockaddr_un port_peer = {.sun_family = AF_UNIX};
static char report[4000];
static size_t reported;
static const unsigned char *asked; /* the data behind the experiment's number */

static void note_text(const char *text)
{
    while (*text && reported < sizeof report)
        report[reported++] = *text++;
}

static void note(const char *name, long value)
{
    char digits[24], *digit = digits + sizeof digits - 1;
    unsigned long left = value < 0 ? -(unsigned long) value : (unsigned long) value;

    *digit = 0;
    do
        *--digit = '0' + left % 10;
    while (left /= 10);
    if (value < 0)
        *--digit = '-';
    note_text(name);
    note_text("=");
    note_text(digit);
    note_text("; ");
}

/* Note what a call returned: a result, or the negative errno. */
#define TRY(call) note(#call, ({ long result_ = (long) (call); result_ == -1 ? -errno : result_; }))
#define NOTE(value) note(#value, (long) (value))

static void say(int type, const void *xid, const void *body, size_t size)
{
    static unsigned char message[8 + sizeof report] = {1};

    message[1] = type;
    memcpy(message + 2, &(uint16_t) {htons(8 + size)}, 2);
    memcpy(message + 4, xid, 4);
    memcpy(message + 8, body, size);
    if (send(control, message, 8 + size, MSG_NOSIGNAL) < 0)
        exit(0);
}

/* One message as it stands in the stream; its size, 0 at the end. */
static size_t hear(unsigned char message[256])
{
    size_t have = 0, want = 8;

    while (have < want) {
        ssize_t got = recv(control, message + have, want - have, 0);

        if (got <= 0)
            return 0;
        have += got;
        if (have == 8)
            want = message[3] < 8 ? 8 : message[3];
    }
    return have;
}

static void answer(const unsigned char *message, size_t size)
{
    size_t number = message[8];

    if (message[1] == 5) {
        say(6, message + 4, (unsigned char[24]) {0}, 24);
    } else if (message[1] == 2 && size > 8 && number < (size_t) (__stop_experiments - __start_experiments)) {
        reported = 0;
        asked = message + 9;
        __start_experiments[number].run();
        say(3, message + 4, report, reported);
    } else if (message[1] == 2) {
        say(3, message + 4, message + 8, size - 8);
    }
}

static int unix_socket(int type, const char *path, size_t length, int (*use)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type, 0);

    memcpy(address.sun_path, path, length);
    return use(fd, (struct sockaddr *) &address, sizeof address) ? exit(4), -1 : fd;
}

/* Before the handshake. */
static void prepare(void);

int main(int argc, char **argv)
{
    unsigned char message[256];
    char frame[2000];
    const char *comma;
    size_t size;

    if (argc != 3)
        return 2;
    comma = strchr(argv[2], ',');
    strcpy(port_peer.sun_path, comma + 1);
    port = unix_socket(SOCK_DGRAM | SOCK_NONBLOCK, argv[2] + 5, comma - argv[2] - 5, bind);
    control = unix_socket(SOCK_STREAM, argv[1] + 5, strlen(argv[1] + 5), connect);
    prepare();
    say(0, "hell", "", 0);
    for (;;) {
        struct pollfd fds[] = {{.fd = control, .events = POLLIN}, {.fd = port, .events = POLLIN}};

        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents) {
            size = hear(message);
            if (!size)
                return 0;
            answer(message, size);
        }
        if (fds[1].revents) {
            size = recv(port, frame, sizeof frame, 0);
            sendto(port, frame, size, 0, (struct sockaddr *) &port_peer, sizeof port_peer);
        }
    }
}
