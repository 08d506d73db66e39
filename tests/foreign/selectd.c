/* selectd: select, recvmsg, a UNIX socket to listen on, Jenkins' hash over flows, and syslog for everything. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <net/ethernet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

struct hdr { uint8_t version, type; uint16_t length; uint32_t xid; } __attribute__((packed));
struct flow { struct flow *next; uint8_t dst[6]; uint16_t port; };

static struct flow *table[64];
static int control = -1, nports, fds[8];

/* One at a time, as in 1997. */
uint32_t jenkins(const uint8_t *key, size_t length)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < length; ++i) { hash += key[i]; hash += hash << 10; hash ^= hash >> 6; }
    hash += hash << 3; hash ^= hash >> 11; hash += hash << 15;
    return hash;
}

static struct flow **find(const uint8_t *dst)
{
    struct flow **p = &table[jenkins(dst, 6) % 64];
    while (*p && memcmp((*p)->dst, dst, 6)) p = &(*p)->next;
    return p;
}

static void out(const void *data, size_t size)
{
    struct iovec v = { (void *) data, size };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    if (sendmsg(control, &m, MSG_NOSIGNAL) < 0) syslog(LOG_ERR, "controller gone: %m");
}

static void answer(const struct hdr *to, uint8_t type, const void *body, size_t size)
{
    char *m = malloc(sizeof(struct hdr) + size);
    struct hdr h = { 1, type, htons(sizeof h + size), to->xid };
    memcpy(m, &h, sizeof h);
    memcpy(m + sizeof h, body, size);
    out(m, sizeof h + size);
    free(m);
}

static void fail(const struct hdr *to, uint16_t type, uint16_t code)
{
    uint16_t body[2] = { htons(type), htons(code) };
    syslog(LOG_WARNING, "error %u/%u in answer to %u", type, code, to->type);
    answer(to, 1, body, sizeof body);
}

static void features(const struct hdr *h)
{
    uint8_t body[24 + 48 * 8] = { 0 };
    for (int i = 0; i < nports; i++) {
        body[24 + 48 * i + 1] = i + 1;
        strcpy((char *) body + 24 + 48 * i + 8, "portX");
        body[24 + 48 * i + 12] = '1' + i;
    }
    answer(h, 6, body, 24 + 48 * nports);
}

static void flow_mod(const struct hdr *h, const uint8_t *m)
{
    uint16_t command = ntohs(*(uint16_t *) (m + 56));
    struct flow **p = find(m + 20);
    if (command == 0) {
        if (!*p) { *p = calloc(1, sizeof **p); memcpy((*p)->dst, m + 20, 6); }
        (*p)->port = ntohs(*(uint16_t *) (m + 76));
        syslog(LOG_INFO, "flow to %02x:%02x goes to %u", m[20], m[25], (*p)->port);
    } else if (command == 3) {
        struct flow *dead = *p;
        if (dead) { *p = dead->next; free(dead); }
    } else fail(h, 3, 4);
}

static void message(uint8_t *m, size_t size)
{
    struct hdr *h = (struct hdr *) m;
    syslog(LOG_DEBUG, "message of type %d, %zu bytes", h->type, size);
    if (h->type == 2) answer(h, 3, m + 8, size - 8);
    else if (h->type == 5) features(h);
    else if (h->type == 14 && size == 80) flow_mod(h, m);
    else if (h->type == 18) answer(h, 19, m, 0);
    else if (h->type != 0 && h->type != 9) fail(h, 1, 1);
}

static void frame(int from, uint8_t *data, size_t size)
{
    struct flow *f = size >= 14 ? *find(data) : NULL;
    if (!f) { syslog(LOG_INFO, "no flow for a frame from %d", from); return; }
    if (f->port >= 1 && f->port <= nports) send(fds[f->port - 1], data, size, 0);
}

int main(int argc, char **argv)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    openlog("selectd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    strcpy(un.sun_path, argv[1]);
    if (bind(listener, (void *) &un, sizeof un) || listen(listener, 1)) return 1;
    for (int i = 2; i < argc; i++) {
        struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                                  .sll_ifindex = if_nametoindex(argv[i]) };
        fds[nports] = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
        if (bind(fds[nports++], (void *) &ll, sizeof ll)) return 1;
    }
    for (;;) {
        fd_set set;
        int most = listener;
        FD_ZERO(&set);
        FD_SET(listener, &set);
        if (control >= 0) { FD_SET(control, &set); if (control > most) most = control; }
        for (int i = 0; i < nports; i++) { FD_SET(fds[i], &set); if (fds[i] > most) most = fds[i]; }
        struct timeval second = { 1, 0 };
        if (select(most + 1, &set, NULL, NULL, &second) < 0) continue;
        if (FD_ISSET(listener, &set)) {
            control = accept(listener, NULL, NULL);
            out("\1\0\0\10\0\0\0\1", 8);
        }
        for (int i = 0; i < nports; i++)
            if (FD_ISSET(fds[i], &set)) {
                uint8_t data[1600];
                struct sockaddr_ll ll;
                struct iovec v[2] = { { data, 14 }, { data + 14, sizeof data - 14 } };
                struct msghdr m = { .msg_name = &ll, .msg_namelen = sizeof ll, .msg_iov = v, .msg_iovlen = 2 };
                ssize_t n = recvmsg(fds[i], &m, 0);
                if (n > 0 && ll.sll_pkttype != PACKET_OUTGOING) frame(i + 1, data, n);
            }
        if (control >= 0 && FD_ISSET(control, &set)) {
            uint8_t data[65536];
            /* The header, and then as much as it says. */
            if (recv(control, data, 8, MSG_WAITALL) != 8) { close(control); control = -1; continue; }
            size_t size = ntohs(((struct hdr *) data)->length);
            if (size < 8) { syslog(LOG_ERR, "a length of %zu", size); return 3; }
            if (size > 8 && recv(control, data + 8, size - 8, MSG_WAITALL) != (ssize_t) size - 8) return 2;
            message(data, size);
        }
    }
}
