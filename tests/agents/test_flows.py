"""Both switches as the specification wants them: the flow table, timeouts, and what actions do to a packet."""

from __future__ import annotations

import struct
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, LLC, SNAP, Dot1Q, Dot3, Ether
from scapy.packet import Packet, Raw

from tests.agents.lab import (
    ADD,
    ALL,
    ALL_WILDCARDS,
    BAD_COMMAND,
    CHECK_OVERLAP,
    CONTROLLER,
    DELETE,
    DELETE_STRICT,
    FLOW_REMOVED,
    MODIFY,
    MODIFY_STRICT,
    OVERLAP,
    PACKET_IN,
    SEND_FLOW_REM,
    SET_CONFIG,
    Controller,
    Lab,
    Message,
    flow_mod,
    match,
    output,
    set_dl_dst,
    set_dl_src,
    set_nw_dst,
    set_nw_src,
    set_nw_tos,
    set_tp_dst,
    set_tp_src,
    set_vlan_pcp,
    set_vlan_vid,
    strip_vlan,
)

ETHER = Ether(dst="02:00:00:00:00:bb", src="02:00:00:00:00:aa")
ADDRESSES = IP(src="10.0.0.1", dst="10.0.0.2", tos=0x28)
TCP_FRAME = bytes(ETHER / ADDRESSES / TCP(sport=1000, dport=80) / Raw(b"payload"))
IDLE_TIMEOUT, HARD_TIMEOUT, DELETED = range(3)


def address(text: str) -> int:
    return int.from_bytes(bytes(int(part) for part in text.split(".")), "big")


def outcome(lab: Lab, controller: Controller, frame: bytes = TCP_FRAME, port: int = 1) -> list[int]:
    """Ports from which the probe leaves; the controller is one."""
    lab.ports[port].send(frame)
    to_controller = [CONTROLLER for message in controller.settle() if message.type == PACKET_IN]
    return [*lab.received(), *to_controller]


def priorities(controller: Controller) -> list[int]:
    return sorted(struct.unpack_from("!H", entry, 52)[0] for entry in controller.flows())


class TestMatching:
    @pytest.mark.parametrize(
        ("frame", "fields"),
        [
            (TCP_FRAME, {"in_port": 1}),
            (TCP_FRAME, {"dl_src": b"\x02\0\0\0\0\xaa"}),
            (TCP_FRAME, {"dl_dst": b"\x02\0\0\0\0\xbb"}),
            (TCP_FRAME, {"dl_vlan": 0xFFFF}),
            (TCP_FRAME, {"dl_type": 0x0800, "nw_tos": 0x28}),
            (TCP_FRAME, {"dl_type": 0x0800, "nw_proto": 6, "tp_src": 1000, "tp_dst": 80}),
            (TCP_FRAME, {"dl_type": 0x0800, "nw_src": 0x0A000001, "nw_dst": 0x0A000002}),
            (bytes(ETHER / Dot1Q(vlan=7, prio=5) / ADDRESSES), {"dl_vlan": 7, "dl_vlan_pcp": 5, "dl_type": 0x0800}),
            (bytes(ETHER / ADDRESSES / UDP(sport=53, dport=54)), {"dl_type": 0x0800, "nw_proto": 17, "tp_dst": 54}),
            (bytes(ETHER / ADDRESSES / ICMP(type=8, code=3)),
             {"dl_type": 0x0800, "nw_proto": 1, "tp_src": 8, "tp_dst": 3}),
            (bytes(ETHER / ARP(op=2, psrc="10.0.0.1", pdst="10.0.0.2")),
             {"dl_type": 0x0806, "nw_proto": 2, "nw_src": 0x0A000001, "nw_dst": 0x0A000002}),
            (bytes(Dot3(dst="02:00:00:00:00:bb", src="02:00:00:00:00:aa", len=3) / LLC()), {"dl_type": 0x05FF}),
            (bytes(Dot3(dst="02:00:00:00:00:bb", src="02:00:00:00:00:aa") / LLC(dsap=0xAA, ssap=0xAA, ctrl=3)
                   / SNAP(OUI=0, code=0x0800) / ADDRESSES), {"dl_type": 0x0800, "nw_src": 0x0A000001}),
        ],
    )  # fmt: skip
    def test_each_field(self, lab: Lab, controller: Controller, frame: bytes, fields: dict[str, int | bytes]) -> None:
        controller.exchange(flow_mod(match(**fields), output(2)))
        assert outcome(lab, controller, frame) == [2]
        for name, value in fields.items():
            other = bytes([value[0] ^ 4]) + value[1:] if isinstance(value, bytes) else value ^ 4
            controller.exchange(
                flow_mod(match(), command=DELETE), flow_mod(match(**{**fields, name: other}), output(2))
            )
            assert outcome(lab, controller, frame) == [CONTROLLER], name

    @pytest.mark.parametrize(
        ("bits", "matches"), [(0, False), (7, False), (8, True), (31, True), (32, True), (63, True)]
    )
    def test_address_prefixes(self, lab: Lab, controller: Controller, bits: int, matches: bool) -> None:
        wildcards = ALL_WILDCARDS & ~(1 << 4) & ~(0x3F << 8) | bits << 8
        controller.exchange(flow_mod(match(wildcards, dl_type=0x0800, nw_src=address("10.0.0.129")), output(2)))
        assert outcome(lab, controller) == [2 if matches else CONTROLLER]

    def test_fields_of_a_protocol_that_is_not_required_are_ignored(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(nw_src=1, nw_proto=17, tp_dst=9), output(2)))
        assert outcome(lab, controller) == [2]
        (entry,) = controller.flows()
        assert struct.unpack_from("!I", entry, 4)[0] == ALL_WILDCARDS

    @pytest.mark.parametrize("fragment", [IP(flags="MF"), IP(frag=100)])
    def test_fragments_have_no_ports(self, lab: Lab, controller: Controller, fragment: Packet) -> None:
        frame = bytes(ETHER / fragment / TCP(sport=1000, dport=80))
        controller.exchange(
            flow_mod(match(dl_type=0x0800, nw_proto=6, tp_dst=80), output(2), priority=9),
            flow_mod(match(dl_type=0x0800, nw_proto=6, tp_dst=0), output(3), priority=8),
        )
        assert outcome(lab, controller, frame) == [3]
        controller.exchange(Message(SET_CONFIG, 1, struct.pack("!HH", 1, 128)))  # drop fragments
        assert outcome(lab, controller, frame) == []
        assert outcome(lab, controller) == [2]


