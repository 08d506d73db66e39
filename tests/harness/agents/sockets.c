/* Messages and frames with every call that there is for them. */
#include "agent.h"

static void prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static void note_bytes(const char *name, const unsigned char *bytes, int count)
{
    long sum = 0;

    for (int i = 0; i < count; i++)
        sum = sum * 31 + bytes[i];
    note(name, sum);
}

SPEAKING(receive_in_pieces)
{
    unsigned char one[3], two[64] = {0}, three[5];
    struct iovec parts[] = {{three, 5}, {two, 4}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2, .msg_flags = 99};

    TRY(recv(control, one, 3, 0));
    note_bytes("one", one, 3);
    TRY(recv(control, two, 4, MSG_PEEK));
    note_bytes("two", two, 4);
    TRY(recvmsg(control, &header, 0));
    NOTE(header.msg_flags);
    NOTE(header.msg_namelen);
    note_bytes("three", three, 5);
    note_bytes("two", two, 4);
    TRY(recvfrom(control, two, sizeof two, MSG_DONTWAIT, NULL, NULL));
    TRY(recv(control, two, sizeof two, MSG_DONTWAIT));
    TRY(read(999, two, 1));
    TRY(recv(0, two, 1, 0));
}

SPEAKING(receive_with_readv)
{
    unsigned char one[3] = {0}, two[64] = {0};
    struct iovec parts[] = {{one, 3}, {two, 0}, {two, 64}};

    TRY(readv(control, parts, 3));
    note_bytes("one", one, 3);
    note_bytes("two", two, 64);
}

SPEAKING(wait_for_all)
{
    unsigned char bytes[20] = {0};

    TRY(recv(control, bytes, 20, MSG_WAITALL));
    note_bytes("bytes", bytes, 20);
}

SPEAKING(receive_frames)
{
    unsigned char frame[64] = {0};
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    struct pollfd fd = {.fd = port, .events = POLLIN};
    struct iovec part = {frame, 20};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

    TRY(recv(port, frame, 64, 0));
    TRY(poll(&fd, 1, -1));
    TRY(recv(port, frame, 10, MSG_PEEK));
    TRY(recv(port, frame, 10, MSG_PEEK | MSG_TRUNC));
    TRY(recvmsg(port, &header, MSG_PEEK));
    NOTE(header.msg_flags);
    TRY(recvfrom(port, frame, 30, 0, (struct sockaddr *) &from, &size));
    note_bytes("frame", frame, 30);
    TRY(recv(port, frame, 64, 0));
}

