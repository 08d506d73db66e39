"""OpenFlow 1.0 (wire version 1): names of values, and the layout of every message and action.

Field names are the specification's. Defaults are what a scenario gets for a field that it does not mention, and what
the native runner sends for a symbolic field that is not set: a wildcarded match, no buffer, output to port 2.
"""

from __future__ import annotations

from soft.openflow.layout import (
    Actions,
    Cases,
    Data,
    Element,
    Field,
    Group,
    Layout,
    Length,
    Names,
    Pad,
    Repeat,
    Template,
)

NO_BUFFER = 0xFFFFFFFF


def _codes(prefix: str, names: str) -> Names:
    return Names(prefix, {name: code for code, name in enumerate(names.split())})


TYPES = _codes(
    "ofpt_",
    "hello error echo_request echo_reply vendor features_request features_reply get_config_request get_config_reply "
    "set_config packet_in flow_removed port_status packet_out flow_mod port_mod stats_request stats_reply "
    "barrier_request barrier_reply queue_get_config_request queue_get_config_reply",
)
PORTS = Names(
    "ofpp_",
    {
        "max": 0xFF00,
        "in_port": 0xFFF8,
        "table": 0xFFF9,
        "normal": 0xFFFA,
        "flood": 0xFFFB,
        "all": 0xFFFC,
        "controller": 0xFFFD,
        "local": 0xFFFE,
        "none": 0xFFFF,
    },
)
BUFFERS = Names("ofp_", {"none": NO_BUFFER, "no_buffer": NO_BUFFER})
VLANS = Names("ofp_vlan_", {"none": 0xFFFF})
ETHERNET_TYPES = Names("", {"ip": 0x0800, "arp": 0x0806, "vlan": 0x8100, "lldp": 0x88CC, "not_eth_type": 0x05FF})
IP_PROTOCOLS = Names("", {"icmp": 1, "tcp": 6, "udp": 17})
COMMANDS = Names("ofpfc_", {"add": 0, "modify": 1, "modify_strict": 2, "delete": 3, "delete_strict": 4})
FLOW_FLAGS = Names("ofpff_", {"send_flow_rem": 1, "check_overlap": 2, "emerg": 4}, flags=True)
CONFIG_FLAGS = Names("ofpc_", {"frag_normal": 0, "frag_drop": 1, "frag_reasm": 2, "frag_mask": 3})
PORT_CONFIG = Names(
    "ofppc_",
    {
        "port_down": 1,
        "no_stp": 2,
        "no_recv": 4,
        "no_recv_stp": 8,
        "no_flood": 16,
        "no_fwd": 32,
        "no_packet_in": 64,
    },
    flags=True,
)
STATS = Names(
    "ofpst_", {"desc": 0, "flow": 1, "aggregate": 2, "table": 3, "port": 4, "queue": 5, "vendor": 0xFFFF}
)
TABLES = Names("", {"all": 0xFF, "emergency": 0xFE})
QUEUES = Names("ofpq_", {"all": 0xFFFFFFFF})
ACTION_TYPES = Names(
    "ofpat_",
    {
        "output": 0,
        "set_vlan_vid": 1,
        "set_vlan_pcp": 2,
        "strip_vlan": 3,
        "set_dl_src": 4,
        "set_dl_dst": 5,
        "set_nw_src": 6,
        "set_nw_dst": 7,
        "set_nw_tos": 8,
        "set_tp_src": 9,
        "set_tp_dst": 10,
        "enqueue": 11,
        "vendor": 0xFFFF,
    },
)
PACKET_IN_REASONS = Names("ofpr_", {"no_match": 0, "action": 1})
REMOVED_REASONS = Names("ofprr_", {"idle_timeout": 0, "hard_timeout": 1, "delete": 2})
PORT_REASONS = Names("ofppr_", {"add": 0, "delete": 1, "modify": 2})
ERROR_TYPES = Names(
    "ofpet_",
    {
        "hello_failed": 0,
        "bad_request": 1,
        "bad_action": 2,
        "flow_mod_failed": 3,
        "port_mod_failed": 4,
        "queue_op_failed": 5,
    },
)

ERROR_CODES = {
    0: _codes("ofphfc_", "incompatible eperm"),
    1: _codes(
        "ofpbrc_",
        "bad_version bad_type bad_stat bad_vendor bad_subtype eperm bad_len buffer_empty buffer_unknown",
    ),
    2: _codes(
        "ofpbac_",
        "bad_type bad_len bad_vendor bad_vendor_type bad_out_port bad_argument eperm too_many bad_queue",
    ),
    3: _codes("ofpfmfc_", "all_tables_full overlap eperm bad_emerg_timeout bad_command unsupported"),
    4: _codes("ofppmfc_", "bad_port bad_hw_addr"),
    5: _codes("ofpqofc_", "bad_port bad_queue eperm"),
}