class TestTable:
    def test_the_highest_priority_wins_across_masks(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1), output(2), priority=10),
            flow_mod(match(dl_type=0x0800), output(3), priority=30),
            flow_mod(match(), output(4), priority=20),
        )
        assert outcome(lab, controller) == [3]
        controller.exchange(flow_mod(match(dl_type=0x0800), command=DELETE))
        assert outcome(lab, controller) == [4]
        controller.exchange(flow_mod(match(in_port=1), output(3), priority=40))
        assert outcome(lab, controller) == [3]

    def test_an_exact_match_outranks_every_priority(self, lab: Lab, controller: Controller) -> None:
        exact = match(
            0, in_port=1, dl_src=b"\x02\0\0\0\0\xaa", dl_dst=b"\x02\0\0\0\0\xbb", dl_vlan=0xFFFF,
            dl_type=0x0800, nw_tos=0x28, nw_proto=6, nw_src=0x0A000001, nw_dst=0x0A000002, tp_src=1000, tp_dst=80,
        )  # fmt: skip
        controller.exchange(flow_mod(match(), output(2), priority=0xFFFF), flow_mod(exact, output(3), priority=0))
        assert outcome(lab, controller) == [3]
        controller.exchange(flow_mod(exact, command=DELETE_STRICT, priority=5))  # the priority does not matter
        assert outcome(lab, controller) == [2]

    def test_adding_the_same_flow_replaces_it_and_its_counters(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(in_port=1), output(2), flags=SEND_FLOW_REM))
        assert outcome(lab, controller) == [2]
        assert controller.exchange(flow_mod(match(in_port=1), output(3))) == []
        assert outcome(lab, controller) == [3]
        (entry,) = controller.flows()
        assert struct.unpack_from("!QQ", entry, 72) == (1, len(TCP_FRAME))

    def test_modify_changes_what_it_covers_and_keeps_counters(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1, dl_type=0x0800), output(2), priority=5),
            flow_mod(match(in_port=1), output(2), priority=4),
            flow_mod(match(), output(2), priority=3),
        )
        assert outcome(lab, controller) == [2]
        controller.exchange(flow_mod(match(in_port=1), output(3), output(4), command=MODIFY, cookie=9))
        entries = {struct.unpack_from("!H", entry, 52)[0]: entry for entry in controller.flows()}
        assert {priority: entry[88:] for priority, entry in entries.items()} == {
            5: output(3) + output(4), 4: output(3) + output(4), 3: output(2),
        }  # fmt: skip
        assert struct.unpack_from("!QQQ", entries[5], 64) == (9, 1, len(TCP_FRAME))
        assert outcome(lab, controller) == [3, 4]

    def test_modify_strict_changes_only_the_same_flow(self, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1), output(2), priority=5),
            flow_mod(match(in_port=1), output(2), priority=4),
            flow_mod(match(in_port=1), output(3), priority=4, command=MODIFY_STRICT),
        )
        assert sorted(entry[88:] for entry in controller.flows()) == [output(2), output(3)]

    @pytest.mark.parametrize("command", [MODIFY, MODIFY_STRICT])
    def test_modify_of_nothing_adds(self, controller: Controller, command: int) -> None:
        controller.exchange(flow_mod(match(in_port=1), output(2), command=command, priority=77))
        assert priorities(controller) == [77]

    def test_delete_takes_what_it_covers(self, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1, dl_type=0x0800), output(2), priority=5),
            flow_mod(match(in_port=1), output(3), priority=4),
            flow_mod(match(), output(2), priority=3),
            flow_mod(match(in_port=1), command=DELETE, priority=99),
        )
        assert priorities(controller) == [3]

    def test_delete_strict_takes_only_the_same_flow(self, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1), output(3), priority=4),
            flow_mod(match(in_port=1), output(3), priority=5),
            flow_mod(match(in_port=1), command=DELETE_STRICT, priority=4),
            flow_mod(match(), command=DELETE_STRICT, priority=5),
        )
        assert priorities(controller) == [5]

    @pytest.mark.parametrize("command", [DELETE, DELETE_STRICT])
    def test_delete_filters_by_output_port(self, controller: Controller, command: int) -> None:
        controller.exchange(
            flow_mod(match(), output(2), output(3), priority=4),
            flow_mod(match(), command=command, priority=4, out_port=1),
        )
        assert priorities(controller) == [4]
        controller.exchange(flow_mod(match(), command=command, priority=4, out_port=3))
        assert priorities(controller) == []

    def test_overlap_is_checked_within_a_priority_if_asked_for(self, controller: Controller) -> None:
        controller.exchange(flow_mod(match(in_port=1), priority=5))
        assert controller.exchange(flow_mod(match(dl_type=0x0800), priority=5)) == []
        overlapping = flow_mod(match(dl_vlan=3), priority=5, flags=CHECK_OVERLAP)
        assert controller.error(overlapping) == OVERLAP
        assert controller.exchange(flow_mod(match(dl_vlan=3), priority=6, flags=CHECK_OVERLAP)) == []
        assert controller.exchange(flow_mod(match(in_port=2, dl_type=1), priority=5, flags=CHECK_OVERLAP)) == []

    @pytest.mark.parametrize("command", [5, 0xFFFF])
    def test_unknown_commands_are_errors(self, controller: Controller, command: int) -> None:
        assert controller.error(flow_mod(match(), command=command)) == BAD_COMMAND

    def test_a_rule_without_actions_drops(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(flow_mod(match(), command=ADD))
        assert outcome(lab, controller) == []


class TestFlowRemoved:
    def test_a_deleted_flow_is_reported_if_it_asked_for_it(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1), output(2), priority=8, cookie=99, idle=60, flags=SEND_FLOW_REM),
            flow_mod(match(in_port=2), output(2)),
        )
        outcome(lab, controller)
        (removed,) = controller.exchange(flow_mod(match(), command=DELETE))
        assert removed.type == FLOW_REMOVED
        assert removed.body[:40] == match(in_port=1)
        cookie, priority, reason, idle, packets, size = struct.unpack("!QHBx8xHxxQQ", removed.body[40:])
        assert (cookie, priority, reason, idle, packets, size) == (99, 8, DELETED, 60, 1, len(TCP_FRAME))

    @pytest.mark.parametrize(
        ("timeouts", "reason"), [({"idle": 1}, IDLE_TIMEOUT), ({"hard": 1}, HARD_TIMEOUT), ({"idle": 1, "hard": 9}, 0)]
    )
    def test_timeouts(self, controller: Controller, timeouts: dict[str, int], reason: int) -> None:
        start = time.monotonic()
        controller.exchange(flow_mod(match(in_port=1), output(2), flags=SEND_FLOW_REM, **timeouts))
        removed = controller.receive()
        assert removed.type == FLOW_REMOVED
        assert removed.body[50] == reason
        assert 0.95 < time.monotonic() - start < 5
        assert controller.flows() == []

    def test_use_postpones_the_idle_timeout_but_not_the_hard_one(self, lab: Lab, controller: Controller) -> None:
        controller.exchange(
            flow_mod(match(in_port=1), output(2), idle=2, flags=SEND_FLOW_REM),
            flow_mod(match(in_port=1), output(3), idle=2, hard=3, priority=200, flags=SEND_FLOW_REM),
        )
        reasons = []
        start = time.monotonic()
        while time.monotonic() - start < 4.5:
            lab.ports[1].send(TCP_FRAME)
            reasons += [message.body[50] for message in controller.settle() if message.type == FLOW_REMOVED]
            time.sleep(0.2)
        assert reasons == [IDLE_TIMEOUT, HARD_TIMEOUT]  # the first flow lay in the shadow of the second


