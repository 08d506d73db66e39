/* talkd: a thread of its own writes the log, fed through a queue under a condition variable and woken by a pipe; the
 * main thread waits in pselect, looks stations up by Jenkins' hash, and hears of links by netlink. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static char *lines[64];
static unsigned first, last;
static int bell[2], sw, nl, ports[9], nports;
static FILE *logfile;

static void *scribe(void *unused)
{
    for (;;) {
        char *line;
        pthread_mutex_lock(&lock);
        while (first == last) pthread_cond_wait(&more, &lock);
        line = lines[first++ % 64];
        pthread_mutex_unlock(&lock);
        fprintf(logfile, "%s\n", line);
        fflush(logfile);
        free(line);
        if (write(bell[1], "!", 1) != 1) return NULL;
    }
}

static void note(const char *format, ...)
{
    va_list args;
    char *line;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0) abort();
    va_end(args);
    pthread_mutex_lock(&lock);
    lines[last++ % 64] = line;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

uint32_t one_at_a_time(const uint8_t *key, size_t n)
{
    uint32_t h = 0;
    while (n--) { h += *key++; h += h << 10; h ^= h >> 6; }
    h += h << 3; h ^= h >> 11; h += h << 15;
    return h;
}

static struct rule { struct rule *next; uint8_t mac[6]; uint16_t out; } *rules[32];

static void put(uint8_t type, const uint8_t *xid, const void *body, size_t n)
{
    uint8_t m[4096] = { 1, type, (uint8_t) ((n + 8) >> 8), (uint8_t) (n + 8) };
    memcpy(m + 4, xid, 4);
    memcpy(m + 8, body, n);
    send(sw, m, n + 8, MSG_NOSIGNAL);
    note("sent a %s of %zu bytes", type == 1 ? "refusal" : "reply", n + 8);
}

static void refuse(const uint8_t *m, int type, int code)
{
    uint8_t b[4] = { 0, (uint8_t) type, 0, (uint8_t) code };
    note("refused: %d/%d for xid %u", type, code, m[7]);
    put(1, m + 4, b, 4);
}

static void flow_mod(const uint8_t *m, size_t n)
{
    const uint8_t *mac = m + 8 + 4 + 2 + 6;
    uint16_t out = m[76] << 8 | m[77];
    struct rule *r;
    if (n != 80 || m[72] || m[73]) { refuse(m, 2, 0); return; }
    if (!out || out > nports) { refuse(m, 2, 4); return; }
    r = calloc(1, sizeof *r);
    memcpy(r->mac, mac, 6);
    r->out = out;
    r->next = rules[one_at_a_time(mac, 6) % 32];
    rules[one_at_a_time(mac, 6) % 32] = r;
    note("rule for %02x:%02x:%02x:%02x:%02x:%02x to %u", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], out);
}

static void act(const uint8_t *m, size_t n)
{
    uint8_t f[24 + 8 * 48] = { 0 };
    note("message of type %u", m[1]);
    if (m[1] == 2) put(3, m + 4, m + 8, n - 8);
    else if (m[1] == 5) {
        for (int i = 0; i < nports; i++) { f[25 + 48 * i] = i + 1; sprintf((char *) f + 32 + 48 * i, "t%d", i); }
        put(6, m + 4, f, 24 + 48 * nports);
    } else if (m[1] == 14) flow_mod(m, n);
    else if (m[1] == 18) put(19, m + 4, "", 0);
    else if (m[1] != 0 && m[1] != 9) refuse(m, 1, 1);
}

static void frame(int from, const uint8_t *p, size_t n)
{
    uint8_t b[3000] = { 255, 255, 255, 255, (uint8_t) (n >> 8), (uint8_t) n, 0, (uint8_t) from };
    for (struct rule *r = rules[one_at_a_time(p, 6) % 32]; r; r = r->next)
        if (!memcmp(r->mac, p, 6)) { send(ports[r->out - 1], p, n, 0); return; }
    memcpy(b + 10, p, n);
    put(10, (const uint8_t *) "\0\0\0", b, n + 10);
}

static int local(int type, const char *path, int fd)
{
    struct sockaddr_un a = { AF_UNIX };
    strcpy(a.sun_path, path);
    if (fd < 0) {
        fd = socket(AF_UNIX, type, 0);
        if (type == SOCK_DGRAM) { bind(fd, (void *) &a, sizeof a); return fd; }
    }
    while (connect(fd, (void *) &a, sizeof a)) usleep(10000);
    return fd;
}

int main(int argc, char **argv)
{
    struct sockaddr_nl all = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR };
    pthread_t thread;
    uint8_t in[4096];
    size_t have = 0;
    logfile = fopen(argv[1], "w");
    if (pipe(bell)) return 1;
    fcntl(bell[0], F_SETFL, O_NONBLOCK);
    pthread_create(&thread, NULL, scribe, NULL);
    nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    bind(nl, (void *) &all, sizeof all);
    for (int i = 3; i < argc; i++) {
        char *comma = strchr(argv[i], ',');
        *comma = 0;
        ports[nports] = local(SOCK_DGRAM, argv[i], -1);
        local(SOCK_DGRAM, comma + 1, ports[nports++]);
    }
    sw = local(SOCK_STREAM, argv[2], -1);
    send(sw, "\1\0\0\10\0\0\0\3", 8, 0);
    for (;;) {
        struct timespec wait = { 2, 500000000 };
        uint8_t buf[4096];
        fd_set r;
        ssize_t n;
        FD_ZERO(&r);
        FD_SET(sw, &r); FD_SET(nl, &r); FD_SET(bell[0], &r);
        for (int i = 0; i < nports; i++) FD_SET(ports[i], &r);
        if (pselect(64, &r, NULL, NULL, &wait, NULL) < 0 && errno != EINTR) return 1;
        if (FD_ISSET(bell[0], &r)) while (read(bell[0], buf, sizeof buf) > 0) ;
        while ((n = recv(nl, buf, sizeof buf, MSG_DONTWAIT)) > 0) note("%zd bytes of news", n);
        for (int i = 0; i < nports; i++)
            if (FD_ISSET(ports[i], &r) && (n = recv(ports[i], buf, sizeof buf, MSG_DONTWAIT)) > 0) frame(i + 1, buf, n);
        if (FD_ISSET(sw, &r)) {
            n = recv(sw, in + have, sizeof in - have, 0);
            if (n <= 0) return 0;
            for (have += n; have >= 8 && have >= (size_t) (in[2] << 8 | in[3]);) {
                size_t size = in[2] << 8 | in[3];
                if (size < 8) return 2;
                act(in, size);
                memmove(in, in + size, have -= size);
            }
        }
    }
}
