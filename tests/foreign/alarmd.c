/* alarmd: an interval timer and SIGALRM that interrupts poll, AF_PACKET sockets read with recvfrom, listens on TCP. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <net/ethernet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MAXPORTS 16
static int lsock, csock = -1, psock[MAXPORTS], nports;
static struct sockaddr_ll paddr[MAXPORTS];
static unsigned char inbuf[70000];
static int inlen;
static volatile sig_atomic_t ticks;
static long ticks_seen, interrupted;
static unsigned long rx, tx;

static void on_alarm(int sig) { (void) sig; ticks++; }

static void put(unsigned char *p, unsigned v, int n) { while (n--) { p[n] = v; v >>= 8; } }
static unsigned get(const unsigned char *p, int n) { unsigned v = 0; while (n--) v = v << 8 | *p++; return v; }

static void reply(int type, const unsigned char *req, const void *body, int len)
{
    unsigned char m[4096];
    put(m, 1, 1); put(m + 1, type, 1); put(m + 2, 8 + len, 2); memcpy(m + 4, req + 4, 4);
    memcpy(m + 8, body, len);
    if (write(csock, m, 8 + len) < 0) { close(csock); csock = -1; }
}

static void error(const unsigned char *req, int type, int code)
{
    unsigned char e[4];
    put(e, type, 2); put(e + 2, code, 2);
    reply(1, req, e, 4);
}

static void transmit(int port, const unsigned char *data, int len)
{
    if (port < 1 || port > nports) return;
    if (sendto(psock[port - 1], data, len, 0, (struct sockaddr *) &paddr[port - 1], sizeof paddr[0]) >= 0) tx++;
}

static void packet_out(unsigned char *m, int len)
{
    int alen = get(m + 14, 2), i, p;
    if (16 + alen > len) { error(m, 1, 6); return; }
    for (i = 16; i + 8 <= 16 + alen; i += 8) {
        if (get(m + i, 2) != 0) { error(m, 2, 0); return; }
        p = get(m + i + 4, 2);
        if (p == 0xfffb) {
            int in = get(m + 12, 2);
            for (p = 1; p <= nports; p++) if (p != in) transmit(p, m + 16 + alen, len - 16 - alen);
        } else if (p >= 1 && p <= nports) transmit(p, m + 16 + alen, len - 16 - alen);
        else { error(m, 2, 4); return; }
    }
}

static void handle(unsigned char *m, int len)
{
    unsigned char f[24 + 48 * MAXPORTS];
    int i;
    switch (m[1]) {
    case 0: break;
    case 2: reply(3, m, m + 8, len - 8); break;
    case 5:
        memset(f, 0, sizeof f);
        put(f + 7, 1, 1); put(f + 12, 1, 1);
        for (i = 0; i < nports; i++) {
            put(f + 24 + 48 * i, i + 1, 2);
            sprintf((char *) f + 24 + 48 * i + 8, "port%d", i + 1);
        }
        reply(6, m, f, 24 + 48 * nports);
        break;
    case 9: break;
    case 13: packet_out(m, len); break;
    case 18: reply(19, m, m, 0); break;
    default: error(m, 1, 1);
    }
}

int main(int argc, char **argv)
{
    struct itimerval it = { { 0, 7000 }, { 0, 7000 } };
    struct sigaction sa;
    struct sockaddr_in in;
    int i, one = 1;

    lsock = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(lsock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    memset(&in, 0, sizeof in);
    in.sin_family = AF_INET; in.sin_port = htons(atoi(argv[1])); in.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(lsock, (struct sockaddr *) &in, sizeof in) || listen(lsock, 5)) { perror("listen"); return 1; }
    fcntl(lsock, F_SETFL, O_NONBLOCK);
    for (i = 2; i < argc; i++, nports++) {
        psock[nports] = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
        paddr[nports].sll_family = AF_PACKET;
        paddr[nports].sll_protocol = htons(ETH_P_ALL);
        paddr[nports].sll_ifindex = if_nametoindex(argv[i]);
        if (bind(psock[nports], (struct sockaddr *) &paddr[nports], sizeof paddr[0])) { perror(argv[i]); return 1; }
        fcntl(psock[nports], F_SETFL, O_NONBLOCK);
    }
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_alarm;
    sigaction(SIGALRM, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    setitimer(ITIMER_REAL, &it, NULL);

    for (;;) {
        struct pollfd pf[MAXPORTS + 2];
        int n = 0;
        pf[n].fd = lsock; pf[n++].events = POLLIN;
        for (i = 0; i < nports; i++) { pf[n].fd = psock[i]; pf[n++].events = POLLIN; }
        if (csock >= 0) { pf[n].fd = csock; pf[n++].events = POLLIN; }
        if (poll(pf, n, -1) < 0) {
            if (errno != EINTR) return 1;
            interrupted++;
            if (ticks - ticks_seen > 100) ticks_seen = ticks;
            continue;
        }
        i = accept(lsock, NULL, NULL);
        if (i >= 0) {
            if (csock >= 0) close(csock);
            csock = i;
            fcntl(csock, F_SETFL, O_NONBLOCK);
            inlen = 0;
            if (write(csock, "\1\0\0\10\0\0\0\1", 8) != 8) return 1;
        }
        for (i = 0; i < nports; i++) {
            unsigned char frame[2048];
            struct sockaddr_ll from;
            socklen_t flen = sizeof from;
            int len = recvfrom(psock[i], frame, sizeof frame, 0, (struct sockaddr *) &from, &flen);
            if (len > 0 && from.sll_pkttype != PACKET_OUTGOING && csock >= 0) {
                unsigned char body[10 + 2048];
                rx++;
                put(body, 0xffffffff, 4); put(body + 4, len, 2); put(body + 6, i + 1, 2); put(body + 8, 0, 2);
                memcpy(body + 10, frame, len);
                reply(10, (unsigned char *) "\1\12\0\0\0\0\0\0", body, 10 + len);
            }
        }
        if (csock < 0) continue;
        i = read(csock, inbuf + inlen, sizeof inbuf - inlen);
        if (i == 0) { close(csock); csock = -1; continue; }
        if (i > 0) inlen += i;
        while (csock >= 0 && inlen >= 8 && inlen >= (int) get(inbuf + 2, 2) && get(inbuf + 2, 2) >= 8) {
            int len = get(inbuf + 2, 2);
            handle(inbuf, len);
            memmove(inbuf, inbuf + len, inlen - len);
            inlen -= len;
        }
    }
}
