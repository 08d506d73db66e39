/* OpenFlow 1.0 on the wire: constants and message layouts, named as in the specification.
 *
 * Every multi-byte field is big-endian.  The structs are packed because a message may start at any
 * byte of the receive buffer. */
#ifndef OPENFLOW_H
#define OPENFLOW_H

#include <stdint.h>

#define OFP_VERSION 0x01
#define OFP_ETH_ALEN 6
#define OFP_PACKED __attribute__((packed))

#define OFP_NO_BUFFER 0xffffffffu
#define OFP_VLAN_NONE 0xffff
#define OFP_DL_TYPE_NOT_ETH_TYPE 0x05ff /* dl_type of frames without an Ethernet type. */
#define OFP_DL_TYPE_ETH2_CUTOFF 0x0600
#define OFP_DEFAULT_MISS_SEND_LEN 128
#define OFPQ_ALL 0xffffffffu

enum ofp_type {
    OFPT_HELLO = 0,
    OFPT_ERROR = 1,
    OFPT_ECHO_REQUEST = 2,
    OFPT_ECHO_REPLY = 3,
    OFPT_VENDOR = 4,
    OFPT_FEATURES_REQUEST = 5,
    OFPT_FEATURES_REPLY = 6,
    OFPT_GET_CONFIG_REQUEST = 7,
    OFPT_GET_CONFIG_REPLY = 8,
    OFPT_SET_CONFIG = 9,
    OFPT_PACKET_IN = 10,
    OFPT_FLOW_REMOVED = 11,
    OFPT_PORT_STATUS = 12,
    OFPT_PACKET_OUT = 13,
    OFPT_FLOW_MOD = 14,
    OFPT_PORT_MOD = 15,
    OFPT_STATS_REQUEST = 16,
    OFPT_STATS_REPLY = 17,
    OFPT_BARRIER_REQUEST = 18,
    OFPT_BARRIER_REPLY = 19,
    OFPT_QUEUE_GET_CONFIG_REQUEST = 20,
    OFPT_QUEUE_GET_CONFIG_REPLY = 21,
};

enum ofp_port {
    OFPP_MAX = 0xff00,
    OFPP_IN_PORT = 0xfff8,
    OFPP_TABLE = 0xfff9,
    OFPP_NORMAL = 0xfffa,
    OFPP_FLOOD = 0xfffb,
    OFPP_ALL = 0xfffc,
    OFPP_CONTROLLER = 0xfffd,
    OFPP_LOCAL = 0xfffe,
    OFPP_NONE = 0xffff,
};

enum ofp_port_config {
    OFPPC_PORT_DOWN = 1 << 0,
    OFPPC_NO_STP = 1 << 1,
    OFPPC_NO_RECV = 1 << 2,
    OFPPC_NO_RECV_STP = 1 << 3,
    OFPPC_NO_FLOOD = 1 << 4,
    OFPPC_NO_FWD = 1 << 5,
    OFPPC_NO_PACKET_IN = 1 << 6,
    OFPPC_ALL = (1 << 7) - 1,
};

enum ofp_port_state {
    OFPPS_LINK_DOWN = 1 << 0,
};

enum ofp_port_reason {
    OFPPR_ADD = 0,
    OFPPR_DELETE = 1,
    OFPPR_MODIFY = 2,
};

enum ofp_capabilities {
    OFPC_FLOW_STATS = 1 << 0,
    OFPC_TABLE_STATS = 1 << 1,
    OFPC_PORT_STATS = 1 << 2,
    OFPC_STP = 1 << 3,
    OFPC_IP_REASM = 1 << 5,
    OFPC_QUEUE_STATS = 1 << 6,
    OFPC_ARP_MATCH_IP = 1 << 7,
};

enum ofp_config_flags {
    OFPC_FRAG_NORMAL = 0,
    OFPC_FRAG_DROP = 1,
    OFPC_FRAG_REASM = 2,
    OFPC_FRAG_MASK = 3,
};

enum ofp_action_type {
    OFPAT_OUTPUT = 0,
    OFPAT_SET_VLAN_VID = 1,
    OFPAT_SET_VLAN_PCP = 2,
    OFPAT_STRIP_VLAN = 3,
    OFPAT_SET_DL_SRC = 4,
    OFPAT_SET_DL_DST = 5,
    OFPAT_SET_NW_SRC = 6,
    OFPAT_SET_NW_DST = 7,
    OFPAT_SET_NW_TOS = 8,
    OFPAT_SET_TP_SRC = 9,
    OFPAT_SET_TP_DST = 10,
    OFPAT_ENQUEUE = 11,
    OFPAT_VENDOR = 0xffff,
};

