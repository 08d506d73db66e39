"""The paper's own figures, quoted from M. Kuzniar et al., "A SOFT Way for OpenFlow Switch Interoperability Testing",
CoNEXT 2012: Tables 2 to 5."""

from __future__ import annotations

from typing import NamedTuple


class Explored(NamedTuple):
    """A row of Table 2 for one agent: CPU time, paths, size of path conditions."""

    time: str
    paths: str
    average: str
    largest: str


class Compared(NamedTuple):
    """A row of Table 3: distinct outputs of either switch, time to check them, inconsistencies."""

    reference: str
    open_vswitch: str
    time: str
    inconsistencies: str


class Variant(NamedTuple):
    """A row of Table 5."""

    time: str
    paths: str
    coverage: str


TABLE_2_REFERENCE = {
    "packet_out": Explored("14 s", "49", "71.57", "96"),
    "stats_request": Explored("44 s", "218", "53.10", "65"),
    "set_config": Explored("446 s", "207", "76.89", "112"),
    "eth_flow_mod": Explored("40 m", "7680", "101.12", "132"),
    "flow_mod": Explored("373 m", "87828", "109.77", "161"),
    "cs_flow_mods": Explored("69 m", "29179", "96.63", "136"),
    "concrete": Explored("6 s", "1", "0", "0"),
    "short_symb": Explored("50 s", "31", "27.9", "69"),
}

TABLE_2_OPEN_VSWITCH = {
    "packet_out": Explored("44 s", "241", "63.48", "79"),
    "stats_request": Explored("186 s", "136", "52.63", "67"),
    "set_config": Explored("569 s", "207", "80.97", "116"),
    "eth_flow_mod": Explored("198 m", "27682", "98.56", "127"),
    "flow_mod": Explored("60 h", "181620", "123.28", "159"),
    "cs_flow_mods": Explored("36 h", "462488", "115.22", "173"),
    "concrete": Explored("8 s", "1", "0", "0"),
    "short_symb": Explored("12 s", "14", "27.5", "50"),
}

TABLE_3 = {
    "packet_out": Compared("6", "10", "26 s", "14"),
    "stats_request": Compared("8", "9", "10 s", "7"),
    "set_config": Compared("69", "69", "236 s", "0"),
    "eth_flow_mod": Compared("12", "31", "23 m", "58"),
    "cs_flow_mods": Compared("4", "6", "> 28 h", "≥ 8"),
    "short_symb": Compared("9", "7", "6 s", "4"),
}

# Instruction coverage in percent, Reference Switch and Open vSwitch. Start-up alone ("No Message") is 12.21 and 19.03.
TABLE_4 = {
    "packet_out": ("26.23", "25.68"),
    "stats_request": ("30.27", "24.31"),
    "set_config": ("26.23", "23.98"),
    "eth_flow_mod": ("41.74", "38.15"),
    "flow_mod": ("42.65", "38.24"),
    "concrete": ("17.13", "20.16"),
    "short_symb": ("19.92", "21.60"),
}

TABLE_5 = {
    "fully_symbolic": Variant("31 h", "226224", "42.93"),
    "concrete_match": Variant("12 m", "2634", "40.60"),
    "concrete_action": Variant("193 m", "30396", "37.32"),
    "concrete_probe": Variant("48 m", "9216", "41.6"),
    "symbolic_probe": Variant("172 m", "33168", "43.9"),
}

# Section 5.1.1: changes injected into the Reference Switch, and how many of them the paper found.
INJECTED, FOUND = 7, 5
