/* crewd: one thread reads messages, another one answers them, each port has one of its own that waits in read, and a
 * last one counts seconds. They meet in a queue under a semaphore, a condition variable and a read-write lock. */
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct work { struct work *next; uint8_t port; size_t size; uint8_t data[2048]; };
static struct work *todo, **last = &todo;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t room;
static struct rule { uint8_t mac[6]; uint16_t out; int used; unsigned born; } rules[16];
static unsigned now;
static int sw, nports;
static struct { int fd; struct sockaddr_un peer; } ports[9];

static void put(int type, const uint8_t *xid, const void *body, size_t n)
{
    uint8_t m[4096] = { 1, type, (8 + n) >> 8, 8 + n };
    memcpy(m + 4, xid, 4);
    memcpy(m + 8, body, n);
    send(sw, m, 8 + n, MSG_NOSIGNAL);
}

static void give(int port, const uint8_t *data, size_t n)
{
    struct work *w = calloc(1, sizeof *w);
    w->port = port;
    memcpy(w->data, data, w->size = n);
    sem_wait(&room);
    pthread_mutex_lock(&lock);
    *last = w;
    last = &w->next;
    pthread_cond_signal(&news);
    pthread_mutex_unlock(&lock);
}

static void out(int port, int from, const uint8_t *data, size_t n)
{
    for (int i = 1; i <= nports; i++)
        if (port == i || (port == 0xfffb && i != from))
            sendto(ports[i].fd, data, n, MSG_DONTWAIT, (struct sockaddr *) &ports[i].peer, sizeof ports[i].peer);
}

static void message(const uint8_t *m, size_t n)
{
    static const uint8_t none[4];
    if (m[1] == 2) put(3, m + 4, m + 8, n - 8);
    else if (m[1] == 5) put(6, m + 4, (uint8_t[24]) { 0, 0, 0, 0, 0, 0, 0, 9 }, 24);
    else if (m[1] == 18) put(19, m + 4, none, 0);
    else if (m[1] == 13 && n > 24 && m[14] << 8 == 0 && m[15] == 8 && !m[16] && !m[17]) {
        int port = m[20] << 8 | m[21];
        if (port != 0xfffb && (port < 1 || port > nports)) put(1, m + 4, (uint8_t[]) { 0, 2, 0, 4 }, 4);
        else out(port, m[12] << 8 | m[13], m + 24, n - 24);
    } else if (m[1] == 14 && n == 80) {
        int i, port = m[76] << 8 | m[77];
        if (port < 1 || port > nports) { put(1, m + 4, (uint8_t[]) { 0, 2, 0, 4 }, 4); return; }
        pthread_rwlock_wrlock(&table);
        for (i = 0; i < 16 && rules[i].used && memcmp(rules[i].mac, m + 20, 6); i++) ;
        if (i < 16) {
            memcpy(rules[i].mac, m + 20, 6);
            rules[i].out = port;
            rules[i].born = now;
            rules[i].used = 1;
        }
        pthread_rwlock_unlock(&table);
    } else if (m[1] && m[1] != 9) put(1, m + 4, (uint8_t[]) { 0, 1, 0, 1 }, 4);
}

static void *answers(void *unused)
{
    for (;;) {
        struct work *w;
        pthread_mutex_lock(&lock);
        while (!todo) pthread_cond_wait(&news, &lock);
        w = todo;
        if (!(todo = w->next)) last = &todo;
        pthread_mutex_unlock(&lock);
        sem_post(&room);
        if (w->port) {
            uint8_t b[10] = { 255, 255, 255, 255, w->size >> 8, w->size, 0, w->port };
            put(10, b, b, 10);
        } else message(w->data, w->size);
        free(w);
    }
}

static void *carries(void *arg)
{
    int me = (int) (intptr_t) arg;
    uint8_t f[2048];
    ssize_t n;
    while ((n = read(ports[me].fd, f, sizeof f)) > 0) {
        int to = 0;
        pthread_rwlock_rdlock(&table);
        for (int i = 0; i < 16; i++) if (rules[i].used && n >= 6 && !memcmp(rules[i].mac, f, 6)) to = rules[i].out;
        pthread_rwlock_unlock(&table);
        if (to) out(to, me, f, n); else give(me, f, n);
    }
    return NULL;
}

static void *counts(void *unused)
{
    for (;;) {
        usleep(1000000);
        pthread_rwlock_wrlock(&table);
        now++;
        for (int i = 0; i < 16; i++) if (rules[i].used && now - rules[i].born > 5) rules[i].used = 0;
        pthread_rwlock_unlock(&table);
    }
}

int main(int argc, char **argv)
{
    static uint8_t m[2048];
    pthread_t t;
    struct sockaddr_un a = { AF_UNIX };
    sem_init(&room, 0, 8);
    strcpy(a.sun_path, argv[1]);
    sw = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(sw, (struct sockaddr *) &a, sizeof a)) return 1;
    for (int i = 2; i < argc; i++) {
        char *comma = strchr(argv[i], ',');
        *comma = 0;
        strcpy(a.sun_path, argv[i]);
        ports[++nports].fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        if (bind(ports[nports].fd, (struct sockaddr *) &a, sizeof a)) return 1;
        ports[nports].peer.sun_family = AF_UNIX;
        strcpy(ports[nports].peer.sun_path, comma + 1);
        pthread_create(&t, NULL, carries, (void *) (intptr_t) nports);
    }
    pthread_create(&t, NULL, answers, NULL);
    pthread_create(&t, NULL, counts, NULL);
    put(0, (uint8_t[4]) { 0 }, m, 0);
    for (;;) {
        size_t n = 8;
        if (recv(sw, m, 8, MSG_WAITALL) != 8) return 0;
        if ((n = m[2] << 8 | m[3]) < 8 || n > sizeof m) return 2;
        if (n > 8 && recv(sw, m + 8, n - 8, MSG_WAITALL) != n - 8) return 0;
        give(0, m, n);
    }
}
