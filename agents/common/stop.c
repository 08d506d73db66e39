#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pipe, because a flag could be set just before poll() begins to wait, and would be seen late. */
static int ends[2];

static void request_stop(int signal_number)
{
    int saved = errno;

    (void) signal_number;
    if (write(ends[1], "", 1) < 0) {
        /* The pipe is full of earlier requests: one is enough. */
    }
    errno = saved;
}

int stop_open(void)
{
    struct sigaction action = {.sa_handler = request_stop};

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        fprintf(stderr, "Cannot create a pipe: %s.\n", strerror(errno));
        exit(2);
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return ends[0];
}

void stop_close(void)
{
    close(ends[0]);
    close(ends[1]);
}