enum ofp_flow_wildcards {
    OFPFW_IN_PORT = 1 << 0,
    OFPFW_DL_VLAN = 1 << 1,
    OFPFW_DL_SRC = 1 << 2,
    OFPFW_DL_DST = 1 << 3,
    OFPFW_DL_TYPE = 1 << 4,
    OFPFW_NW_PROTO = 1 << 5,
    OFPFW_TP_SRC = 1 << 6,
    OFPFW_TP_DST = 1 << 7,
    OFPFW_NW_SRC_SHIFT = 8,
    OFPFW_NW_SRC_MASK = 0x3f << OFPFW_NW_SRC_SHIFT,
    OFPFW_NW_DST_SHIFT = 14,
    OFPFW_NW_DST_MASK = 0x3f << OFPFW_NW_DST_SHIFT,
    OFPFW_DL_VLAN_PCP = 1 << 20,
    OFPFW_NW_TOS = 1 << 21,
    OFPFW_ALL = (1 << 22) - 1,
};

enum ofp_flow_mod_command {
    OFPFC_ADD = 0,
    OFPFC_MODIFY = 1,
    OFPFC_MODIFY_STRICT = 2,
    OFPFC_DELETE = 3,
    OFPFC_DELETE_STRICT = 4,
};

enum ofp_flow_mod_flags {
    OFPFF_SEND_FLOW_REM = 1 << 0,
    OFPFF_CHECK_OVERLAP = 1 << 1,
    OFPFF_EMERG = 1 << 2,
};

enum ofp_flow_removed_reason {
    OFPRR_IDLE_TIMEOUT = 0,
    OFPRR_HARD_TIMEOUT = 1,
    OFPRR_DELETE = 2,
};

enum ofp_packet_in_reason {
    OFPR_NO_MATCH = 0,
    OFPR_ACTION = 1,
};

enum ofp_stats_types {
    OFPST_DESC = 0,
    OFPST_FLOW = 1,
    OFPST_AGGREGATE = 2,
    OFPST_TABLE = 3,
    OFPST_PORT = 4,
    OFPST_QUEUE = 5,
    OFPST_VENDOR = 0xffff,
};

enum ofp_stats_reply_flags {
    OFPSF_REPLY_MORE = 1 << 0,
};

enum ofp_error_type {
    OFPET_HELLO_FAILED = 0,
    OFPET_BAD_REQUEST = 1,
    OFPET_BAD_ACTION = 2,
    OFPET_FLOW_MOD_FAILED = 3,
    OFPET_PORT_MOD_FAILED = 4,
    OFPET_QUEUE_OP_FAILED = 5,
};

enum ofp_hello_failed_code {
    OFPHFC_INCOMPATIBLE = 0,
};

enum ofp_bad_request_code {
    OFPBRC_BAD_VERSION = 0,
    OFPBRC_BAD_TYPE = 1,
    OFPBRC_BAD_STAT = 2,
    OFPBRC_BAD_VENDOR = 3,
    OFPBRC_BAD_SUBTYPE = 4,
    OFPBRC_EPERM = 5,
    OFPBRC_BAD_LEN = 6,
    OFPBRC_BUFFER_EMPTY = 7,
    OFPBRC_BUFFER_UNKNOWN = 8,
};

enum ofp_bad_action_code {
    OFPBAC_BAD_TYPE = 0,
    OFPBAC_BAD_LEN = 1,
    OFPBAC_BAD_VENDOR = 2,
    OFPBAC_BAD_VENDOR_TYPE = 3,
    OFPBAC_BAD_OUT_PORT = 4,
    OFPBAC_BAD_ARGUMENT = 5,
    OFPBAC_EPERM = 6,
    OFPBAC_TOO_MANY = 7,
    OFPBAC_BAD_QUEUE = 8,
};

enum ofp_flow_mod_failed_code {
    OFPFMFC_ALL_TABLES_FULL = 0,
    OFPFMFC_OVERLAP = 1,
    OFPFMFC_EPERM = 2,
    OFPFMFC_BAD_EMERG_TIMEOUT = 3,
    OFPFMFC_BAD_COMMAND = 4,
    OFPFMFC_UNSUPPORTED = 5,
};

enum ofp_port_mod_failed_code {
    OFPPMFC_BAD_PORT = 0,
    OFPPMFC_BAD_HW_ADDR = 1,
};

