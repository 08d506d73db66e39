/* peekd: a POSIX timer with a real-time signal, unblocked only inside ppoll; peeks at a header before it reads a message
 * with readv; takes frames from AF_PACKET with read(2) and several at a time with recvmmsg; a CRC of each frame. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef unsigned char u8;
static int srv = -1, cli = -1, np;
static int fds[12];
static volatile sig_atomic_t beats;
static unsigned short table[256], seen_crc[16];
static long idle_usec;

static void beat(int s, siginfo_t *i, void *u) { beats += i->si_value.sival_int; }

static unsigned short crc16(const u8 *p, int n)
{
    unsigned short c = 0xffff;
    while (n--) c = c << 8 ^ table[(c >> 8 ^ *p++) & 255];
    return c;
}

static void transmit(const u8 *a, int an, const u8 *b, int bn)
{
    struct iovec v[2] = { { (void *) a, an }, { (void *) b, bn } };
    struct msghdr h = { 0 };
    h.msg_iov = v; h.msg_iovlen = 2;
    sendmsg(cli, &h, MSG_NOSIGNAL);
}

static void error(const u8 *m, int len, int type, int code)
{
    u8 h[12] = { 1, 1, 0, 12 + len, m[4], m[5], m[6], m[7], 0, type, 0, code };
    transmit(h, 12, m, len);
}

static void request(u8 *m, int len)
{
    u8 h[8] = { 1, 0, 0, 8, m[4], m[5], m[6], m[7] }, f[24 + 12 * 48] = { 0 };
    int i;
    if (m[1] == 2) { h[1] = 3; h[2] = len >> 8; h[3] = len; transmit(h, 8, m + 8, len - 8); }
    else if (m[1] == 5) {
        h[1] = 6; h[2] = (32 + 48 * np) >> 8; h[3] = 32 + 48 * np;
        for (i = 0; i < np; i++) { f[25 + i * 48] = 1 + i; strcpy(f + 32 + i * 48, "peek"); }
        transmit(h, 8, f, 24 + 48 * np);
    } else if (m[1] == 18) { h[1] = 19; transmit(h, 8, m, 0); }
    else if (m[1] == 13) {
        int acts = ntohs(*(unsigned short *) (m + 14)), at;
        if (acts > len - 16) { error(m, 16, 1, 6); return; }
        for (at = 16; at < 16 + acts; at += 8) {
            unsigned port = ntohs(*(unsigned short *) (m + at + 4));
            if (*(unsigned short *) (m + at)) { error(m, 16, 2, 0); return; }
            if (port == 0xfffd) { h[1] = 10; h[3] = 18 + len - 16 - acts; memcpy(f, "\377\377\377\377", 4); f[5] = len - 16 - acts; f[8] = 1;
                memcpy(f + 4, m + 14, 0); memcpy(f + 10, m + 16 + acts, len - 16 - acts); transmit(h, 8, f, 10 + len - 16 - acts); }
            else if (port - 1 < np) { if (write(fds[port - 1], m + 16 + acts, len - 16 - acts) < 0) error(m, 16, 2, 5); }
            else { error(m, 16, 2, 4); return; }
        }
    } else if (m[1] != 0 && m[1] != 9) error(m, len < 64 ? len : 64, 1, 1);
}

static void control(void)
{
    u8 head[8], body[65536];
    struct iovec v[2] = { { head, 8 }, { body, 0 } };
    int n = recv(cli, head, 8, MSG_PEEK | MSG_DONTWAIT), len;
    if (n == 0 || (n < 0 && errno != EAGAIN)) { close(cli); cli = -1; return; }
    if (n < 8) return;
    len = head[2] << 8 | head[3];
    if (len < 8) { close(cli); cli = -1; return; }
    v[1].iov_len = len - 8;
    n = readv(cli, v, 2);
    if (n != len) { close(cli); cli = -1; return; }
    memmove(body + 8, body, len - 8);
    memcpy(body, head, 8);
    request(body, len);
}

static void got(int port, u8 *p, int n)
{
    u8 h[18] = { 1, 10, (18 + n) >> 8, 18 + n, 0, 0, 0, 0, 255, 255, 255, 255, n >> 8, n, 0, port };
    seen_crc[port] = crc16(p, n);
    if (cli >= 0) transmit(h, 18, p, n);
}

static void frames(int i)
{
    static u8 b[4][2048];
    struct iovec v[4];
    struct mmsghdr m[4];
    int k, n;
    if (i & 1) {
        while ((n = read(fds[i], b[0], sizeof b[0])) > 0) got(i + 1, b[0], n);
        return;
    }
    memset(m, 0, sizeof m);
    for (k = 0; k < 4; k++) { v[k].iov_base = b[k]; v[k].iov_len = 2048; m[k].msg_hdr.msg_iov = v + k; m[k].msg_hdr.msg_iovlen = 1; }
    n = recvmmsg(fds[i], m, 4, MSG_DONTWAIT, NULL);
    for (k = 0; k < n; k++) got(i + 1, b[k], m[k].msg_len);
}

int main(int argc, char **argv)
{
    struct sigaction sa = { 0 };
    struct sigevent ev = { 0 };
    struct itimerspec it = { { 0, 30000000 }, { 0, 30000000 } };
    struct sockaddr_in in = { AF_INET, htons(atoi(argv[1])) };
    sigset_t block, none;
    timer_t timer;
    int i, k, one = 1;
    for (i = 0; i < 256; i++) { unsigned c = i << 8; for (k = 0; k < 8; k++) c = c & 0x8000 ? c << 1 ^ 0x1021 : c << 1; table[i] = c; }
    sigemptyset(&none); sigemptyset(&block); sigaddset(&block, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &block, NULL);
    sa.sa_sigaction = beat; sa.sa_flags = SA_SIGINFO;
    sigaction(SIGRTMIN + 1, &sa, NULL);
    ev.sigev_notify = SIGEV_SIGNAL; ev.sigev_signo = SIGRTMIN + 1; ev.sigev_value.sival_int = 1;
    timer_create(CLOCK_MONOTONIC, &ev, &timer);
    timer_settime(timer, 0, &it, NULL);
    srv = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(srv, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bind(srv, (void *) &in, sizeof in);
    listen(srv, 1);
    for (i = 2; i < argc; i++) {
        struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(argv[i]) };
        fds[np] = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
        setsockopt(fds[np], SOL_PACKET, 23 /* PACKET_IGNORE_OUTGOING */, &one, sizeof one);
        bind(fds[np++], (void *) &ll, sizeof ll);
    }
    for (;;) {
        struct pollfd p[14];
        struct rusage ru;
        struct timespec ts = { 5, 0 };
        int n = 0;
        for (; n < np; n++) { p[n].fd = fds[n]; p[n].events = POLLIN; }
        p[n].fd = cli < 0 ? srv : cli; p[n].events = POLLIN | POLLRDHUP;
        k = ppoll(p, n + 1, &ts, &none);
        if (k < 0) continue;
        getrusage(RUSAGE_SELF, &ru);
        idle_usec += ru.ru_utime.tv_usec & 1;
        for (i = 0; i < np; i++) if (p[i].revents & POLLIN) frames(i);
        if (p[n].revents && cli < 0) {
            cli = accept(srv, NULL, NULL);
            setsockopt(cli, 6, 1, &one, sizeof one);
            send(cli, "\1\0\0\10\0\0\0\5", 8, 0);
        } else if (p[n].revents) control();
    }
}