SPEAKING(receive_many_frames)
{
    unsigned char frames[2][100];
    struct iovec parts[] = {{frames[0], 100}, {frames[1], 100}};
    struct mmsghdr headers[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    struct pollfd fd = {.fd = port, .events = POLLIN};

    TRY(poll(&fd, 1, -1));
    TRY(recvmmsg(port, headers, 2, MSG_DONTWAIT, NULL));
    NOTE(headers[0].msg_len);
    TRY(recvmmsg(port, headers, 2, MSG_DONTWAIT, NULL));
}

SPEAKING(send_in_pieces)
{
    unsigned char message[] = {1, 3, 0, 12, 0, 0, 0, 42, 'a', 'b', 'c', 'd'};
    struct iovec parts[] = {{message + 5, 2}, {NULL, 0}, {message + 7, 2}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 3};

    TRY(write(control, message, 5));
    TRY(sendmsg(control, &header, MSG_NOSIGNAL));
    TRY(sendto(control, message + 9, 2, 0, NULL, 0));
    parts[0] = (struct iovec) {message + 11, 1};
    TRY(writev(control, parts, 1));
    TRY(write(control, message, 0));
    TRY(send(0, message, 1, 0));
    TRY(write(999, message, 1));
}

SPEAKING(send_frames)
{
    unsigned char frame[60] = "a frame";
    struct iovec parts[] = {{frame, 20}, {frame, 40}};
    struct msghdr header = {
        .msg_name = &port_peer, .msg_namelen = sizeof port_peer, .msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr many[2] = {{.msg_hdr = header}, {.msg_hdr = header}};

    TRY(sendto(port, frame, 60, MSG_DONTWAIT, (struct sockaddr *) &port_peer, sizeof port_peer));
    TRY(sendmsg(port, &header, 0));
    TRY(sendmmsg(port, many, 2, 0));
    NOTE(many[1].msg_len);
}

SPEAKING(options)
{
    int value = 77, on = 1;
    socklen_t size = sizeof value;

    TRY(getsockopt(control, SOL_SOCKET, SO_ERROR, &value, &size));
    NOTE(value);
    TRY(getsockopt(control, SOL_SOCKET, SO_TYPE, &value, &size));
    NOTE(value);
    NOTE(size);
    TRY(getsockopt(port, SOL_SOCKET, SO_TYPE, &value, &size));
    NOTE(value);
    TRY(getsockopt(port, SOL_SOCKET, SO_ACCEPTCONN, &value, &size));
    NOTE(value);
    TRY(getsockopt(999, SOL_SOCKET, SO_TYPE, &value, &size));
    TRY(setsockopt(control, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
}

SPEAKING(bytes_that_wait)
{
    struct pollfd fd = {.fd = control, .events = POLLIN};
    unsigned char byte;
    int waiting = 77;

    TRY(poll(&fd, 1, -1));
    TRY(ioctl(control, FIONREAD, &waiting));
    NOTE(waiting);
    TRY(recv(control, &byte, 1, 0));
    TRY(ioctl(control, FIONREAD, &waiting));
    NOTE(waiting);
    while (waiting--)
        recv(control, &byte, 1, 0);
    waiting = 1;
    TRY(ioctl(control, FIONBIO, &waiting));
    TRY(recv(control, &byte, 1, 0));
    TRY(fcntl(control, F_GETFL));
    TRY(fcntl(control, F_SETFL, O_RDWR));
    TRY(fcntl(control, F_GETFL));
}

SPEAKING(nobody_to_connect_to)
{
    struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/nonexistent/socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    unsigned char byte;

    NOTE(fd);
    NOTE(connect(fd, (struct sockaddr *) &nobody, sizeof nobody) < 0);
    TRY(send(fd, "a", 1, MSG_NOSIGNAL));
    NOTE(recv(fd, &byte, 1, 0) < 0);
    TRY(close(fd));
    TRY(accept(999, NULL, NULL));
}

SPEAKING(a_pair)
{
    int pair[2];
    unsigned char byte[4] = {0};
    struct pollfd fd;

    TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
    TRY(recv(pair[0], byte, 4, 0));
    TRY(send(pair[1], "abc", 3, 0));
    TRY(recv(pair[0], byte, 4, MSG_PEEK));
    TRY(recv(pair[0], byte, 2, 0));
    TRY(write(pair[0], "x", 1));
    TRY(read(pair[1], byte, 4));
    TRY(close(pair[1]));
    fd = (struct pollfd) {.fd = pair[0], .events = POLLIN};
    TRY(poll(&fd, 1, -1));
    NOTE(fd.revents & POLLIN);
    NOTE(fd.revents & POLLHUP);
    TRY(read(pair[0], byte, 4));
    TRY(read(pair[0], byte, 4));
    TRY(send(pair[0], "x", 1, MSG_NOSIGNAL));
}

SPEAKING(copies_of_the_channel)
{
    int copy = dup(control);

    TRY(close(control));
    TRY(write(copy, (unsigned char[]) {1, 3, 0, 8, 0, 0, 0, 9}, 8));
    TRY(dup2(copy, control));
    TRY(close(copy));
}

SPEAKING(close_the_channel)
{
    close(control);
    control = eventfd(0, 0);
    poll(NULL, 0, -1);
}

SPEAKING(shut_the_channel_down)
{
    TRY(shutdown(control, SHUT_WR));
    poll(NULL, 0, -1);
}
