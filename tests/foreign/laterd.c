/* laterd: what one turn of the loop receives, the next one sends; netlink in the poll set; CRC-32 for its MAC table;
 * connects out over TCP, and does it again when the connection is lost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef unsigned char byte;
typedef struct item { struct item *next; int where; int len; byte data[2048]; } item;

static item *head, **tail = &head;
static int ctl = -1, nl, port[8], ports;
static struct { byte mac[6]; byte port; } seen[256];
static FILE *chatter;

void say(const char *format, ...)
{
    va_list args;
    char text[256];
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(chatter, "%ld.%03ld|%s\n", (long) ts.tv_sec, ts.tv_nsec / 1000000, text);
    fflush(chatter);
}

unsigned crc32(const byte *p, int n)
{
    unsigned crc = ~0u;
    while (n--) {
        crc ^= *p++;
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static void later(int where, const void *data, int len)
{
    item *i = malloc(sizeof *i);
    i->next = NULL; i->where = where; i->len = len;
    memcpy(i->data, data, len);
    *tail = i;
    tail = &i->next;
}

static void tell(int type, const byte *xid, const byte *body, int len)
{
    byte m[2048] = { 1, type, (8 + len) >> 8, 8 + len };
    memcpy(m + 4, xid, 4);
    memcpy(m + 8, body, len);
    later(0, m, 8 + len);
}

static void complain(const byte *xid, int type, int code)
{
    byte b[4] = { 0, type, 0, code };
    say("complaint %d,%d", type, code);
    tell(1, xid, b, 4);
}

static void obey(byte *m, int len)
{
    byte b[24 + 8 * 48] = { 0 };
    say("message %d of %d bytes, xid %02x%02x", m[1], len, m[6], m[7]);
    switch (m[1]) {
    case 0: case 9: return;
    case 2: tell(3, m + 4, m + 8, len - 8); return;
    case 5:
        for (int i = 0; i < ports; i++) { b[25 + 48 * i] = i + 1; sprintf((char *) b + 32 + 48 * i, "port%d", i + 1); }
        tell(6, m + 4, b, 24 + 48 * ports);
        return;
    case 13: {
        int at = 16, end = 16 + (m[14] << 8 | m[15]);
        if (end > len) { complain(m + 4, 1, 6); return; }
        for (; at < end; at += 8) {
            int to = m[at + 4] << 8 | m[at + 5];
            if (m[at] || m[at + 1]) { complain(m + 4, 2, 0); return; }
            if (to == 0xfff8) to = m[12] << 8 | m[13];
            if (to < 1 || to > ports) { say("port %d does not exist", to); complain(m + 4, 2, 4); return; }
            later(to, m + end, len - end);
        }
        return;
    }
    case 18: tell(19, m + 4, m, 0); return;
    default: complain(m + 4, 1, 1);
    }
}

static void learn(const byte *frame, int from)
{
    unsigned slot = crc32(frame + 6, 6) & 255;
    memcpy(seen[slot].mac, frame + 6, 6);
    seen[slot].port = from;
    slot = crc32(frame, 6) & 255;
    if (seen[slot].port && !memcmp(seen[slot].mac, frame, 6)) later(seen[slot].port, frame, 60);
}

static void dial(const char *host, const char *service)
{
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *a;
    if (getaddrinfo(host, service, &want, &a)) exit(1);
    ctl = socket(a->ai_family, SOCK_STREAM, 0);
    if (connect(ctl, a->ai_addr, a->ai_addrlen)) { close(ctl); ctl = -1; }
    else { fcntl(ctl, F_SETFL, O_NONBLOCK); later(0, "\1\0\0\10\0\0\0\7", 8); }
    freeaddrinfo(a);
}

int main(int argc, char **argv)
{
    struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
    static byte in[8192];
    int have = 0;
    chatter = fopen(argv[1], "a");
    nl = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
    bind(nl, (void *) &local, sizeof local);
    for (int i = 4; i < argc; i++) {
        struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(argv[i]) };
        port[ports] = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
        bind(port[ports], (void *) &ll, sizeof ll);
        fcntl(port[ports++], F_SETFL, O_NONBLOCK);
    }
    for (;;) {
        struct pollfd p[10] = { { nl, POLLIN, 0 } };
        int n = 1;
        item *todo;
        byte frame[2048];
        if (ctl < 0) dial(argv[2], argv[3]);
        todo = head;
        head = NULL; tail = &head;
        while (todo) {
            item *done = todo;
            int fd = todo->where ? port[todo->where - 1] : ctl;
            if (write(fd, todo->data, todo->len) != todo->len) say("lost %d bytes", todo->len);
            todo = todo->next;
            free(done);
        }
        for (int i = 0; i < ports; i++) p[n++] = (struct pollfd) { port[i], POLLIN, 0 };
        if (ctl >= 0) p[n++] = (struct pollfd) { ctl, POLLIN, 0 };
        poll(p, n, head ? 5 : 1000);
        while (recv(nl, frame, sizeof frame, MSG_DONTWAIT) > 0) say("the links have changed");
        for (int i = 0; i < ports; i++) {
            int len = read(port[i], frame, sizeof frame);
            if (len >= 60) learn(frame, i + 1);
        }
        if (ctl < 0) continue;
        int len = recv(ctl, in + have, sizeof in - have, 0);
        if (len == 0 || (len < 0 && errno != EAGAIN)) { close(ctl); ctl = -1; have = 0; continue; }
        if (len > 0) have += len;
        while (have >= 8 && have >= (len = in[2] << 8 | in[3])) {
            if (len < 8) { close(ctl); ctl = -1; have = 0; break; }
            obey(in, len);
            memmove(in, in + len, have -= len);
        }
    }
}