# From the most significant bit down, as on the wire: ten reserved bits, then the bits of OFPFW_*. 63 is what
# OFPFW_ALL has for an address; every value from 32 on wildcards it wholly.
WILDCARDS = Group(
    "wildcards",
    (
        Pad(10),
        Field("nw_tos", 1, default=1),
        Field("dl_vlan_pcp", 1, default=1),
        Field("nw_dst", 6, default=63),
        Field("nw_src", 6, default=63),
        Field("tp_dst", 1, default=1),
        Field("tp_src", 1, default=1),
        Field("nw_proto", 1, default=1),
        Field("dl_type", 1, default=1),
        Field("dl_dst", 1, default=1),
        Field("dl_src", 1, default=1),
        Field("dl_vlan", 1, default=1),
        Field("in_port", 1, default=1),
    ),
    masks=True,
)
MATCH = Group(
    "match",
    (
        WILDCARDS,
        Field("in_port", 16, names=PORTS),
        Field("dl_src", 48, "mac"),
        Field("dl_dst", 48, "mac"),
        Field("dl_vlan", 16, names=VLANS),
        Field("dl_vlan_pcp", 8),
        Pad(8),
        Field("dl_type", 16, names=ETHERNET_TYPES),
        Field("nw_tos", 8),
        Field("nw_proto", 8, names=IP_PROTOCOLS),
        Pad(16),
        Field("nw_src", 32, "ipv4"),
        Field("nw_dst", 32, "ipv4"),
        Field("tp_src", 16),
        Field("tp_dst", 16),
    ),
)
_FLOW_STATS_REQUEST = (
    MATCH,
    Field("table_id", 8, default=0xFF, names=TABLES),
    Pad(8),
    Field("out_port", 16, default=0xFFFF, names=PORTS),
)
_STATS_REQUEST = (
    Field("type", 16, names=STATS),
    Field("flags", 16),
    Cases(
        "type",
        {
            0: (),
            1: _FLOW_STATS_REQUEST,
            2: _FLOW_STATS_REQUEST,
            3: (),
            4: (Field("port_no", 16, default=0xFFFF, names=PORTS), Pad(48)),
            5: (
                Field("port_no", 16, default=0xFFFC, names=PORTS),
                Pad(16),
                Field("queue_id", 32, default=0xFFFFFFFF, names=QUEUES),
            ),
            0xFFFF: (Field("vendor", 32), Data("body")),
        },
        Data("body"),
    ),
)
_FLOW_MOD = (
    MATCH,
    Field("cookie", 64),
    Field("command", 16, names=COMMANDS),
    Field("idle_timeout", 16, "decimal"),
    Field("hard_timeout", 16, "decimal"),
    Field("priority", 16, default=0x8000),
    Field("buffer_id", 32, default=NO_BUFFER, names=BUFFERS),
    Field("out_port", 16, default=0xFFFF, names=PORTS),
    Field("flags", 16, names=FLOW_FLAGS),
    Actions("actions"),
)
_PACKET_OUT = (
    Field("buffer_id", 32, default=NO_BUFFER, names=BUFFERS),
    Field("in_port", 16, default=0xFFFF, names=PORTS),
    Length("actions_len", 16, of="actions"),
    Actions("actions"),
    Data("data"),
)
_PORT_MOD = (
    Field("port_no", 16, default=1, names=PORTS),
    Field("hw_addr", 48, "mac", default=0x020000000001),
    Field("config", 32, names=PORT_CONFIG),
    Field("mask", 32, names=PORT_CONFIG),
    Field("advertise", 32),
    Pad(32),
)
_CONFIG = (Field("flags", 16, names=CONFIG_FLAGS), Field("miss_send_len", 16, default=128))
_ERROR = (Field("type", 16, names=ERROR_TYPES), Field("code", 16), Data("data"))

_PORT = (
    Field("port_no", 16, names=PORTS),
    Field("hw_addr", 48, "mac"),
    Field("name", 128, "bytes"),
    Field("config", 32, names=PORT_CONFIG),
    Field("state", 32),
    Field("curr", 32),
    Field("advertised", 32),
    Field("supported", 32),
    Field("peer", 32),
)
_FLOW_STATS = (
    Field("length", 16),
    Field("table_id", 8),
    Pad(8),
    MATCH,
    Field("duration_sec", 32),
    Field("duration_nsec", 32),
    Field("priority", 16),
    Field("idle_timeout", 16, "decimal"),
    Field("hard_timeout", 16, "decimal"),
    Pad(48),
    Field("cookie", 64),
    Field("packet_count", 64),
    Field("byte_count", 64),
    Actions("actions"),
)


def _counters(names: str) -> tuple[Field, ...]:
    return tuple(Field(name, 64) for name in names.split())