class TestActions:
    TAGGED = ETHER / Dot1Q(vlan=7, prio=5)
    PAYLOAD = ADDRESSES / TCP(sport=1000, dport=80) / Raw(b"payload")

    @pytest.mark.parametrize(
        ("before", "actions", "after"),
        [
            (ETHER / PAYLOAD, [set_vlan_vid(9)], ETHER / Dot1Q(vlan=9) / PAYLOAD),
            (ETHER / PAYLOAD, [set_vlan_pcp(3)], ETHER / Dot1Q(vlan=0, prio=3) / PAYLOAD),
            (TAGGED / PAYLOAD, [set_vlan_vid(9)], ETHER / Dot1Q(vlan=9, prio=5) / PAYLOAD),
            (TAGGED / PAYLOAD, [set_vlan_pcp(3)], ETHER / Dot1Q(vlan=7, prio=3) / PAYLOAD),
            (TAGGED / PAYLOAD, [strip_vlan()], ETHER / PAYLOAD),
            (ETHER / PAYLOAD, [strip_vlan()], ETHER / PAYLOAD),
            (ETHER / PAYLOAD, [set_vlan_vid(9), strip_vlan()], ETHER / PAYLOAD),
            (ETHER / PAYLOAD, [set_dl_src(b"\x02abcde")], Ether(src="02:61:62:63:64:65", dst=ETHER.dst) / PAYLOAD),
            (ETHER / PAYLOAD, [set_dl_dst(b"\x02abcde")], Ether(dst="02:61:62:63:64:65", src=ETHER.src) / PAYLOAD),
            (ETHER / PAYLOAD, [set_nw_src(address("255.255.1.2"))],
             ETHER / IP(src="255.255.1.2", dst="10.0.0.2", tos=0x28) / PAYLOAD[TCP]),
            (TAGGED / PAYLOAD, [set_nw_dst(address("0.0.0.0"))],
             TAGGED / IP(src="10.0.0.1", dst="0.0.0.0", tos=0x28) / PAYLOAD[TCP]),
            (ETHER / ADDRESSES / UDP(sport=5, dport=6), [set_nw_dst(address("10.9.8.7"))],
             ETHER / IP(src="10.0.0.1", dst="10.9.8.7", tos=0x28) / UDP(sport=5, dport=6)),
            (ETHER / ADDRESSES / UDP(sport=5, dport=6, chksum=0), [set_tp_src(7)],
             ETHER / ADDRESSES / UDP(sport=7, dport=6, chksum=0)),
            (ETHER / IP(tos=0x2B) / TCP(), [set_nw_tos(0xFC)], ETHER / IP(tos=0xFF) / TCP()),
            (ETHER / PAYLOAD, [set_tp_src(7)], ETHER / ADDRESSES / TCP(sport=7, dport=80) / Raw(b"payload")),
            (ETHER / PAYLOAD, [set_tp_dst(7)], ETHER / ADDRESSES / TCP(sport=1000, dport=7) / Raw(b"payload")),
            (ETHER / ADDRESSES / ICMP(), [set_tp_src(7)], ETHER / ADDRESSES / ICMP()),
            (ETHER / ARP(), [set_nw_src(1), set_nw_dst(1), set_nw_tos(4), set_tp_dst(1)], ETHER / ARP()),
            (ETHER / IP(frag=1) / Raw(b"x" * 40), [set_tp_dst(1)], ETHER / IP(frag=1) / Raw(b"x" * 40)),
        ],
    )  # fmt: skip
    def test_header_fields_and_checksums(
        self, lab: Lab, controller: Controller, before: Packet, actions: list[bytes], after: Packet
    ) -> None:
        assert controller.exchange(flow_mod(match(), *actions, output(2))) == []
        lab.ports[1].send(bytes(before))
        assert controller.settle() == []
        assert lab.received() == {2: [bytes(after)]}

    def test_actions_take_effect_in_order(self, lab: Lab, controller: Controller) -> None:
        frame = bytes(ETHER / Raw(bytes(46)))
        actions = [output(1), set_dl_src(b"\x02abcde"), output(2), set_vlan_vid(1), output(ALL)]
        controller.exchange(flow_mod(match(), *actions))
        lab.ports[4].send(frame)
        controller.settle()
        changed = frame[:6] + b"\x02abcde" + frame[12:]
        tagged = changed[:12] + b"\x81\0\0\1" + changed[12:]
        assert lab.received() == {1: [frame, tagged], 2: [changed, tagged], 3: [tagged]}
