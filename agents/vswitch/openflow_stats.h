/* The OpenFlow 1.0.0 wire format, continued: statistics. */
#ifndef OPENFLOW_STATS_H
#define OPENFLOW_STATS_H

#include "openflow.h"

#define OFP_DESC_STR_LEN 256
#define OFP_SERIAL_NUM_LEN 32
#define OFP_MAX_TABLE_NAME_LEN 32
#define OFPQ_ALL UINT32_MAX
#define OFP_TABLE_ALL 0xff
#define OFP_TABLE_EMERGENCY 0xfe

enum ofp_stats_type {
    OFPST_DESC,
    OFPST_FLOW,
    OFPST_AGGREGATE,
    OFPST_TABLE,
    OFPST_PORT,
    OFPST_QUEUE,
    OFPST_VENDOR = 0xffff
};

enum ofp_stats_reply_flags { OFPSF_REPLY_MORE = 1 << 0 };

/* Requests and replies begin alike. */
struct ofp_stats_header {
    struct ofp_header header;
    uint16_t type;
    uint16_t flags;
} OFP_PACKED;

struct ofp_desc_stats {
    char mfr_desc[OFP_DESC_STR_LEN];
    char hw_desc[OFP_DESC_STR_LEN];
    char sw_desc[OFP_DESC_STR_LEN];
    char serial_num[OFP_SERIAL_NUM_LEN];
    char dp_desc[OFP_DESC_STR_LEN];
} OFP_PACKED;

/* The body of both flow and aggregate requests. */
struct ofp_flow_stats_request {
    struct ofp_match match;
    uint8_t table_id;
    uint8_t pad;
    uint16_t out_port;
} OFP_PACKED;

struct ofp_flow_stats {
    uint16_t length;
    uint8_t table_id;
    uint8_t pad;
    struct ofp_match match;
    uint32_t duration_sec;
    uint32_t duration_nsec;
    uint16_t priority;
    uint16_t idle_timeout;
    uint16_t hard_timeout;
    uint8_t pad2[6];
    uint64_t cookie;
    uint64_t packet_count;
    uint64_t byte_count;
    /* Actions follow. */
} OFP_PACKED;

struct ofp_aggregate_stats {
    uint64_t packet_count;
    uint64_t byte_count;
    uint32_t flow_count;
    uint8_t pad[4];
} OFP_PACKED;

struct ofp_table_stats {
    uint8_t table_id;
    uint8_t pad[3];
    char name[OFP_MAX_TABLE_NAME_LEN];
    uint32_t wildcards;
    uint32_t max_entries;
    uint32_t active_count;
    uint64_t lookup_count;
    uint64_t matched_count;
} OFP_PACKED;

struct ofp_port_stats_request {
    uint16_t port_no;
    uint8_t pad[6];
} OFP_PACKED;

struct ofp_port_stats {
    uint16_t port_no;
    uint8_t pad[6];
    uint64_t rx_packets;
    uint64_t tx_packets;
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    uint64_t rx_dropped;
    uint64_t tx_dropped;
    uint64_t rx_errors;
    uint64_t tx_errors;
    uint64_t rx_frame_err;
    uint64_t rx_over_err;
    uint64_t rx_crc_err;
    uint64_t collisions;
} OFP_PACKED;

struct ofp_queue_stats_request {
    uint16_t port_no;
    uint8_t pad[2];
    uint32_t queue_id;
} OFP_PACKED;

struct ofp_queue_stats {
    uint16_t port_no;
    uint8_t pad[2];
    uint32_t queue_id;
    uint64_t tx_bytes;
    uint64_t tx_packets;
    uint64_t tx_errors;
} OFP_PACKED;

_Static_assert(sizeof(struct ofp_match) == 40, "ofp_match");
_Static_assert(sizeof(struct ofp_flow_mod) == 72, "ofp_flow_mod");
_Static_assert(sizeof(struct ofp_phy_port) == 48, "ofp_phy_port");
_Static_assert(sizeof(struct ofp_switch_features) == 32, "ofp_switch_features");
_Static_assert(sizeof(struct ofp_port_mod) == 32, "ofp_port_mod");
_Static_assert(sizeof(struct ofp_port_status) == 64, "ofp_port_status");
_Static_assert(sizeof(struct ofp_packet_in) == 18, "ofp_packet_in");
_Static_assert(sizeof(struct ofp_packet_out) == 16, "ofp_packet_out");
_Static_assert(sizeof(struct ofp_flow_removed) == 88, "ofp_flow_removed");
_Static_assert(sizeof(struct ofp_flow_stats_request) == 44, "ofp_flow_stats_request");
_Static_assert(sizeof(struct ofp_flow_stats) == 88, "ofp_flow_stats");
_Static_assert(sizeof(struct ofp_desc_stats) == 1056, "ofp_desc_stats");
_Static_assert(sizeof(struct ofp_table_stats) == 64, "ofp_table_stats");
_Static_assert(sizeof(struct ofp_port_stats) == 104, "ofp_port_stats");
_Static_assert(sizeof(struct ofp_queue_stats) == 32, "ofp_queue_stats");

#endif
