/* An agent that answers echo requests of four bytes in a way of its own: whoever includes this defines `answer`. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int control;

static void reply(const unsigned char *to, const void *data, size_t size)
{
    unsigned char m[256] = {1, 3, 0, 8 + size};
    memcpy(m + 4, to + 4, 4);
    memcpy(m + 8, data, size);
    if (write(control, m, 8 + size) < 0)
        exit(1);
}

static void answer(unsigned char *m);

int main(int argc, char **argv)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    unsigned char m[256];
    ssize_t size;
    (void) argc;
    control = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(un.sun_path, argv[1]);
    if (connect(control, (struct sockaddr *) &un, sizeof un) || write(control, "\1\0\0\10\0\0\0\1", 8) != 8)
        return 1;
    while (read(control, m, 8) == 8) {
        size = m[3] - 8;
        if (size && read(control, m + 8, size) != size)
            return 1;
        if (m[1] == 5) {
            unsigned char features[32] = {1, 6, 0, 32};
            memcpy(features + 4, m + 4, 4);
            if (write(control, features, sizeof features) < 0)
                return 1;
        } else if (m[1] == 2 && size == 4)
            answer(m);
    }
    return 0;
}
