/* Packet headers as they are on the wire, big-endian. */
#ifndef HEADERS_H
#define HEADERS_H

#include <stdint.h>

#define ETH_ADDRESS_LENGTH 6
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_VLAN 0x8100

#define IP_PROTOCOL_ICMP 1
#define IP_PROTOCOL_TCP 6
#define IP_PROTOCOL_UDP 17

#define VLAN_VID_MASK 0x0fff
#define VLAN_PCP_MASK 0xe000
#define VLAN_PCP_SHIFT 13
#define IP_DSCP_MASK 0xfc
#define IP_FRAGMENT_MASK 0x3fff /* "More fragments", and the offset. */

struct eth_header {
    uint8_t dst[ETH_ADDRESS_LENGTH];
    uint8_t src[ETH_ADDRESS_LENGTH];
    uint16_t type;
} __attribute__((packed));

struct llc_snap_header { /* Behind an Ethernet header whose type is a length. */
    uint8_t dsap;
    uint8_t ssap;
    uint8_t control;
    uint8_t oui[3];
    uint16_t type;
} __attribute__((packed));

struct vlan_header { /* Behind an Ethernet header of type ETHERTYPE_VLAN. */
    uint16_t tci;
    uint16_t type;
} __attribute__((packed));

struct arp_header { /* For IPv4 over Ethernet. */
    uint16_t hardware;
    uint16_t protocol;
    uint8_t hardware_length;
    uint8_t protocol_length;
    uint16_t operation;
    uint8_t sender_hardware[ETH_ADDRESS_LENGTH];
    uint32_t sender_protocol;
    uint8_t target_hardware[ETH_ADDRESS_LENGTH];
    uint32_t target_protocol;
} __attribute__((packed));

struct ip_header {
    uint8_t version_ihl;
    uint8_t tos;
    uint16_t total_length;
    uint16_t id;
    uint16_t fragment;
    uint8_t ttl;
    uint8_t protocol;
    uint16_t checksum;
    uint32_t src;
    uint32_t dst;
} __attribute__((packed));

struct tcp_header {
    uint16_t src;
    uint16_t dst;
    uint32_t sequence;
    uint32_t acknowledgement;
    uint16_t flags;
    uint16_t window;
    uint16_t checksum;
    uint16_t urgent;
} __attribute__((packed));

struct udp_header {
    uint16_t src;
    uint16_t dst;
    uint16_t length;
    uint16_t checksum;
} __attribute__((packed));

struct icmp_header {
    uint8_t type;
    uint8_t code;
    uint16_t checksum;
} __attribute__((packed));

#endif
