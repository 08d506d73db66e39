/* The OpenFlow 1.0.0 wire format (wire version 0x01).
 *
 * Every structure is packed and big-endian: messages lie at arbitrary offsets in the receive
 * buffer, so nothing here may assume alignment. */
#ifndef OPENFLOW_H
#define OPENFLOW_H

#include <stdint.h>

#define OFP_PACKED __attribute__((packed))
#define OFP_VERSION 0x01
#define OFP_ETH_ALEN 6
#define OFP_MAX_PORT_NAME_LEN 16
#define OFP_NO_BUFFER UINT32_MAX
#define OFP_VLAN_NONE 0xffff
#define OFP_DL_TYPE_NOT_ETH_TYPE 0x05ff
#define OFP_DEFAULT_MISS_SEND_LEN 128
#define OFP_ERROR_QUOTE 64 /* Bytes of a failed request that an error carries back. */

enum ofp_type {
    OFPT_HELLO,
    OFPT_ERROR,
    OFPT_ECHO_REQUEST,
    OFPT_ECHO_REPLY,
    OFPT_VENDOR,
    OFPT_FEATURES_REQUEST,
    OFPT_FEATURES_REPLY,
    OFPT_GET_CONFIG_REQUEST,
    OFPT_GET_CONFIG_REPLY,
    OFPT_SET_CONFIG,
    OFPT_PACKET_IN,
    OFPT_FLOW_REMOVED,
    OFPT_PORT_STATUS,
    OFPT_PACKET_OUT,
    OFPT_FLOW_MOD,
    OFPT_PORT_MOD,
    OFPT_STATS_REQUEST,
    OFPT_STATS_REPLY,
    OFPT_BARRIER_REQUEST,
    OFPT_BARRIER_REPLY,
    OFPT_QUEUE_GET_CONFIG_REQUEST,
    OFPT_QUEUE_GET_CONFIG_REPLY
};

struct ofp_header {
    uint8_t version;
    uint8_t type;
    uint16_t length;
    uint32_t xid;
} OFP_PACKED;

/* Ports. */

enum ofp_port {
    OFPP_MAX = 0xff00,
    OFPP_IN_PORT = 0xfff8,
    OFPP_TABLE = 0xfff9,
    OFPP_NORMAL = 0xfffa,
    OFPP_FLOOD = 0xfffb,
    OFPP_ALL = 0xfffc,
    OFPP_CONTROLLER = 0xfffd,
    OFPP_LOCAL = 0xfffe,
    OFPP_NONE = 0xffff
};

enum ofp_port_config {
    OFPPC_PORT_DOWN = 1 << 0,
    OFPPC_NO_STP = 1 << 1,
    OFPPC_NO_RECV = 1 << 2,
    OFPPC_NO_RECV_STP = 1 << 3,
    OFPPC_NO_FLOOD = 1 << 4,
    OFPPC_NO_FWD = 1 << 5,
    OFPPC_NO_PACKET_IN = 1 << 6
};

enum ofp_port_state { OFPPS_LINK_DOWN = 1 << 0 };

struct ofp_phy_port {
    uint16_t port_no;
    uint8_t hw_addr[OFP_ETH_ALEN];
    char name[OFP_MAX_PORT_NAME_LEN];
    uint32_t config;
    uint32_t state;
    uint32_t curr;
    uint32_t advertised;
    uint32_t supported;
    uint32_t peer;
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

enum ofp_port_reason { OFPPR_ADD, OFPPR_DELETE, OFPPR_MODIFY };

struct ofp_port_status {
    struct ofp_header header;
    uint8_t reason;
    uint8_t pad[7];
    struct ofp_phy_port desc;
} OFP_PACKED;

/* Switch features and configuration. */

enum ofp_capabilities {
    OFPC_FLOW_STATS = 1 << 0,
    OFPC_TABLE_STATS = 1 << 1,
    OFPC_PORT_STATS = 1 << 2,
    OFPC_STP = 1 << 3,
    OFPC_IP_REASM = 1 << 5,
    OFPC_QUEUE_STATS = 1 << 6,
    OFPC_ARP_MATCH_IP = 1 << 7
};

struct ofp_switch_features {
    struct ofp_header header;
    uint64_t datapath_id;
    uint32_t n_buffers;
    uint8_t n_tables;
    uint8_t pad[3];
    uint32_t capabilities;
    uint32_t actions;
    /* struct ofp_phy_port ports[] follow. */
} OFP_PACKED;

enum ofp_config_flags { OFPC_FRAG_NORMAL, OFPC_FRAG_DROP, OFPC_FRAG_REASM, OFPC_FRAG_MASK };

struct ofp_switch_config {
    struct ofp_header header;
    uint16_t flags;
    uint16_t miss_send_len;
} OFP_PACKED;

/* Flow match. */

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
    OFPFW_NW_DST_SHIFT = 14,
    OFPFW_NW_BITS_MASK = 0x3f,
    OFPFW_DL_VLAN_PCP = 1 << 20,
    OFPFW_NW_TOS = 1 << 21,
    OFPFW_ALL = (1 << 22) - 1
};

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

