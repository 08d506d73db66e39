"""Placeholders are filled in once, and only where they stand."""

from __future__ import annotations

import pytest

from soft.errors import SoftError
from soft.launch.placeholders import MEANING, PORT_PLACEHOLDERS, allowed_placeholders, fill, fill_command


def test_a_text_is_filled_once() -> None:
    assert fill("{dir}/{dir}", {"dir": "{dir}"}) == "{dir}/{dir}"
    assert fill("{{dir}} {other thing} {}", {"dir": "x"}) == "{dir} {other thing} {}"


def test_ports_become_an_argument_each() -> None:
    ports = [{"number": "1", "spec": "a"}, {"number": "2", "spec": "b"}]
    command = fill_command(["{binary}", "{ports}", "-v"], {"binary": "sw"}, ["-p", "{number}={spec}"], ports)
    assert command == ["sw", "-p", "1=a", "-p", "2=b", "-v"]


def test_a_port_that_the_scenario_does_not_have() -> None:
    with pytest.raises(SoftError, match=r"uses \{port9\}, which this scenario does not have"):
        fill("{port9}", {"port1": "x"})


def test_every_placeholder_has_a_meaning() -> None:
    used = set().union(*PORT_PLACEHOLDERS.values())
    for connection in ("connect", "listen"):
        for kind in ("tcp", "unix"):
            used |= allowed_placeholders(connection, kind)
    assert used | {"ports", "port1"} == set(MEANING)
