/* Offsets of the fields that the switch reads or writes in IPv4, ARP, TCP, UDP and ICMP headers,
 * and big-endian access to them. */
#ifndef HEADERS_H
#define HEADERS_H

#include <stdint.h>
#include <string.h>

enum { ETH_DST = 0, ETH_SRC = 6, ETH_TYPE = 12 };

enum {
    IPV4_TOS = 1,
    IPV4_FRAGMENT = 6,
    IPV4_PROTOCOL = 9,
    IPV4_CHECKSUM = 10,
    IPV4_SRC = 12,
    IPV4_DST = 16,
    IPV4_HEADER_MIN = 20
};

enum { IPV4_FRAGMENT_BITS = 0x3fff }; /* More-fragments flag and offset. */
enum { IPV4_TOS_DSCP = 0xfc };        /* The six bits that OpenFlow calls the type of service. */

enum { ARP_OPERATION = 6, ARP_SENDER_IP = 14, ARP_TARGET_IP = 24, ARP_LEN = 28 };

enum { TP_SRC = 0, TP_DST = 2 };
enum { TCP_CHECKSUM = 16, TCP_HEADER_MIN = 20 };
enum { UDP_CHECKSUM = 6, UDP_HEADER_LEN = 8 };
enum { ICMP_TYPE = 0, ICMP_CODE = 1, ICMP_HEADER_LEN = 4 };

static inline uint16_t load16(const uint8_t *at) { return (uint16_t) (at[0] << 8 | at[1]); }

static inline void store16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t) (value >> 8);
    at[1] = (uint8_t) value;
}

/* An address as it lies in the packet: no byte swap. */
static inline uint32_t load_address(const uint8_t *at)
{
    uint32_t address;

    memcpy(&address, at, sizeof address);
    return address;
}

#endif