enum ofp_queue_op_failed_code {
    OFPQOFC_BAD_PORT = 0,
    OFPQOFC_BAD_QUEUE = 1,
    OFPQOFC_EPERM = 2,
};

enum ofp_queue_properties {
    OFPQT_NONE = 0,
    OFPQT_MIN_RATE = 1,
};

struct ofp_header {
    uint8_t version;
    uint8_t type;
    uint16_t length;
    uint32_t xid;
} OFP_PACKED;

struct ofp_error_msg {
    struct ofp_header header;
    uint16_t type;
    uint16_t code;
    uint8_t data[];
} OFP_PACKED;

struct ofp_switch_config {
    struct ofp_header header;
    uint16_t flags;
    uint16_t miss_send_len;
} OFP_PACKED;

struct ofp_phy_port {
    uint16_t port_no;
    uint8_t hw_addr[OFP_ETH_ALEN];
    char name[16];
    uint32_t config;
    uint32_t state;
    uint32_t curr;
    uint32_t advertised;
    uint32_t supported;
    uint32_t peer;
} OFP_PACKED;

struct ofp_switch_features {
    struct ofp_header header;
    uint64_t datapath_id;
    uint32_t n_buffers;
    uint8_t n_tables;
    uint8_t pad[3];
    uint32_t capabilities;
    uint32_t actions;
    struct ofp_phy_port ports[];
} OFP_PACKED;

struct ofp_port_status {
    struct ofp_header header;
    uint8_t reason;
    uint8_t pad[7];
    struct ofp_phy_port desc;
} OFP_PACKED;

struct ofp_port_mod {
    struct ofp_header header;
    uint16_t port_no;
    uint8_t hw_addr[OFP_ETH_ALEN];
    uint32_t config;
    uint32_t mask;
    uint32_t advertise;
    uint8_t pad[4];
} OFP_PACKED;

struct ofp_packet_in {
    struct ofp_header header;
    uint32_t buffer_id;
    uint16_t total_len;
    uint16_t in_port;
    uint8_t reason;
    uint8_t pad;
    uint8_t data[];
} OFP_PACKED;

struct ofp_action_header {
    uint16_t type;
    uint16_t len;
    uint8_t pad[4];
} OFP_PACKED;

struct ofp_action_output {
    uint16_t type;
    uint16_t len;
    uint16_t port;
    uint16_t max_len;
} OFP_PACKED;

struct ofp_action_vlan_vid {
    uint16_t type;
    uint16_t len;
    uint16_t vlan_vid;
    uint8_t pad[2];
} OFP_PACKED;

struct ofp_action_vlan_pcp {
    uint16_t type;
    uint16_t len;
    uint8_t vlan_pcp;
    uint8_t pad[3];
} OFP_PACKED;

struct ofp_action_dl_addr {
    uint16_t type;
    uint16_t len;
    uint8_t dl_addr[OFP_ETH_ALEN];
    uint8_t pad[6];
} OFP_PACKED;

struct ofp_action_nw_addr {
    uint16_t type;
    uint16_t len;
    uint32_t nw_addr;
} OFP_PACKED;

struct ofp_action_nw_tos {
    uint16_t type;
    uint16_t len;
    uint8_t nw_tos;
    uint8_t pad[3];
} OFP_PACKED;

struct ofp_action_tp_port {
    uint16_t type;
    uint16_t len;
    uint16_t tp_port;
    uint8_t pad[2];
} OFP_PACKED;

struct ofp_action_enqueue {
    uint16_t type;
    uint16_t len;
    uint16_t port;
    uint8_t pad[6];
    uint32_t queue_id;
} OFP_PACKED;

struct ofp_action_vendor_header {
    uint16_t type;
    uint16_t len;
    uint32_t vendor;
} OFP_PACKED;

struct ofp_packet_out {
    struct ofp_header header;
    uint32_t buffer_id;
    uint16_t in_port;
    uint16_t actions_len;
    uint8_t actions[]; /* Followed by the packet, if buffer_id is OFP_NO_BUFFER. */
} OFP_PACKED;

struct ofp_match {
    uint32_t wildcards;
    uint16_t in_port;
    uint8_t dl_src[OFP_ETH_ALEN];
    uint8_t dl_dst[OFP_ETH_ALEN];
    uint16_t dl_vlan;
    uint8_t dl_vlan_pcp;
    uint8_t pad1;
    uint16_t dl_type;
    uint8_t nw_tos;
    uint8_t nw_proto;
    uint8_t pad2[2];
    uint32_t nw_src;
    uint32_t nw_dst;
    uint16_t tp_src;
    uint16_t tp_dst;
} OFP_PACKED;

