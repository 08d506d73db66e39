"""A stand-alone script for a finding: soft/report/standalone.py with the finding filled in."""

from __future__ import annotations

from importlib import resources
from pprint import pformat
from typing import Any

from soft.crosscheck.model import EventRecord, Finding, Findings
from soft.openflow.layout import layout_of
from soft.report.baseline import heading
from soft.report.scenes import Scene, step_words

_PLACE = "FINDING: dict[str, Any] = {}  # filled in by `soft report`\n"


def script(findings: Findings, finding: Finding, scene: Scene) -> bytes:
    """The script's source. It is ASCII, whatever is in the finding."""
    source = resources.files("soft.report").joinpath("standalone.py").read_text("utf-8")
    before, found, behind = source.partition(_PLACE)
    assert found, "standalone.py has lost the line that is filled in"
    data = _ascii(pformat(_data(findings, finding, scene), width=118, sort_dicts=False))
    return f"#!/usr/bin/env -S python3 -I\n{before}FINDING: dict[str, Any] = {data}\n{behind}".encode("ascii")


def _ascii(literal: str) -> str:
    """A Python literal without other characters: those can only stand in its strings."""
    return literal.encode("ascii", "backslashreplace").decode("ascii")


def _data(findings: Findings, finding: Finding, scene: Scene) -> dict[str, Any]:
    return {
        "id": finding.id,
        "scenario": finding.scenario,
        "heading": heading(findings, finding),
        "version": layout_of(scene.record.openflow).version if scene.scenario is not None else 1,
        "handshake": scene.handshake,
        "steps": [
            {
                "id": step.id,
                "kind": step.kind,
                "words": step_words(scene, step)[0],
                "hex": step.hex,
                "port": step.port,
                "milliseconds": step.milliseconds or 0,
            }
            for step in finding.example.steps
        ],
        "predictions": {
            behaviour.agent: [_event(event) for event in behaviour.events] for behaviour in finding.behaviours
        },
    }


def _event(event: EventRecord) -> dict[str, Any]:
    words = event.words[0] if event.words else event.kind
    return {
        "step": event.step,
        "kind": event.kind,
        "port": event.port,
        "hex": event.hex,
        "words": f"port {event.port}: {words}" if event.port is not None else words,
    }
