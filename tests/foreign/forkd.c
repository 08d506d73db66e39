/* forkd: goes into the background like a daemon of old (two forks, a session, a pid file), is linked statically, reads
 * AF_PACKET sockets with recvmsg and the tag on the side, and calls syslog, which connects when it is first needed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

struct chan { int fd; unsigned have; unsigned char buf[65536 + 8]; } con = { -1 };
struct { int fd, up; char name[16]; } eth[16];
int n_eth;

static void background(const char *pidfile)
{
    char line[32];
    int fd, null;
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    umask(027);
    null = open("/dev/null", O_RDWR);
    dup2(null, 0); dup2(null, 1); dup2(null, 2);
    if (null > 2) close(null);
    fd = open(pidfile, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (lockf(fd, F_TLOCK, 0) < 0) _exit(1);
    sprintf(line, "%d\n", getpid());
    write(fd, line, strlen(line)); /* stays open: the lock is the proof of life */
}

static void out(int type, unsigned xid, struct iovec *v, int n)
{
    struct { unsigned char version, type; unsigned short len; unsigned xid; } h = { 1, type, 8, xid };
    struct iovec all[4] = { { &h, 8 } };
    int i, len = 8;
    for (i = 0; i < n; i++) { all[i + 1] = v[i]; len += v[i].iov_len; }
    h.len = htons(len);
    if (writev(con.fd, all, n + 1) != len) syslog(LOG_ERR, "short write of %d: %m", len);
}

static void err(unsigned xid, int type, int code, unsigned char *m, int len)
{
    unsigned short e[2] = { htons(type), htons(code) };
    struct iovec v[2] = { { e, 4 }, { m, len > 64 ? 64 : len } };
    syslog(LOG_WARNING, "xid %#x: sending error %d/%d about %d bytes", ntohl(xid), type, code, len);
    out(1, xid, v, 2);
}

static int emit(int no, unsigned char *p, int len)
{
    struct iovec v = { p, len };
    struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
    if (no < 1 || no > n_eth) return -1;
    return sendmsg(eth[no - 1].fd, &mh, MSG_DONTWAIT);
}

static void take(unsigned char *m, unsigned len)
{
    unsigned xid, i, alen, to;
    unsigned char f[24 + 16 * 48] = { 0 };
    struct iovec v = { f, 24 + 48 * n_eth };
    memcpy(&xid, m + 4, 4);
    if (m[0] != 1) { err(xid, 1, 0, m, len); return; }
    switch (m[1]) {
    case 0: case 9: break;
    case 2: v.iov_base = m + 8; v.iov_len = len - 8; out(3, xid, &v, 1); break;
    case 5:
        f[7] = 2; f[11] = 1; f[12] = 1;
        for (i = 0; i < n_eth; i++) { f[25 + 48 * i] = i + 1; strncpy(f + 32 + 48 * i, eth[i].name, 15); }
        out(6, xid, &v, 1);
        break;
    case 13:
        alen = m[14] << 8 | m[15];
        if (alen % 8 || 16 + alen > len) { err(xid, 1, 6, m, len); break; }
        for (i = 0; i < alen; i += 8) {
            if (m[16 + i] | m[17 + i]) { err(xid, 2, 0, m, len); return; }
            to = m[20 + i] << 8 | m[21 + i];
            if (to == 0xfffb || to == 0xfffc) {
                unsigned p;
                for (p = 1; p <= n_eth; p++)
                    if (p != (m[12] << 8 | m[13])) emit(p, m + 16 + alen, len - 16 - alen);
            } else if (emit(to, m + 16 + alen, len - 16 - alen) < 0) { err(xid, 2, 4, m, len); return; }
        }
        break;
    case 18: out(19, xid, NULL, 0); break;
    default: err(xid, 1, 1, m, len);
    }
}

static void frame_in(int i)
{
    unsigned char p[2048], b[10] = { 255, 255, 255, 255 }, side[256];
    struct sockaddr_ll from;
    struct iovec v[2] = { { p, sizeof p } };
    struct msghdr mh = { &from, sizeof from, v, 1, side, sizeof side, 0 };
    struct cmsghdr *c;
    int len = recvmsg(eth[i].fd, &mh, MSG_TRUNC);
    if (len <= 0 || from.sll_pkttype == PACKET_OUTGOING || con.fd < 0) return;
    for (c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
            struct tpacket_auxdata *aux = (void *) CMSG_DATA(c);
            if (aux->tp_len != len) syslog(LOG_DEBUG, "%s: cut to %d", eth[i].name, len);
            if (aux->tp_status & TP_STATUS_VLAN_VALID) {
                memmove(p + 16, p + 12, len - 12);
                p[12] = 0x81; p[13] = 0; p[14] = aux->tp_vlan_tci >> 8; p[15] = aux->tp_vlan_tci;
                len += 4;
            }
        }
    syslog(LOG_DEBUG, "%s: %d bytes from %02x:%02x:%02x", eth[i].name, len, p[6], p[7], p[8]);
    b[4] = len >> 8; b[5] = len; b[7] = i + 1;
    v[0].iov_base = b; v[0].iov_len = 10; v[1].iov_base = p; v[1].iov_len = len;
    out(10, 0, v, 2);
}

int main(int argc, char **argv)
{
    struct sockaddr_in in = { AF_INET };
    int i, one = 1;
    background(argv[1]);
    openlog("forkd", LOG_PID, LOG_DAEMON);
    signal(SIGPIPE, SIG_IGN);
    for (i = 3; i < argc; i++, n_eth++) {
        struct ifreq r = { 0 };
        struct sockaddr_ll ll = { AF_PACKET, htons(ETH_P_ALL) };
        eth[n_eth].fd = socket(PF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
        strncpy(r.ifr_name, argv[i], 15);
        strcpy(eth[n_eth].name, r.ifr_name);
        ioctl(eth[n_eth].fd, SIOCGIFINDEX, &r);
        ll.sll_ifindex = r.ifr_ifindex;
        bind(eth[n_eth].fd, (void *) &ll, sizeof ll);
        setsockopt(eth[n_eth].fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one);
    }
    in.sin_port = htons(atoi(strchr(argv[2], ':') + 1));
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (;;) {
        struct pollfd p[17];
        int n = 0;
        if (con.fd < 0) {
            con.fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(con.fd, (void *) &in, sizeof in)) { close(con.fd); con.fd = -1; usleep(50000); continue; }
            con.have = 0;
            out(0, htonl(1), NULL, 0);
        }
        for (; n < n_eth; n++) { p[n].fd = eth[n].fd; p[n].events = POLLIN | POLLERR; }
        p[n].fd = con.fd; p[n].events = POLLIN;
        if (poll(p, n + 1, 1000) <= 0) continue;
        for (i = 0; i < n; i++) if (p[i].revents & POLLIN) frame_in(i);
        if (p[n].revents) {
            int got = read(con.fd, con.buf + con.have, sizeof con.buf - con.have);
            unsigned at = 0, len;
            if (got <= 0) { close(con.fd); con.fd = -1; continue; }
            con.have += got;
            while (con.have - at >= 8 && (len = con.buf[at + 2] << 8 | con.buf[at + 3]) <= con.have - at) {
                if (len < 8) { close(con.fd); con.fd = -1; break; }
                take(con.buf + at, len);
                at += len;
            }
            memmove(con.buf, con.buf + at, con.have -= at);
        }
    }
}
