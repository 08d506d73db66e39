/* A switch with a memory, to test that inputs to one agent do not show in the next.
 *
 * An echo request whose data is one letter is an order: n answers how often it was given, m takes more memory, c aborts,
 * x closes the channel, h sends half a message, s sleeps on without reading what comes. Rules are only counted. With a
 * second argument the process has a second thread; "stubborn" keeps its rules whatever it is told.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct header {
    uint8_t version, type;
    uint16_t length;
    uint32_t xid;
};

static int control;
static uint8_t count, rules, config[4] = {0, 0, 0, 128};
static int stubborn;
void *volatile taken;

static void answer(uint8_t type, uint32_t xid, const void *body, size_t size)
{
    uint8_t message[512];
    struct header header = {1, type, htons(sizeof header + size), xid};

    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, body, size);
    if (write(control, message, sizeof header + size) < 0)
        exit(1);
}

static void obey(const uint8_t *order, size_t size, uint32_t xid)
{
    if (size != 1) {
        answer(3, xid, order, size);
        return;
    }
    switch (*order) {
    case 'n':
        count++;
        answer(3, xid, &count, 1);
        break;
    case 'm':
        taken = malloc(1 << 20);
        memset(taken, 1, 1 << 20);
        answer(3, xid, order, size);
        break;
    case 'c':
        abort();
    case 'x':
        close(control);
        for (;;)
            pause();
    case 'h':
        if (write(control, "\1\3\0\20\0", 5) < 0)
            exit(1);
        break;
    case 's':
        for (;;)
            pause();
    default:
        answer(3, xid, order, size);
    }
}

static void handle(const struct header *header, const uint8_t *body, size_t size)
{
    static const uint8_t features[24 + 48] = {[7] = 1, [25] = 1, [28] = 2};
    uint8_t stats[4 + 88] = {0, 1};

    switch (header->type) {
    case 2: obey(body, size, header->xid); break;
    case 5: answer(6, header->xid, features, sizeof features); break;
    case 7: answer(8, header->xid, config, sizeof config); break;
    case 9: memcpy(config, body, sizeof config); break;
    case 14: rules = body[49] >= 3 ? (stubborn ? rules : 0) : rules + 1; break;
    case 16: answer(17, header->xid, stats, rules ? sizeof stats : 4); break;
    case 18: answer(19, header->xid, body, 0); break;
    }
}

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    uint8_t buffer[8192];
    size_t filled = 0;
    pthread_t thread;

    if (argc > 2 && pthread_create(&thread, NULL, idle, NULL) != 0)
        return 2;
    stubborn = argc > 2 && strcmp(argv[2], "stubborn") == 0;
    strncpy(where.sun_path, argv[1] + strlen("unix:"), sizeof where.sun_path - 1);
    control = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(control, (struct sockaddr *) &where, sizeof where) != 0)
        return 3;
    answer(0, 0, "", 0);
    for (;;) {
        struct pollfd wanted = {control, POLLIN, 0};
        ssize_t got;

        poll(&wanted, 1, -1);
        got = read(control, buffer + filled, sizeof buffer - filled);
        if (got <= 0)
            return 0;
        filled += got;
        for (;;) {
            struct header header;
            size_t length;

            memcpy(&header, buffer, sizeof header);
            length = ntohs(header.length);
            if (filled < sizeof header || filled < length)
                break;
            handle(&header, buffer + sizeof header, length - sizeof header);
            filled -= length;
            memmove(buffer, buffer + length, filled);
        }
    }
}
