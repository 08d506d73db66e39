"""The description of the format: its example works, and it leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

from soft.openflow.layout import Field, layout_of
from soft.openflow.packets import FRAMES
from soft.scenarios import loader

TEXT = (Path(loader.__file__).parent / "README.md").read_text()
WORDS = set(re.findall(r"`([a-z_0-9]+)`", TEXT))


def test_the_example_is_a_scenario() -> None:
    example = loader.parse(TEXT.split("```toml\n")[1].split("```")[0], "README.md")
    assert example.variable_names == ("m0.hard_timeout", "m0.priority", "m0.actions.0.port", "w1.ms")


def test_every_scenario_is_named() -> None:
    assert set(loader.names()) <= WORDS


def test_every_message_is_named() -> None:
    assert {*layout_of("1.0").messages, "message", "raw"} <= WORDS


def test_every_field_of_an_action_is_named() -> None:
    for action in layout_of("1.0").actions.values():
        assert {element.name for element in action.elements if isinstance(element, Field)} <= WORDS


def test_every_packet_and_its_fields_are_named() -> None:
    for kind, frame in FRAMES.items():
        assert kind in WORDS
        assert {element.name for element in frame.elements if isinstance(element, Field)} <= WORDS
