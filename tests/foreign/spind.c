// spind: reads tap devices, never sleeps, and is written as if every cycle counted.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 2048 };
static int taps[8], count, fd;
static struct { uint8_t bytes[BATCH]; unsigned fill; } box;

static uint16_t be16(const void *p) { uint16_t v; memcpy(&v, p, 2); return ntohs(v); }

static void push(const void *p, size_t n) { while (n) { ssize_t k = write(fd, p, n); if (k > 0) { p = (char *) p + k; n -= k; } } }

static void respond(uint8_t *m, uint8_t type, unsigned size)
{
    m[1] = type; m[2] = size >> 8; m[3] = size;
    push(m, size);
}

static bool one(void)
{
    uint8_t *m = box.bytes, scratch[512] = { 0 };
    unsigned size;
    if (box.fill < 8 || box.fill < (size = be16(m + 2)) || size < 8) return false;
    memcpy(scratch, m, 8);
    switch (m[1]) {
    case 0: case 9: break;
    case 2: respond(m, 3, size); break;
    case 5:
        for (int i = 0; i < count; i++) { scratch[33 + 48 * i] = i + 1; memcpy(scratch + 40 + 48 * i, "port", 4); scratch[44 + 48 * i] = '1' + i; }
        respond(scratch, 6, 32 + 48 * count);
        break;
    case 13: {
        unsigned end = 16 + be16(m + 14);
        bool good = end <= size;
        for (unsigned a = 16; good && a < end; a += 8) good = be16(m + a) == 0 && be16(m + a + 2) == 8 && be16(m + a + 4) - 1u < (unsigned) count;
        if (!good) { scratch[9] = 2; respond(scratch, 1, 12); break; }
        for (unsigned a = 16; a < end; a += 8) if (write(taps[be16(m + a + 4) - 1], m + end, size - end) < 0) exit(2);
        break;
    }
    case 18: respond(scratch, 19, 8); break;
    default: scratch[9] = scratch[11] = 1; respond(scratch, 1, 12);
    }
    memmove(m, m + size, box.fill -= size);
    return true;
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(0x7f000001) };
    for (int i = 2; i < argc; i++) {
        struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI };
        strcpy(r.ifr_name, argv[i]);
        taps[count] = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
        if (ioctl(taps[count++], TUNSETIFF, &r)) return 1;
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *) &to, sizeof to)) return 1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    push("\1\0\0\10\0\0\0\1", 8);
    for (;;) {
        ssize_t k = read(fd, box.bytes + box.fill, BATCH - box.fill);
        if (k == 0) return 0;
        if (k > 0) box.fill += k;
        while (one()) ;
        for (int i = 0; i < count; i++) {
            uint8_t m[18 + 1600] = { 1, 10, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255 };
            k = read(taps[i], m + 18, 1600);
            if (k <= 0) continue;
            m[12] = k >> 8; m[13] = k; m[15] = i + 1;
            respond(m, 10, k + 18);
        }
    }
}
