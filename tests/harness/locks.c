/* Answers every echo_request with what a mutex of each kind looks like after each of a few operations. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static unsigned char reply[4096];
static unsigned length;

static void note(pthread_mutex_t *mutex, int result)
{
    reply[length++] = result;
    memcpy(reply + length, mutex, 20);
    length += 20;
}

static void try_all(int kind, int is_held)
{
    pthread_mutexattr_t how;
    pthread_mutex_t mutex;
    memset(&mutex, 0, sizeof mutex);
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, kind);
    pthread_mutex_init(&mutex, &how);
    note(&mutex, pthread_mutex_lock(&mutex));
    if (is_held)
        note(&mutex, pthread_mutex_lock(&mutex));
    if (is_held)
        note(&mutex, pthread_mutex_unlock(&mutex));
    note(&mutex, pthread_mutex_unlock(&mutex));
    if (is_held)
        note(&mutex, pthread_mutex_unlock(&mutex)); /* nobody has it */
    mutex.__data.__lock = 1;
    mutex.__data.__owner = 1; /* somebody else has it */
    if (is_held)
        note(&mutex, pthread_mutex_unlock(&mutex));
}

int main(int argc, char **argv)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    unsigned char m[256];
    int control = socket(AF_UNIX, SOCK_STREAM, 0);
    (void) argc;
    strcpy(un.sun_path, argv[1]);
    if (connect(control, (struct sockaddr *) &un, sizeof un) || write(control, "\1\0\0\10\0\0\0\1", 8) != 8)
        return 1;
    while (read(control, m, 8) == 8) {
        int size = m[3] - 8;
        memset(reply, 0, sizeof reply);
        length = 8;
        if (size && read(control, m + 8, size) != size)
            return 1;
        if (m[1] == 5)
            length = 32;
        else if (m[1] == 2) {
            try_all(PTHREAD_MUTEX_NORMAL, 0);
            try_all(PTHREAD_MUTEX_RECURSIVE, 1);
            try_all(PTHREAD_MUTEX_ERRORCHECK, 1);
            try_all(PTHREAD_MUTEX_ADAPTIVE_NP, 0);
        } else
            continue;
        memcpy(reply, m, 8);
        reply[1]++;
        reply[2] = length >> 8;
        reply[3] = length;
        if (write(control, reply, length) < 0)
            return 1;
    }
    return 0;
}
