"""Debian's ovs-vswitchd: stripped, multi-threaded, with hashes and caches, explored as it is."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from harness.exploration import Exploration
from harness.frozen import Snapshot
from harness.snapshot import freeze
from soft.bundle.check import check
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.crosscheck.crosscheck import crosscheck
from soft.launch.find import Target, find
from soft.launch.profile import parse_profile
from soft.replay.verify import verify
from soft.scenarios.loader import load, parse
from soft.scenarios.model import Scenario
from soft.solve.solver import Solver
from soft.trace import Message

# eth_flow_mod with a concrete match, and a few types of actions.
FLOW = """
name = "flow"
summary = "A rule for every packet with an action of three types, then a probe"
[[step]]
send = "flow_mod"
priority = "symbolic"
actions = [
    { type.in = ["output", "set_vlan_vid", "set_tp_dst"], body = { symbolic = true, bytes = 4 } },
    { type = "output", port = 2, max_len = 0 },
]
[[step]]
probe = 1
packet = "tcp"
"""
# Two rules, of which the second may be the first again.
TWO_RULES = """
name = "two_rules"
summary = "A rule, and one of any priority"
[[step]]
send = "flow_mod"
priority = 7
actions = [{ type = "output", port = 2, max_len = 0 }]
[[step]]
send = "flow_mod"
priority = "symbolic"
actions = [{ type = "output", port = 3, max_len = 0 }]
"""
# A table of one rule, in the words of ovs-vsctl.
ONE_RULE = """
        "--", "--id=@small", "create", "Flow_Table", "flow_limit=1", "overflow_policy=refuse",
        "--", "set", "bridge", "br0", "flow_tables:0=@small",
"""
_BEHIND = """'other_config:hwaddr="02:00:00:00:00:64"',
"""


@functools.cache
def target(configuration: str = "") -> Target:
    """The agent as Debian ships it, with more configuration of its bridge."""
    found = find("ovs-vswitchd", None)
    text = Path(found.profile.source).read_text()
    assert text.count(_BEHIND) == 1
    text = text.replace(_BEHIND, _BEHIND + configuration)
    return Target("ovs-vswitchd", found.binary, parse_profile(text.encode(), found.profile.source))


@functools.cache
def snapshot(configuration: str = "") -> Snapshot:
    return freeze(target(configuration), ports=4)


def explored(scenario: Scenario, configuration: str = "") -> Bundle:
    """A complete bundle whose paths were proved to cover the input space, each once."""
    with tempfile.TemporaryDirectory() as place:
        manifest, _ = Exploration(snapshot(configuration), scenario, Path(place) / "bundle", "ovs-vswitchd").run()
        assert manifest.complete, manifest.reasons
        bundle = read(Path(place) / "bundle")
    assert check(bundle, partition=True, solver=Solver("z3")).sound
    return bundle


@pytest.mark.parametrize(("name", "outputs"), [("queue_config", 2), ("set_config", 2), ("concrete", 1)])
def test_predictions_hold_natively(name: str, outputs: int) -> None:
    bundle = explored(load(name))
    assert len(bundle.traces) == outputs
    verification = verify(bundle, target(), jobs=1)
    assert verification.disagreements == []
    assert verification.count("agreed") == len(bundle.paths)


def test_a_rule_and_a_packet_that_meets_it() -> None:
    bundle = explored(parse(FLOW, "flow.toml"))
    assert len(bundle.traces) > 5
    verification = verify(bundle, target(), sample=15, jobs=1)
    assert verification.disagreements == []


def test_the_manifest_tells_what_does_not_happen() -> None:
    limits = explored(load("concrete")).manifest.limits
    assert any("6 threads take turns" in line for line in limits)
    assert any("multiplications by 0xc2b2ae35 zeroed" in line for line in limits)


def test_two_configurations_differ_where_they_were_configured_to() -> None:
    rules, queues = parse(TWO_RULES, "two_rules.toml"), load("queue_config")
    labels = ["large", "small"]
    findings = crosscheck([explored(rules), explored(rules, ONE_RULE)], labels)
    (finding,) = findings.findings
    assert [b.summary for b in finding.behaviours] == [
        "is silent", "answers with the error flow_mod_failed/all_tables_full",
    ]  # fmt: skip
    assert finding.region.text == "m1.priority ≠ 7; everything else free"
    assert finding.region.exact
    assert crosscheck([explored(queues), explored(queues, ONE_RULE)], labels).verdict == "agree"


WAIT = """
name = "expiring"
summary = "A rule that ends after a second, a wait, then a probe"
[[step]]
send = "flow_mod"
{timeout} = 1
flags = "send_flow_rem"
actions = [{{ type = "output", port = 2 }}]
[[step]]
wait = "symbolic"
range_ms = [1300, 1700]
[[step]]
probe = 1
packet = "tcp"
"""


@pytest.mark.parametrize("timeout", ["hard_timeout", "idle_timeout"])
def test_rules_expire_when_another_thread_has_looked(timeout: str) -> None:
    """The main thread looks for rules that have timed out when the revalidator has swept: every half second."""
    bundle = explored(parse(WAIT.format(timeout=timeout), "expiring.toml"))
    for path in bundle.paths:
        trace = bundle.traces[path.trace]
        removed = [event for event in trace if isinstance(event, Message) and event.step == 1]
        # At 1000 ms it has not been longer than a second: the next sweep finds it.
        assert len(removed) == (path.witness["w1.ms"] >= 1500)
    assert len(bundle.traces) == 2
    verification = verify(bundle, target(), jobs=1)
    assert verification.disagreements == []
    assert verification.times == ["moved clock"]


def test_the_first_message_is_read_when_another_thread_wakes_the_reader() -> None:
    scenario = load("first_message")
    frozen = freeze(target(), ports=scenario.ports, handshake=False)
    with tempfile.TemporaryDirectory() as place:
        manifest, _ = Exploration(frozen, scenario, Path(place) / "bundle", "ovs-vswitchd").run()
        assert manifest.complete, manifest.reasons
        bundle = read(Path(place) / "bundle")
    verification = verify(bundle, target(), jobs=2)
    assert verification.disagreements == []
    assert verification.count("agreed") == len(bundle.paths)