_STATS_REPLY: dict[int, tuple[Element, ...]] = {
    0: (
        Field("mfr_desc", 2048, "bytes"),
        Field("hw_desc", 2048, "bytes"),
        Field("sw_desc", 2048, "bytes"),
        Field("serial_num", 256, "bytes"),
        Field("dp_desc", 2048, "bytes"),
    ),
    1: (Repeat("flows", _FLOW_STATS, 88, own_length=True),),
    2: (Field("packet_count", 64), Field("byte_count", 64), Field("flow_count", 32), Pad(32)),
    3: (
        Repeat(
            "tables",
            (
                Field("table_id", 8),
                Pad(24),
                Field("name", 256, "bytes"),
                Field("wildcards", 32),
                Field("max_entries", 32),
                Field("active_count", 32),
                Field("lookup_count", 64),
                Field("matched_count", 64),
            ),
            64,
        ),
    ),
    4: (
        Repeat(
            "ports",
            (
                Field("port_no", 16, names=PORTS),
                Pad(48),
                *_counters(
                    "rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors tx_errors "
                    "rx_frame_err rx_over_err rx_crc_err collisions"
                ),
            ),
            104,
        ),
    ),
    5: (
        Repeat(
            "queues",
            (
                Field("port_no", 16, names=PORTS),
                Pad(16),
                Field("queue_id", 32),
                Field("tx_bytes", 64),
                Field("tx_packets", 64),
                Field("tx_errors", 64),
            ),
            32,
        ),
    ),
    # Of a later version; Open vSwitch answers it in this one too.
    13: (Repeat("ports", _PORT, 48),),
}
_FLOW_REMOVED = (
    MATCH,
    Field("cookie", 64),
    Field("priority", 16),
    Field("reason", 8, names=REMOVED_REASONS),
    Pad(8),
    Field("duration_sec", 32),
    Field("duration_nsec", 32),
    Field("idle_timeout", 16, "decimal"),
    Pad(16),
    Field("packet_count", 64),
    Field("byte_count", 64),
)
_FEATURES_REPLY = (
    Field("datapath_id", 64),
    Field("n_buffers", 32),
    Field("n_tables", 8),
    Pad(24),
    Field("capabilities", 32),
    Field("actions", 32),
    Repeat("ports", _PORT, 48),
)
_PACKET_IN = (
    Field("buffer_id", 32, names=BUFFERS),
    Field("total_len", 16),
    Field("in_port", 16, names=PORTS),
    Field("reason", 8, names=PACKET_IN_REASONS),
    Pad(8),
    Data("data"),
)


def _templates(**elements: tuple[Element, ...]) -> dict[str, Template]:
    return {name: Template(name, TYPES.values[name], fields) for name, fields in elements.items()}


MESSAGES = _templates(
    hello=(Data("body"),),
    error=_ERROR,
    echo_request=(Data("data"),),
    echo_reply=(Data("data"),),
    vendor=(Field("vendor", 32), Data("body")),
    features_request=(),
    get_config_request=(),
    set_config=_CONFIG,
    packet_out=_PACKET_OUT,
    flow_mod=_FLOW_MOD,
    port_mod=_PORT_MOD,
    stats_request=_STATS_REQUEST,
    barrier_request=(),
    queue_get_config_request=(Field("port", 16, default=1, names=PORTS), Pad(16)),
)
REPLIES = {
    template.code: template
    for template in _templates(
        hello=(Data("body"),),
        error=_ERROR,
        echo_request=(Data("data"),),
        echo_reply=(Data("data"),),
        vendor=(Field("vendor", 32), Data("body")),
        features_reply=_FEATURES_REPLY,
        get_config_reply=_CONFIG,
        packet_in=_PACKET_IN,
        flow_removed=_FLOW_REMOVED,
        port_status=(Field("reason", 8, names=PORT_REASONS), Pad(56), *_PORT),
        stats_reply=(
            Field("type", 16, names=STATS),
            Field("flags", 16),
            Cases("type", _STATS_REPLY, Data("body")),
        ),
        barrier_reply=(),
        queue_get_config_reply=(Field("port", 16, names=PORTS), Pad(48), Data("queues")),
    ).values()
}


def _actions(**elements: tuple[Element, ...]) -> dict[str, Template]:
    return {name: Template(name, ACTION_TYPES.values[name], fields) for name, fields in elements.items()}


ACTIONS = _actions(
    output=(Field("port", 16, default=2, names=PORTS), Field("max_len", 16, default=0xFFFF)),
    set_vlan_vid=(Field("vlan_vid", 16), Pad(16)),
    set_vlan_pcp=(Field("vlan_pcp", 8), Pad(24)),
    strip_vlan=(Pad(32),),
    set_dl_src=(Field("dl_addr", 48, "mac"), Pad(48)),
    set_dl_dst=(Field("dl_addr", 48, "mac"), Pad(48)),
    set_nw_src=(Field("nw_addr", 32, "ipv4"),),
    set_nw_dst=(Field("nw_addr", 32, "ipv4"),),
    set_nw_tos=(Field("nw_tos", 8), Pad(24)),
    set_tp_src=(Field("tp_port", 16), Pad(16)),
    set_tp_dst=(Field("tp_port", 16), Pad(16)),
    enqueue=(Field("port", 16, default=2, names=PORTS), Pad(48), Field("queue_id", 32)),
    vendor=(Field("vendor", 32), Data("body")),
)

OPENFLOW10 = Layout("1.0", 1, TYPES, MESSAGES, ACTIONS, ACTION_TYPES, REPLIES)