struct ofp_flow_mod {
    struct ofp_header header;
    struct ofp_match match;
    uint64_t cookie;
    uint16_t command;
    uint16_t idle_timeout;
    uint16_t hard_timeout;
    uint16_t priority;
    uint32_t buffer_id;
    uint16_t out_port;
    uint16_t flags;
    uint8_t actions[];
} OFP_PACKED;

struct ofp_flow_removed {
    struct ofp_header header;
    struct ofp_match match;
    uint64_t cookie;
    uint16_t priority;
    uint8_t reason;
    uint8_t pad;
    uint32_t duration_sec;
    uint32_t duration_nsec;
    uint16_t idle_timeout;
    uint8_t pad2[2];
    uint64_t packet_count;
    uint64_t byte_count;
} OFP_PACKED;

struct ofp_stats_msg { /* ofp_stats_request and ofp_stats_reply. */
    struct ofp_header header;
    uint16_t type;
    uint16_t flags;
    uint8_t body[];
} OFP_PACKED;

struct ofp_desc_stats {
    char mfr_desc[256];
    char hw_desc[256];
    char sw_desc[256];
    char serial_num[32];
    char dp_desc[256];
} OFP_PACKED;

struct ofp_flow_stats_request { /* Also the body of an aggregate request. */
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
    uint8_t actions[];
} OFP_PACKED;

struct ofp_aggregate_stats_reply {
    uint64_t packet_count;
    uint64_t byte_count;
    uint32_t flow_count;
    uint8_t pad[4];
} OFP_PACKED;

struct ofp_table_stats {
    uint8_t table_id;
    uint8_t pad[3];
    char name[32];
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

struct ofp_queue_get_config_request {
    struct ofp_header header;
    uint16_t port;
    uint8_t pad[2];
} OFP_PACKED;

struct ofp_queue_get_config_reply {
    struct ofp_header header;
    uint16_t port;
    uint8_t pad[6];
} OFP_PACKED;

struct ofp_packet_queue {
    uint32_t queue_id;
    uint16_t len;
    uint8_t pad[2];
} OFP_PACKED;

struct ofp_queue_prop_min_rate {
    uint16_t property;
    uint16_t len;
    uint8_t pad[4];
    uint16_t rate;
    uint8_t pad2[6];
} OFP_PACKED;

struct ofp_vendor_header {
    struct ofp_header header;
    uint32_t vendor;
} OFP_PACKED;

_Static_assert(sizeof(struct ofp_header) == 8, "ofp_header");
_Static_assert(sizeof(struct ofp_phy_port) == 48, "ofp_phy_port");
_Static_assert(sizeof(struct ofp_switch_features) == 32, "ofp_switch_features");
_Static_assert(sizeof(struct ofp_port_status) == 64, "ofp_port_status");
_Static_assert(sizeof(struct ofp_port_mod) == 32, "ofp_port_mod");
_Static_assert(sizeof(struct ofp_packet_in) == 18, "ofp_packet_in");
_Static_assert(sizeof(struct ofp_packet_out) == 16, "ofp_packet_out");
_Static_assert(sizeof(struct ofp_match) == 40, "ofp_match");
_Static_assert(sizeof(struct ofp_flow_mod) == 72, "ofp_flow_mod");
_Static_assert(sizeof(struct ofp_flow_removed) == 88, "ofp_flow_removed");
_Static_assert(sizeof(struct ofp_desc_stats) == 1056, "ofp_desc_stats");
_Static_assert(sizeof(struct ofp_flow_stats_request) == 44, "ofp_flow_stats_request");
_Static_assert(sizeof(struct ofp_flow_stats) == 88, "ofp_flow_stats");
_Static_assert(sizeof(struct ofp_aggregate_stats_reply) == 24, "ofp_aggregate_stats_reply");
_Static_assert(sizeof(struct ofp_table_stats) == 64, "ofp_table_stats");
_Static_assert(sizeof(struct ofp_port_stats) == 104, "ofp_port_stats");
_Static_assert(sizeof(struct ofp_queue_stats) == 32, "ofp_queue_stats");
_Static_assert(sizeof(struct ofp_queue_prop_min_rate) == 16, "ofp_queue_prop_min_rate");
_Static_assert(sizeof(struct ofp_action_enqueue) == 16, "ofp_action_enqueue");
_Static_assert(sizeof(struct ofp_action_dl_addr) == 16, "ofp_action_dl_addr");

#endif
