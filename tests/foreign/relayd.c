/* relayd: two processes. One talks to the controller and passes on what it hears; the other one is the datapath. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int unix_socket(int type, const char *path, int do_bind)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type, 0);
    strncpy(un.sun_path, path, sizeof un.sun_path - 1);
    if ((do_bind ? bind : connect)(fd, (struct sockaddr *) &un, sizeof un)) { perror(path); exit(1); }
    return fd;
}

static int tcp_socket(const char *host, const char *port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = inet_addr(host) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *) &in, sizeof in)) { perror(host); exit(1); }
    return fd;
}

static void relay(int controller, int datapath)
{
    char buffer[65536];
    struct pollfd p[2] = { { controller, POLLIN, 0 }, { datapath, POLLIN, 0 } };
    for (;;) {
        poll(p, 2, -1);
        for (int i = 0; i < 2; i++)
            if (p[i].revents) {
                ssize_t n = read(p[i].fd, buffer, sizeof buffer);
                if (n <= 0 || write(p[!i].fd, buffer, n) != n) exit(0);
            }
    }
}

static int ports[8], nports;

static void datapath(int up)
{
    uint8_t m[65536], r[1024];
    struct pollfd p[9] = { { up, POLLIN, 0 } };
    size_t have = 0;
    prctl(PR_SET_NAME, "datapath");
    for (int i = 0; i < nports; i++) p[i + 1] = (struct pollfd) { ports[i], POLLIN, 0 };
    if (write(up, "\1\0\0\10\0\0\0\1", 8) != 8) exit(1);
    for (;;) {
        if (poll(p, 1 + nports, -1) < 0) exit(1);
        for (int i = 0; i < nports; i++)
            if (p[i + 1].revents) {
                ssize_t n = read(ports[i], r + 18, sizeof r - 18);
                if (n <= 0) continue;
                memset(r, 0, 18);
                r[0] = 1; r[1] = 10; r[2] = (n + 18) >> 8; r[3] = n + 18;
                memset(r + 8, 0xff, 4); r[12] = n >> 8; r[13] = n; r[15] = i + 1;
                if (write(up, r, n + 18) < 0) exit(1);
            }
        if (!p[0].revents) continue;
        ssize_t n = read(up, m + have, sizeof m - have);
        if (n <= 0) exit(0);
        for (have += n; have >= 8 && have >= (size_t) (m[2] << 8 | m[3]); ) {
            size_t len = m[2] << 8 | m[3], reply = 0;
            memset(r, 0, sizeof r);
            memcpy(r, m, 8);
            if (len < 8) exit(3);
            if (m[1] == 2) { memcpy(r, m, len); r[1] = 3; reply = len; }
            else if (m[1] == 5) {
                r[1] = 6; reply = 32 + 48 * nports;
                for (int i = 0; i < nports; i++) { r[33 + 48 * i] = i + 1; sprintf((char *) r + 40 + 48 * i, "port%d", i + 1); }
            } else if (m[1] == 18) { r[1] = 19; reply = 8; }
            else if (m[1] == 13) {
                size_t end = 16 + (m[14] << 8 | m[15]);
                for (size_t a = 16; a + 8 <= end && end <= len; a += 8) {
                    unsigned to = m[a + 4] << 8 | m[a + 5];
                    if (m[a + 1] == 0 && to - 1 < (unsigned) nports) { if (write(ports[to - 1], m + end, len - end) < 0) exit(4); }
                    else { r[1] = 1; r[9] = 2; r[11] = m[a + 1] ? 0 : 4; reply = 12; }
                }
            } else if (m[1] != 0 && m[1] != 9) { r[1] = 1; r[9] = 1; r[11] = 1; reply = 12; }
            if (reply) { r[2] = reply >> 8; r[3] = reply; if (write(up, r, reply) < 0) exit(1); }
            memmove(m, m + len, have -= len);
        }
    }
}

int main(int argc, char **argv)
{
    int pair[2];
    for (int i = 2; i < argc; i++) {
        char *comma = strchr(argv[i], ',');
        *comma = 0;
        ports[nports] = unix_socket(SOCK_DGRAM, argv[i], 1);
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        strcpy(un.sun_path, comma + 1);
        if (connect(ports[nports++], (struct sockaddr *) &un, sizeof un)) { perror(comma + 1); return 1; }
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    if (fork() == 0) { close(pair[0]); datapath(pair[1]); }
    close(pair[1]);
    for (int i = 0; i < nports; i++) close(ports[i]);
    char *colon = strchr(argv[1], ':');
    if (colon) *colon++ = 0;
    relay(colon ? tcp_socket(argv[1], colon) : unix_socket(SOCK_STREAM, argv[1], 0), pair[0]);
    return 0;
}