/* Actions. */

enum ofp_action_type {
    OFPAT_OUTPUT,
    OFPAT_SET_VLAN_VID,
    OFPAT_SET_VLAN_PCP,
    OFPAT_STRIP_VLAN,
    OFPAT_SET_DL_SRC,
    OFPAT_SET_DL_DST,
    OFPAT_SET_NW_SRC,
    OFPAT_SET_NW_DST,
    OFPAT_SET_NW_TOS,
    OFPAT_SET_TP_SRC,
    OFPAT_SET_TP_DST,
    OFPAT_ENQUEUE,
    OFPAT_VENDOR = 0xffff
};

#define OFP_SUPPORTED_ACTIONS ((1u << (OFPAT_ENQUEUE + 1)) - 1)

struct ofp_action_header {
    uint16_t type;
    uint16_t len;
    uint8_t body[4];
} OFP_PACKED;

struct ofp_action_output {
    uint16_t type;
    uint16_t len;
    uint16_t port;
    uint16_t max_len;
} OFP_PACKED;

/* set_vlan_vid, set_tp_src and set_tp_dst. */
struct ofp_action_u16 {
    uint16_t type;
    uint16_t len;
    uint16_t value;
    uint8_t pad[2];
} OFP_PACKED;

/* set_vlan_pcp and set_nw_tos. */
struct ofp_action_u8 {
    uint16_t type;
    uint16_t len;
    uint8_t value;
    uint8_t pad[3];
} OFP_PACKED;

struct ofp_action_nw_addr {
    uint16_t type;
    uint16_t len;
    uint32_t nw_addr;
} OFP_PACKED;

struct ofp_action_dl_addr {
    uint16_t type;
    uint16_t len;
    uint8_t dl_addr[OFP_ETH_ALEN];
    uint8_t pad[6];
} OFP_PACKED;

struct ofp_action_enqueue {
    uint16_t type;
    uint16_t len;
    uint16_t port;
    uint8_t pad[6];
    uint32_t queue_id;
} OFP_PACKED;

/* Flow table changes. */

enum ofp_flow_mod_command {
    OFPFC_ADD,
    OFPFC_MODIFY,
    OFPFC_MODIFY_STRICT,
    OFPFC_DELETE,
    OFPFC_DELETE_STRICT
};

enum ofp_flow_mod_flags {
    OFPFF_SEND_FLOW_REM = 1 << 0,
    OFPFF_CHECK_OVERLAP = 1 << 1,
    OFPFF_EMERG = 1 << 2
};

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
    /* Actions follow. */
} OFP_PACKED;

enum ofp_flow_removed_reason { OFPRR_IDLE_TIMEOUT, OFPRR_HARD_TIMEOUT, OFPRR_DELETE };

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

/* Packets between switch and controller. */

enum ofp_packet_in_reason { OFPR_NO_MATCH, OFPR_ACTION };

struct ofp_packet_in {
    struct ofp_header header;
    uint32_t buffer_id;
    uint16_t total_len;
    uint16_t in_port;
    uint8_t reason;
    uint8_t pad;
    /* Frame follows. */
} OFP_PACKED;

struct ofp_packet_out {
    struct ofp_header header;
    uint32_t buffer_id;
    uint16_t in_port;
    uint16_t actions_len;
    /* Actions, then the frame, follow. */
} OFP_PACKED;

/* Queues. */

struct ofp_queue_get_config_request {
    struct ofp_header header;
    uint16_t port;
    uint8_t pad[2];
} OFP_PACKED;

struct ofp_queue_get_config_reply {
    struct ofp_header header;
    uint16_t port;
    uint8_t pad[6];
    /* struct ofp_packet_queue queues[] follow. */
} OFP_PACKED;

struct ofp_packet_queue {
    uint32_t queue_id;
    uint16_t len;
    uint8_t pad[2];
    /* Properties follow. */
} OFP_PACKED;

struct ofp_vendor_header {
    struct ofp_header header;
    uint32_t vendor;
} OFP_PACKED;

#endif
