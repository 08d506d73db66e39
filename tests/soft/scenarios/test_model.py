"""Variables, domains, inputs and the digest."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.openflow.openflow10 import FLOW_FLAGS, PORTS
from soft.scenarios import loader
from soft.scenarios.model import Scenario, Send, Variable, Wait, suggestion
from soft.solve import terms
from soft.solve.evaluate import evaluate

TEXT = """\
name = "x"
[[step]]
send = "packet_out"
buffer_id = "symbolic"
in_port = { range = [1, 100] }
actions = [{ type = "output", port = "symbolic" }]

[[step]]
wait = { range = [0, 5] }

[[step]]
probe = 1
packet = "tcp"
"""


def scenario(text: str = TEXT) -> Scenario:
    return loader.parse(text, "test")


# ---------------------------------------------------------------------------------------------- the digest


def test_the_digest_of_a_scenario_stays() -> None:
    # Whoever changes this makes all bundles there are incomparable with new ones: see _DIGEST_FORMAT.
    assert scenario().digest == "dfbaa5d6e10106f2656f6df9b56d56cce77cb2e92eae860df29ba3c8cae23bb5"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "x"', 'name = "y"\nsummary = "other words"\nopenflow = "1.0"\nports = 4\nhandshake = true'),
        ("\n\n", "\n# a comment\n\n\n"),
        ("in_port = { range = [1, 100] }", "in_port = { symbolic = true, range = [1, 0x64], default = 7 }"),
        ('type = "output"', "type = 0"),
        ('type = "output"', 'max_len = 65535, type = "OFPAT_OUTPUT"'),
        ('send = "packet_out"', 'send = "packet_out"\nxid = 1\nversion = 1\nactions_len = 8'),
        ("wait = { range = [0, 5] }", 'wait = "symbolic"\nrange_ms = [0, 5]'),
        ('packet = "tcp"', 'packet = { kind = "tcp", tp_dst = 80 }'),
    ],
)
def test_the_digest_does_not_depend_on_how_it_is_written(old: str, new: str) -> None:
    assert old in TEXT
    assert scenario(TEXT.replace(old, new)).digest == scenario().digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "x"', 'name = "x"\nports = 3'),
        ('name = "x"', 'name = "x"\nhandshake = false'),
        ("[1, 100]", "[1, 101]"),
        ("[1, 100]", "[0, 100]"),
        ("{ range = [1, 100] }", "{ in = [1, 100] }"),
        ("{ range = [1, 100] }", '"symbolic"'),
        ("{ range = [1, 100] }", "1"),
        ('port = "symbolic"', 'port = "symbolic", max_len = 1'),
        ('send = "packet_out"', 'send = "packet_out"\nxid = 2'),
        ("[0, 5]", "[0, 6]"),
        ("{ range = [0, 5] }", "5"),
        ("probe = 1", "probe = 2"),
        ('"tcp"', '"udp"'),
        ('packet = "tcp"\n', 'packet = "tcp"\n[[step]]\nwait = 1\n'),
    ],
)
def test_the_digest_depends_on_what_is_sent(old: str, new: str) -> None:
    assert old in TEXT
    assert scenario(TEXT.replace(old, new, 1)).digest != scenario().digest


# ---------------------------------------------------------------------------------------------- inputs


def test_binding_makes_steps_concrete() -> None:
    send, wait, probe = scenario().bind({"m0.in_port": 9, "w1.ms": 3})
    assert isinstance(send, Send)
    data = send.payload.concrete()
    assert data is not None
    assert data[8:14].hex() == "ffffffff0009"
    assert wait == Wait("w1", 3)
    assert probe == scenario().steps[2]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"m0.in_port": 101}, "m0.in_port: 101 is outside the scenario's domain (1 to 100)."),
        ({"m0.buffer_id": 1 << 32}, "m0.buffer_id: 4294967296 is outside the scenario's domain (32 bits)."),
        ({"m0.buffer_id": -1}, "m0.buffer_id: -1 is outside"),
        ({"m0.bufer_id": 1}, "Scenario x has no variable 'm0.bufer_id'; did you mean m0.buffer_id."),
        ({"port": 1}, "did you mean m0.in_port or m0.actions.0.port."),
    ],
)
def test_an_input_outside_the_scenario(values: dict[str, int], sentence: str) -> None:
    with pytest.raises(SoftError, match=re.escape(sentence)):
        scenario().bind(values)


def test_settings_of_the_command_line() -> None:
    settings = ["m0.buffer_id=none", " m0.in_port = 0x10 ", "m0.actions.0.port=OFPP_FLOOD", "w1.ms=5"]
    assert scenario().parse_values(settings) == {
        "m0.buffer_id": 0xFFFFFFFF,
        "m0.in_port": 16,
        "m0.actions.0.port": 0xFFFB,
        "w1.ms": 5,
    }


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("m0.in_port", "'m0.in_port' is not of the form NAME=VALUE, such as m0.buffer_id=7."),
        ("m0.in_port=0", "m0.in_port: 0 is outside the scenario's domain (1 to 100)."),
        ("m0.in_port=x", "m0.in_port: 'x' is no value for this field"),
        ("m0.in_prt=1", "did you mean m0.in_port"),
        ("w1.ms=6", "w1.ms: 6 is outside the scenario's domain (0 to 5)."),
    ],
)
def test_a_wrong_setting(setting: str, sentence: str) -> None:
    with pytest.raises(SoftError) as error:
        scenario().parse_values([setting])
    assert sentence in str(error.value)


# ---------------------------------------------------------------------------------------------- variables


@st.composite
def variables(draw: st.DrawFn) -> Variable:
    width = draw(st.sampled_from([1, 6, 8, 16]))
    values = st.integers(0, (1 << width) - 1)
    limits = draw(st.none() | st.tuples(values, values).map(lambda pair: (min(pair), max(pair))))
    choices = draw(st.none() | st.lists(values, min_size=1, max_size=4, unique=True).map(lambda v: tuple(sorted(v))))
    return Variable("v", width, 0, limits, choices)


@given(variables(), st.integers(-1, 1 << 16))
def test_the_domain_is_what_is_allowed(variable: Variable, value: int) -> None:
    assume(0 <= value < 1 << variable.width)
    domain = variable.domain
    assert variable.allows(value) == bool(evaluate(domain, {"v": value}))
    if variable.range is None and variable.choices is None:
        assert domain is terms.TRUE


KINDS = st.sampled_from(
    [
        Variable("v", 16, 0),
        Variable("v", 16, 0, kind="decimal"),
        Variable("v", 16, 0, names=PORTS),
        Variable("v", 16, 0, names=FLOW_FLAGS),
        Variable("v", 48, 0, kind="mac"),
        Variable("v", 32, 0, kind="ipv4"),
        Variable("v", 40, 0, kind="bytes"),
    ]
)


@given(KINDS, st.integers(0, (1 << 48) - 1))
def test_what_is_shown_is_read_back(variable: Variable, value: int) -> None:
    value &= (1 << variable.width) - 1
    assert variable.parse(variable.show(value)) == value


def test_values_are_shown_as_people_write_them() -> None:
    assert Variable("v", 16, 0, names=PORTS).show(0xFFFD) == "controller"
    assert Variable("v", 48, 0, kind="mac").show(0x02000000000A) == "02:00:00:00:00:0a"
    assert Variable("v", 32, 0, kind="ipv4").show(0x0A000001) == "10.0.0.1"
    assert Variable("v", 32, 0).show(4096) == "0x1000"
    assert Variable("v", 32, 0, kind="decimal").show(70000) == "70000"


def test_suggestions() -> None:
    assert suggestion("flow_mdo", ["flow_mod", "hello"]) == "; did you mean flow_mod"
    assert suggestion("port", ["m0.in_port", "m0.xid"]) == "; did you mean m0.in_port"
    assert suggestion("zzz", ["a", "b"]) == "; there are a, b"
    assert suggestion("zzz", map(str, range(20))).endswith("14, 15, ...")
    assert suggestion("zzz", []) == "; it takes none"
