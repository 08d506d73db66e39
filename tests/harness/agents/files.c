/* Pipes, eventfds, descriptors and the few files. */
#include "agent.h"

static int ends[2];

static void prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
}

SPEAKING(a_pipe)
{
    struct iovec parts[2];
    char bytes[8] = {0};

    TRY(pipe(ends));
    TRY(write(ends[1], "hello", 5));
    TRY(read(ends[0], bytes, 2));
    parts[0] = (struct iovec) {bytes, 1};
    parts[1] = (struct iovec) {bytes + 1, 7};
    TRY(readv(ends[0], parts, 2));
    NOTE(bytes[0]);
    NOTE(bytes[2]);
    TRY(writev(ends[1], parts, 2));
    TRY(read(ends[1], bytes, 1));
    TRY(write(ends[0], bytes, 1));
    TRY(lseek(ends[0], 0, SEEK_CUR));
    TRY(read(ends[0], bytes, 0));
    TRY(ioctl(ends[0], FIONREAD, bytes));
    NOTE(bytes[0]);
}

SPEAKING(a_pipe_that_ends)
{
    char byte;

    TRY(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
    TRY(read(ends[0], &byte, 1));
    TRY(write(ends[1], "a", 1));
    TRY(close(ends[1]));
    TRY(read(ends[0], &byte, 1));
    TRY(read(ends[0], &byte, 1));
    TRY(close(ends[0]));
    TRY(close(ends[0]));
}

SPEAKING(a_pipe_without_a_reader)
{
    TRY(pipe(ends));
    TRY(close(ends[0]));
    TRY(write(ends[1], "a", 1));
}

SPEAKING(a_full_pipe)
{
    static char much[10 * 4096];

    TRY(pipe2(ends, O_NONBLOCK));
    TRY(write(ends[1], much, sizeof much));
    TRY(write(ends[1], much, sizeof much));
    TRY(write(ends[1], much, sizeof much));
    NOTE(poll(&(struct pollfd) {.fd = ends[1], .events = POLLOUT}, 1, 0));
    TRY(read(ends[0], much, sizeof much));
    NOTE(poll(&(struct pollfd) {.fd = ends[1], .events = POLLOUT}, 1, 0));
}

SPEAKING(an_eventfd)
{
    int counter = eventfd(3, EFD_NONBLOCK), semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    uint64_t number = 39;

    TRY(write(counter, &number, 8));
    TRY(read(counter, &number, 8));
    NOTE(number);
    TRY(read(counter, &number, 8));
    TRY(read(counter, &number, 7));
    TRY(write(counter, &number, 7));
    number = -1;
    TRY(write(counter, &number, 8));
    number = 0;
    TRY(write(counter, &number, 8));
    TRY(read(counter, &number, 8));
    TRY(read(semaphore, &number, 8));
    NOTE(number);
    TRY(read(semaphore, &number, 8));
    TRY(read(semaphore, &number, 8));
}

SPEAKING(numbers)
{
    int copy = dup(control);

    NOTE(copy - port);
    TRY(fcntl(control, F_DUPFD, 100));
    TRY(fcntl(control, F_DUPFD_CLOEXEC, 100));
    TRY(fcntl(101, F_GETFD));
    TRY(fcntl(100, F_GETFD));
    TRY(fcntl(100, F_SETFD, FD_CLOEXEC));
    TRY(fcntl(100, F_GETFD));
    TRY(dup2(100, 50));
    TRY(dup2(999, 50));
    TRY(dup3(100, 51, O_CLOEXEC));
    TRY(dup3(100, 100, 0));
    TRY(close(100));
    TRY(close(101));
    TRY(close(50));
    TRY(close(51));
    TRY(close(copy));
    NOTE(eventfd(0, 0) - copy);
    TRY(dup(999));
    TRY(dup(-1));
    TRY(fcntl(999, F_GETFL));
}

SPEAKING(flags)
{
    TRY(pipe2(ends, 0));
    TRY(fcntl(ends[0], F_GETFL));
    TRY(fcntl(ends[1], F_GETFL));
    TRY(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    TRY(fcntl(ends[0], F_GETFL));
    TRY(fcntl(port, F_GETFL));
    TRY(fcntl(eventfd(0, EFD_NONBLOCK), F_GETFL));
    TRY(fcntl(open("/dev/null", O_WRONLY), F_GETFL) & O_ACCMODE);
}

SPEAKING(nothing)
{
    int null = open("/dev/null", O_RDWR);
    char byte;

    NOTE(null);
    TRY(write(null, "abc", 3));
    TRY(read(null, &byte, 1));
    TRY(isatty(null));
    TRY(lseek(null, 5, SEEK_SET));
    NOTE(poll(&(struct pollfd) {.fd = null, .events = POLLIN | POLLOUT}, 1, 0));
    TRY(fsync(999));
}

SPEAKING(kinds)
{
    struct stat status;

    TRY(pipe(ends));
    TRY(fstat(ends[0], &status));
    NOTE(status.st_mode & S_IFMT);
    TRY(fstat(control, &status));
    NOTE(status.st_mode & S_IFMT);
    TRY(fstat(open("/dev/null", O_RDONLY), &status));
    NOTE(status.st_mode & S_IFMT);
    TRY(fstat(999, &status));
    TRY(isatty(control));
}
