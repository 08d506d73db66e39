"""Agents of the kind that labs bring: each is explored, agrees with itself, and does natively what was predicted."""

from __future__ import annotations

import pytest

from harness.explorer import Limits
from soft.bundle.model import Bundle
from soft.crosscheck.crosscheck import crosscheck
from soft.errors import SoftError
from soft.launch.find import Target
from soft.replay.runner import run
from soft.replay.verify import verify
from soft.trace import evaluate_trace
from tests.foreign.lab import FLOWS, PACKETS, SHORT, WAITING, explore, scenario, target

_TCP = (('"unix"', '"tcp"'), ("{control_path}", "{host}:{tcp_port}"))
# The agent, its profile's changes, the scenario, and how many paths there are.
_AGENTS = {
    "interrupted by SIGALRM": (target("alarmd"), PACKETS, 11),
    "hashes flows, logs to syslog": (target("selectd"), FLOWS, 8),
    "reads a header and the rest": (target("selectd"), SHORT, 5),
    "sends a turn later, logs to a file": (target("laterd"), PACKETS, 6),
    "behind a relay": (target("relayd"), PACKETS, 5),
    "behind a relay over TCP": (target("relayd", *_TCP), PACKETS, 5),
    "never sleeps, reads tap devices": (target("spind"), PACKETS, 5),
    "C++ over edge-triggered epoll": (target("edged"), PACKETS, 11),
    "static, in the background": (target("forkd"), PACKETS, 11),
    "peeks, reads, and takes several frames at a time": (target("peekd"), PACKETS, 6),
    "logs in a thread": (target("talkd"), FLOWS, 39),
    "a thread for everything": (target("crewd"), PACKETS, 11),
    "a thread for everything, with rules": (target("crewd"), FLOWS, 8),
}


@pytest.mark.parametrize(("agent", "text", "paths"), _AGENTS.values(), ids=_AGENTS)
def test_a_foreign_agent(agent: Target, text: str, paths: int) -> None:
    bundle, manifest, _ = explore(agent, scenario(text), Limits(paths=200))
    assert manifest.complete, manifest.reasons
    assert len(bundle.paths) == paths
    assert not any(path.marks for path in bundle.paths)
    assert crosscheck([bundle, bundle], ["one", "other"]).verdict == "agree"
    ran = run(agent, bundle.scenario, {})
    assert ran.trace in [evaluate_trace(bundle.traces[path.trace], bundle.scenario.defaults) for path in bundle.paths]
    verification = verify(bundle, agent, jobs=1)
    assert verification.disagreements == []
    assert verification.count("agreed") == paths


def test_two_foreign_agents_differ() -> None:
    bundles: list[Bundle] = [explore(target(name), scenario(PACKETS))[0] for name in ("laterd", "relayd")]
    assert crosscheck(bundles).verdict == "differ"


def test_a_daemon_that_nobody_named() -> None:
    daemon = target("forkd", ('control_process = "forkd"\n', ""))
    with pytest.raises(SoftError, match=r"ended \(exit 0\).*left another process behind.*`control_process`"):
        explore(daemon, scenario(PACKETS))


def test_a_timer_without_a_model_is_named_where_time_passes() -> None:
    bundle, manifest, _ = explore(target("peekd"), scenario(WAITING))
    assert len(bundle.paths) == 0
    (reason,) = manifest.reasons
    assert reason.startswith("No model for a timer made by timer_create")
