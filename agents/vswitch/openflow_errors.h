/* OpenFlow 1.0.0 error types and codes, and how the switch's functions report them. */
#ifndef OPENFLOW_ERRORS_H
#define OPENFLOW_ERRORS_H

#include "openflow.h"

enum ofp_error_type {
    OFPET_HELLO_FAILED,
    OFPET_BAD_REQUEST,
    OFPET_BAD_ACTION,
    OFPET_FLOW_MOD_FAILED,
    OFPET_PORT_MOD_FAILED,
    OFPET_QUEUE_OP_FAILED
};

enum ofp_hello_failed_code { OFPHFC_INCOMPATIBLE, OFPHFC_EPERM };

enum ofp_bad_request_code {
    OFPBRC_BAD_VERSION,
    OFPBRC_BAD_TYPE,
    OFPBRC_BAD_STAT,
    OFPBRC_BAD_VENDOR,
    OFPBRC_BAD_SUBTYPE,
    OFPBRC_EPERM,
    OFPBRC_BAD_LEN,
    OFPBRC_BUFFER_EMPTY,
    OFPBRC_BUFFER_UNKNOWN
};

enum ofp_bad_action_code {
    OFPBAC_BAD_TYPE,
    OFPBAC_BAD_LEN,
    OFPBAC_BAD_VENDOR,
    OFPBAC_BAD_VENDOR_TYPE,
    OFPBAC_BAD_OUT_PORT,
    OFPBAC_BAD_ARGUMENT,
    OFPBAC_EPERM,
    OFPBAC_TOO_MANY,
    OFPBAC_BAD_QUEUE
};

enum ofp_flow_mod_failed_code {
    OFPFMFC_ALL_TABLES_FULL,
    OFPFMFC_OVERLAP,
    OFPFMFC_EPERM,
    OFPFMFC_BAD_EMERG_TIMEOUT,
    OFPFMFC_BAD_COMMAND,
    OFPFMFC_UNSUPPORTED
};

enum ofp_port_mod_failed_code { OFPPMFC_BAD_PORT, OFPPMFC_BAD_HW_ADDR };

enum ofp_queue_op_failed_code { OFPQOFC_BAD_PORT, OFPQOFC_BAD_QUEUE, OFPQOFC_EPERM };

struct ofp_error_msg {
    struct ofp_header header;
    uint16_t type;
    uint16_t code;
    /* The beginning of the failed request follows. */
} OFP_PACKED;

/* What became of a request: OF_OK, OF_DISCARD (invalid, to be dropped without a word), or an
 * error to send back. An error has the top bit set, because type 0 code 0 is a real error. */
typedef uint32_t of_result;

#define OF_OK ((of_result) 0)
#define OF_DISCARD ((of_result) 1)
#define OF_ERROR(type, code) \
    ((of_result) (0x80000000u | (uint32_t) (type) << 16 | (uint32_t) (code)))

static inline int of_is_error(of_result result) { return (result & 0x80000000u) != 0; }
static inline uint16_t of_error_type(of_result result) { return result >> 16 & 0x7fff; }
static inline uint16_t of_error_code(of_result result) { return result & 0xffff; }

#endif
