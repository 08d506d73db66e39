"""Scenarios are read, or refused in one sentence that names file, line and field."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soft.errors import SoftError
from soft.scenarios import loader
from soft.scenarios.model import Probe, Scenario, Send, Wait
from soft.solve import terms

HEAD = 'name = "mine"\nsummary = "my own"\n\n'


def scenario(steps: str) -> Scenario:
    return loader.parse(HEAD + steps, "mine.toml")


def complaint(text: str) -> str:
    with pytest.raises(SoftError) as error:
        loader.parse(text, "mine.toml")
    message = str(error.value)
    assert message.startswith("mine.toml")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600
    return message


# ---------------------------------------------------------------------------------------------- what is read


def test_steps_are_named_by_their_place() -> None:
    mine = scenario('[[step]]\nsend = "hello"\n[[step]]\nprobe = 2\n[[step]]\nwait = 5\n[[step]]\nsend = "hello"\n')
    assert [step.id for step in mine.steps] == ["m0", "p1", "w2", "m3"]
    send, probe, wait, _ = mine.steps
    assert isinstance(send, Send)
    assert send.message_type == "hello"
    assert isinstance(probe, Probe)
    assert probe.port == 2
    assert wait == Wait("w2", 5)
    assert (mine.name, mine.summary, mine.openflow, mine.ports, mine.handshake) == ("mine", "my own", "1.0", 4, True)


def test_variables_stand_in_the_order_of_the_wire() -> None:
    mine = scenario(
        '[[step]]\nsend = "packet_out"\nactions = [{type = "output", port = "symbolic"}]\nbuffer_id = "symbolic"\n'
        'xid = "symbolic"\n[[step]]\nprobe = 1\npacket = { kind = "tcp", tp_dst = "symbolic", dl_dst = "symbolic" }\n'
    )
    assert mine.variable_names == ("m0.xid", "m0.buffer_id", "m0.actions.0.port", "p1.dl_dst", "p1.tp_dst")


def test_a_domain_is_a_condition() -> None:
    mine = scenario(
        '[[step]]\nsend = "packet_out"\nin_port = { range = [1, "max"] }\nbuffer_id = { in = [1, "none"] }\n'
        'actions = [{type = "output", port = "symbolic"}]\n'
    )
    port, buffer = mine.variable("m0.in_port"), mine.variable("m0.buffer_id")
    assert (port.range, port.default, port.describe_domain()) == ((1, 0xFF00), 1, "1 to max")
    assert (buffer.choices, buffer.default) == ((1, 0xFFFFFFFF), 0xFFFFFFFF)
    assert set(mine.domain) == {port.domain, buffer.domain}


@pytest.mark.parametrize(
    ("text", "domain", "default"),
    [
        ('wait = "symbolic"\nrange_ms = [0, 70000]', (0, 70000), 1000),
        ('wait = "symbolic"', (0, loader.LONGEST_WAIT), 1000),
        ("wait = { symbolic = true }", (0, loader.LONGEST_WAIT), 1000),
        ("wait = { symbolic = true, range = [2000, 3000] }", (2000, 3000), 2000),
        ("wait = { range = [0, 9], default = 4 }", (0, 9), 4),
    ],
)
def test_a_wait_may_be_an_input(text: str, domain: tuple[int, int], default: int) -> None:
    mine = scenario(f"[[step]]\nsend = 'hello'\n[[step]]\n{text}\n")
    assert mine.steps[1] == Wait("w1", terms.var("w1.ms", 32))
    variable = mine.variable("w1.ms")
    assert (variable.width, variable.range, variable.default) == (32, domain, default)
    assert mine.bind({})[1] == Wait("w1", default)
    assert mine.bind({"w1.ms": domain[1]})[1] == Wait("w1", domain[1])


def test_a_wait_may_have_a_few_durations() -> None:
    mine = scenario("[[step]]\nwait = { in = [10, 20] }\n")
    assert mine.variable("w0.ms").choices == (10, 20)


def test_bytes_without_a_header() -> None:
    mine = scenario('[[step]]\nsend = "raw"\nbytes = ["01", { name = "rest", bits = 16, value = "symbolic" }]\n')
    (send,) = mine.bind({"m0.bytes.rest": 0xABCD})
    assert isinstance(send, Send)
    assert send.payload.concrete() == b"\x01\xab\xcd"


def test_a_size_cuts_what_is_sent() -> None:
    mine = loader.load("stats_request")
    for size in (12, 16, 20, 56):
        (send,) = mine.bind({"m0.size": size})
        assert isinstance(send, Send)
        data = send.payload.concrete()
        assert data is not None
        assert len(data) == int.from_bytes(data[2:4], "big") == size


# ---------------------------------------------------------------------------------------------- names and files


@pytest.mark.parametrize("name", ["flow_mod", "flowmod", "FlowMod", "flow-mod", "FLOW_MOD"])
def test_names_match_without_regard_to_spelling(name: str) -> None:
    assert loader.load(name).name == "flow_mod"


def test_a_users_file_takes_the_place_of_a_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + '[[step]]\nsend = "hello"\n')
    assert loader.load(str(file)).name == "mine"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("flow_mud", "There is no scenario 'flow_mud'; did you mean flow_mod"),
        ("", "There is no scenario ''"),
        ("zzz", "There is no scenario 'zzz'; there are barrier, concrete"),
        ("./flow_mod.toml", "There is no file './flow_mod.toml'."),
        ("flow_mod\0", "'flow_mod\\x00'"),
        ("x" * 5000, "(File name too long)"),
        ("/", "/ is a directory, not a scenario's file."),
        ("/dev/zero", "There is no file '/dev/zero'."),
    ],
)
def test_no_such_scenario(name: str, sentence: str) -> None:
    with pytest.raises(SoftError) as error:
        loader.load(name)
    assert sentence in str(error.value)
    assert len(str(error.value)) < 400 + len(name)


def test_a_file_that_cannot_be_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b'name = "x"\nsummary = "\xff"\n')
    with pytest.raises(SoftError, match=r"mine\.toml, line 2: this is not UTF-8 text\."):
        loader.load(str(file))
    file.write_bytes(b"#" * (loader.MOST_TEXT + 1))
    with pytest.raises(SoftError, match=r"mine\.toml: the file is larger than 262144 bytes"):
        loader.load(str(file))


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SoftError, match="There is no file"):
        loader.load(str(tmp_path / "pipe"))


# ---------------------------------------------------------------------------------------------- what is refused

STEP = '[[step]]\nsend = "flow_mod"\n'


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ('[[step]]\nsend = "flow_mood"', "line 5: m0.send: there is no message 'flow_mood'; did you mean flow_mod."),
        (STEP + "priorty = 1", "line 6: m0.priorty: there is no 'priorty' here; did you mean priority."),
        (STEP + "\npriority = 65536", "line 7: m0.priority: 65536 does not fit in 16 bits, 0 to 0xffff."),
        (STEP + "priority = -1", "line 6: m0.priority: -1 does not fit in 16 bits"),
        (STEP + "priority = true", "line 6: m0.priority: true is no value for this field; it takes a number, or"),
        (STEP + "priority = 1.5", "line 6: m0.priority: 1.5 is no value for this field"),
        (STEP + "priority = 1979-05-27", "line 6: m0.priority: datetime.date(1979, 5, 27) is no value"),
        (STEP + "match = 1", "line 6: m0.match: a table of fields"),
        (STEP + 'match = { dl_src = "02:00" }', "line 6: m0.match.dl_src: '02:00' is no value for this field"),
        (STEP + 'match = { nw_src = "10.0.0" }', "line 6: m0.match.nw_src: '10.0.0' is no IPv4 address."),
        (STEP + "match = { wildcards = { dl = 1 } }", "m0.match.wildcards.dl: there is no 'dl' here; did you mean dl_"),
        (STEP + "command = 'ad'", "line 6: m0.command: 'ad' is no value for this field; did you mean add."),
        (STEP + "flags = ['emerge']", "line 6: m0.flags: 'emerge' is no value for this field; did you mean emerg."),
        (STEP + "actions = [\n1]", "line 7: m0.actions.0: an action is a table with a type"),
        (STEP + "actions = [\n{type = 'output'},\n{type = 'output', prot = 1}]", "line 8: m0.actions.1.prot: there is"),
        (STEP + "actions = [{type = 'outputs'}]", "line 6: m0.actions.0.type: 'outputs' is no value for this field"),
        (STEP + "[[step.actions]]\ntype = 'output'\nport = []", "line 8: m0.actions.0.port: a list is no value"),
        (STEP + "priority = {range = [2, 1]}", "line 6: m0.priority.range: the range from 2 to 1 is empty."),
        (STEP + "priority = {range = [1]}", "line 6: m0.priority.range: range takes two values"),
        (STEP + "priority = {in = []}", "line 6: m0.priority.in: in takes a list of 1 to 1024 values."),
        (STEP + "priority = {in = [7], range = [1, 2]}", "line 6: m0.priority.in: no value of in = [...] lies within"),
        (STEP + "priority = {in = [1], default = 2}", "line 6: m0.priority.default: the default is outside"),
        (STEP + "priority = {symbolic = false}", "line 6: m0.priority: a table here says {symbolic = true}"),
        (STEP + "priority = {value = 3}", "line 6: m0.priority.value: there is no 'value' here"),
        (STEP + "size = 72", "line 6: m0.size: size takes {in = [...]}"),
        (STEP + "size = {in = [7]}", "line 6: m0.size.in: every size must be 8 to 72"),
        (STEP + "cookie = 0x" + "f" * 5000, "line 6: m0.cookie: a number of 20000 bits does not fit in 64 bits"),
        ("[[step]]\nsend = ['flow_mod']", "line 5: m0.send: there is no message ['flow_mod']; did you mean"),
        ("[[step]]\nsend = 'raw'", "line 5: m0.send: raw takes bytes = ..."),
        ("[[step]]\nsend = 'raw'\nbytes = 'xyz'", "line 6: m0.bytes: 'xyz' is not a sequence of bytes in hexadecimal."),
        ("[[step]]\nsend = 'raw'\nbytes = ''", "line 5: m0.send: the message has 0 bytes; a message has 1 to 65535."),
        ("[[step]]\nsend = 'raw'\nbytes = 7", "line 6: m0.bytes: bytes are written in hexadecimal"),
        ("[[step]]\nsend = 'raw'\nbytes = [[7]]", "line 6: m0.bytes.0.0: bytes are written in hexadecimal"),
        ("[[step]]\nsend = 'raw'\nbytes = '" + "00" * 65536 + "'", "the message has 65536 bytes"),
        ("[[step]]\nsend = 'raw'\nbytes = [{name = 'a', bits = 3}]", "no whole number of bytes."),
        ("[[step]]\nsend = 'raw'\nbytes = [{name = 'a b', bits = 8}]", "m0.bytes.0.name: a part's name is a word"),
        ("[[step]]\nsend = 'raw'\nbytes = [{name = 'a', bits = 0}]", "m0.bytes.0.bits: bits is 1 to 2048."),
        ("[[step]]\nsend = 'raw'\nbytes = [{name = 'a', bits = 8, value = 256}]", "m0.bytes.0.value: 256 does not fit"),
        ("[[step]]\nsend = 'raw'\nbytes = {symbolic = true, bytes = 257}", "m0.bytes.bytes: bytes is 1 to 256."),
        ("[[step]]\nprobe = 5", "line 5: p0.probe: probe is the number of a port, 1 to 4."),
        ("[[step]]\nprobe = true", "line 5: p0.probe: probe is the number of a port, 1 to 4."),
        ("[[step]]\nprobe = 1\npacket = 'tpc'", "line 6: p0.packet.kind: there is no packet 'tpc'; did you mean tcp"),
        ("[[step]]\nprobe = 1\npacket = 1", "line 6: p0.packet: a packet is a name (tcp, udp, icmp"),
        ("[[step]]\nprobe = 1\npacket = {tp_dst = 'x'}", "line 6: p0.packet.tp_dst: 'x' is no value for this field"),
        ("[[step]]\nprobe = 1\npacket = {bytes = '00'}", "line 6: p0.packet: the packet has 1 bytes; a frame has"),
        ("[[step]]\nprobe = 1\npackets = 'tcp'", "line 6: p0.packets: there is no 'packets' here; did you"),
        ("[[step]]\nwait = 'long'", "line 5: w0.wait: 'long' is no value for this field; it takes a number"),
        ("[[step]]\nwait = 86400001", "line 5: w0.wait: a wait has at most 86400000 milliseconds, a day."),
        ("[[step]]\nwait = 5\nrange_ms = [0, 1]", 'line 6: w0.range_ms: range_ms belongs to wait = "symbolic".'),
        ("[[step]]\nwait = 'symbolic'\nrange_ms = [1, 0]", "line 6: w0.range_ms: the range from 1 to 0 is empty."),
        ("[[step]]\nwait = {range = [0, 86400001]}", "line 5: w0.wait: a wait has at most"),
        ("[[step]]\nwait = 1\nprobe = 1", "line 4: p0: a step has one of send, probe, wait; this one has probe and"),
        ("[[step]]\nname = 'x'", "line 4: step 0: a step has one of send, probe, wait; this one has none of them."),
        ("step = 1", "line 4: step: a scenario has 1 to 256 steps, each under [[step]]."),
        ("step = [1]", "line 4: step 0: a step is a table under [[step]]."),
        ("", "line 1: step: a scenario has 1 to 256 steps"),
        ("[[step]]\nwait = 0\n" * 257, "line 4: step: a scenario has 1 to 256 steps"),
        ("steps = []", "line 4: steps: there is no 'steps' here; did you mean step."),
        ("ports = 17", "line 4: ports: ports is a number from 1 to 16."),
        ("handshake = 'no'", "line 4: handshake: handshake is true or false."),
        ("openflow = '0.9'\n[[step]]\nwait = 1", "line 4: openflow: there is no message layout for OpenFlow '0.9'"),
        ("openflow = 1.0\n[[step]]\nwait = 1", "line 4: openflow: a text in quotation marks belongs here."),
    ],
)
def test_an_error_names_line_and_field(steps: str, sentence: str) -> None:
    assert sentence in complaint(HEAD + steps + "\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = 1\n[[step]]\nwait = 1", "line 1: name: a text in quotation marks"),
        ("[[step]]\nwait = 1", "line 1: name: a scenario has a name of up to 64 letters, digits, _ and -."),
        ('name = "../x"\n[[step]]\nwait = 1', "line 1: name: a scenario has a name"),
        ('name = "x"\nsummary = "a\\u001bb"\n[[step]]\nwait = 1', "line 2: summary: the summary is one line"),
        ('name = "x"\nsummary = """\na"""\n[[step]]\nwait = 1\nb', "line 6: this is not TOML: expected '='"),
        ("name = ", "line 1: this is not TOML: invalid value."),
        ('a = 1\nname = "', "line 2: this is not TOML: unterminated string."),
        ('name = "x"\nname = "y"', "line 2: this is not TOML: cannot overwrite a value."),
        ("a = " + "1" * 5000, "mine.toml: this is not TOML: Exceeds the limit"),
        ("a = " + "[" * 60_000, "mine.toml: the values are nested too deeply."),
        ("a = " + "{a = " * 30_000, "mine.toml: the values are nested too deeply."),
        (".".join("a" * 100_000) + " = 1", "line 1: more than 64 dots in one line."),
        ("#" * (loader.MOST_TEXT + 1), "mine.toml: the text is longer than 262144 characters"),
        ('name = "x"\nsummary = "\ud800"', "mine.toml"),
    ],
)
def test_what_is_no_scenario_at_all(text: str, sentence: str) -> None:
    assert sentence in complaint(text)


def test_values_nested_as_deeply_as_toml_allows() -> None:
    for depth in range(50, 400, 7):
        steps = "[[step]]\nsend = 'raw'\nbytes = " + "[" * depth + "]" * depth + "\n"
        assert "mine.toml" in complaint(HEAD + steps)


def test_long_words_are_cut() -> None:
    assert "'aaaa" in complaint(HEAD + "[[step]]\nsend = '" + "a" * 9999 + "'")
    assert "'aaaa" in complaint(HEAD + "a" * 9999 + " = 1")
    assert "'aaaa" in complaint(HEAD + "[[step]]\nprobe = 1\npacket = '" + "a" * 9999 + "'")


def test_too_many_variables_are_refused() -> None:
    steps = (STEP + "match = 'symbolic'\n") * 100
    sentence = "line 255: m83.match.wildcards.dl_dst: the scenario has more than 2000 symbolic fields."
    assert sentence in complaint(HEAD + steps)


# ---------------------------------------------------------------------------------------------- anything else

TEXTS = [loader.load(name).text for name in loader.names()]
NASTY = ["[", "]", "{", "}", '"', "'''", "=", ".", "\n", "#", "-1", "1e9", "nan", "true", "1979-05-27", "0x" + "f" * 99]


def damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        words = text.split(" ")
        place = chance.randrange(len(text) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:place] + chance.choice(NASTY) + text[place + chance.randrange(4) :]
        elif kind == 1:
            text = text[:place] + chr(chance.randrange(0x3000)) + text[place:]
        elif kind == 2:
            words[chance.randrange(len(words))] = chance.choice(words + NASTY)
            text = " ".join(words)
        elif kind == 3:
            lines = text.split("\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(chance.choice(TEXTS).split("\n")))
            text = "\n".join(lines)
        else:
            text = text[:place]
    return text


def check_outcome(text: str) -> None:
    """A scenario whose defaults can be sent, or a sentence; any other exception fails the test."""
    try:
        found = loader.parse(text, "mine.toml")
    except SoftError as error:
        message = str(error)
    else:
        assert len(found.bind({})) == len(found.steps)
        return
    assert message.startswith("mine.toml")
    assert "\n" not in message
    assert len(message) < 600


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_a_damaged_scenario_is_a_sentence_or_a_scenario(text: str, chance: random.Random) -> None:
    check_outcome(damaged(text, chance))


VALUES = st.recursive(
    st.one_of(
        st.booleans().map(lambda value: str(value).lower()),
        st.integers(-(2**70), 2**70).map(str),
        st.floats().map(str),
        st.sampled_from(['"symbolic"', '"output"', '"tcp"', '"00"', '"flow_mod"', '""', '"all"', "1979-05-27"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(
            st.sampled_from(["symbolic", "range", "in", "default", "bytes", "packet", "type", "name", "bits", "body"]),
            inner,
            max_size=3,
        ).map(lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"),
    ),
    max_leaves=6,
)
FIELDS = ["size", "type", "xid", "length", "version", "flags", "priority"]
KEYS = st.sampled_from(
    ["send", "probe", "wait", "range_ms", "packet", "match", "actions", "data", "body", "bytes", *FIELDS]
)


@settings(deadline=None, max_examples=400)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.sampled_from(["flow_mod", "packet_out", "message", "raw", None]))
def test_values_of_the_wrong_kind_are_a_sentence(table: dict[str, str], send: str | None) -> None:
    if send is not None:
        table = {"send": f'"{send}"', **{key: value for key, value in table.items() if key not in ("send", "probe")}}
    check_outcome(HEAD + "[[step]]\n" + "".join(f"{key} = {value}\n" for key, value in table.items()))
