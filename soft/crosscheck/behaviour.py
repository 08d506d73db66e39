"""What an agent does, in kind: the classes by which differences are sorted, how serious they are, and words for them.

A *way* of differing is a pair of kinds of behaviour. Kinds leave out what varies with the input within one behaviour
(the bytes of a packet, its port, lengths) and keep what a person would call another behaviour (an error's type and
code, a crash's signal, silence).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soft.bundle.model import group_key
from soft.crosscheck.model import Difference, Severity
from soft.openflow.decode import Item, describe_packet, items_of
from soft.openflow.layout import Names
from soft.openflow.openflow10 import ERROR_CODES, ERROR_TYPES, NO_BUFFER, PACKET_IN_REASONS, STATS, TYPES
from soft.scenarios.model import Probe, Scenario
from soft.solve.terms import Term
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload, Trace

# One event in kind: the step, what it is, and details. "?" is a detail that depends on the input.
Kind = tuple[int, str, str]
Met = tuple[tuple[Kind, ...], tuple[Kind, ...]]  # what two agents show for one input
_ERROR, _PACKET_IN, _STATS_REPLY = 1, 10, 17
# The bytes of a packet_in before the packet.
_PACKET_IN_HEAD = 18
# Errors that are named one by one before they are just errors.
_MOST_ERRORS = 3
_MISS = "packet_in no_match"
_ABOUT = "error about "
_DELIVERY = 3  # the rank of what happens to packets, see `_rank`


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """How two agents differ: the kinds of events that only one of them shows, as far as they are the cause.

    What both show is left out. So is what follows from the rest: an agent that crashes forwards nothing, and one that
    answers with an error does not either. `what` says where they differ if they show the same kinds: in order, ports,
    lengths or bytes.
    """

    left: tuple[Kind, ...]
    right: tuple[Kind, ...]
    what: str


def kinds(trace: Trace) -> tuple[Kind, ...]:
    """A trace in kind. Packets that leave one after the other count once."""
    result: list[Kind] = []
    for event in trace:
        kind = _kind(event)
        if not (isinstance(event, Packet) and result and result[-1] == kind):
            result.append(kind)
    return tuple(result)


def way_of(left: Trace, right: Trace) -> Way:
    a, b = _placed(left), _placed(right)
    only = a - b, b - a
    if any(only):
        # A packet that leaves through one port more has the cause of that one: what both forward is no part of it.
        shown = [{kind for kind, _ in side} for side in only]
        first = min(_rank(kind) for side in shown for kind in side)
        sides = [tuple(sorted(kind for kind in side if _rank(kind) == first)) for side in shown]
        if not all(sides):
            # What one agent does and the other does not at all has one cause, wherever a packet goes to and whatever
            # the error is called.
            sides = [general(side) for side in sides]
        return Way(sides[0], sides[1], "ports" if sides[0] == sides[1] else "")
    if (orders := (kinds(left), kinds(right)))[0] != orders[1]:
        return Way(*orders, "order")
    shapes = group_key(left), group_key(right)
    pairs = [(x, y) for x, y in zip(left, right, strict=True) if x != y]
    both = tuple(sorted(set(kinds(tuple(x for x, _ in pairs)))))
    longer = any(x[3] != y[3] for x, y in zip(*shapes, strict=True) if x[3] >= 0 and y[3] >= 0)
    return Way(both, both, "lengths" if longer else "bytes")


def _placed(trace: Trace) -> Counter[tuple[Kind, int]]:
    """The events in kind, packets with their ports."""
    return Counter((_kind(event), event.port if isinstance(event, Packet) else 0) for event in trace)


def general(kinds: Iterable[Kind]) -> tuple[Kind, ...]:
    """Kinds without the details that do not make another cause, each once."""
    return tuple(sorted({_general(kind) for kind in kinds}))


def _general(kind: Kind) -> Kind:
    """A kind without the details that do not make another cause."""
    step, what, detail = kind
    if _rank(kind) == _DELIVERY:
        return step, "delivery", ""
    if detail.startswith("error ") and not detail.startswith(_ABOUT):
        return step, what, f"{_ABOUT}{_blamed(detail)}"
    return kind


def cause(kinds: Iterable[Kind], scenario: Scenario) -> tuple[Kind, ...]:
    """Kinds by which causes are told apart. An answer is one, whatever was asked for.

    A packet that a message carries is delivered also if no rule matches it; for a probe, that tells of a missing rule.
    """
    found = set()
    for kind in general(kinds):
        step, what, detail = kind
        if detail == _MISS and not isinstance(scenario.steps[step], Probe):
            kind = step, "delivery", ""
        elif what == "message" and detail != _MISS and not detail.startswith(_ABOUT):
            kind = step, what, "answer"
        found.add(kind)
    return tuple(sorted(found))


def _blamed(detail: str) -> str:
    """What an error says is wrong: a part of the message, such as an action, or the request as a whole."""
    kind = detail.removeprefix("error ").partition("/")[0]
    part = kind.removeprefix("bad_")
    return "the request" if part == kind or part == "request" else f"its {part}"


def _rank(kind: Kind) -> int:
    """Which events come first as a cause: an ending, an answer, that no rule matched, and then what a rule did."""
    if kind[1] not in ("message", "packet"):
        return 0
    if kind[2] == _MISS:
        return 2
    return _DELIVERY if kind[1] == "packet" or kind[2].startswith("packet_in") else 1


def _kind(event: Event) -> Kind:
    match event:
        case Message(step, payload):
            return step, "message", _message(payload)
        case Packet(step, _, _):
            return step, "packet", ""
        case Crash(step, reason):
            return step, "crash", reason
        case Close(step) | Hang(step) | Flood(step):
            return step, type(event).__name__.lower(), ""


def _message(payload: Payload) -> str:
    code = _number(payload, 1, 2)
    if code is None:
        return "?"
    name = TYPES.name(code) or f"type {code}"
    if code == _ERROR:
        return f"error {error_name(_number(payload, 8, 10), _number(payload, 10, 12))}"
    if code == _PACKET_IN:
        return f"packet_in {_named(PACKET_IN_REASONS, _number(payload, 16, 17))}"
    if code == _STATS_REPLY:
        return f"stats_reply {_named(STATS, _number(payload, 8, 10))}"
    return name


def error_name(kind: int | None, code: int | None) -> str:
    """An error's type and code: bad_action/bad_argument."""
    codes = ERROR_CODES.get(kind) if kind is not None else None
    second = "?" if code is None else (codes.name(code) if codes is not None else None) or str(code)
    return f"{_named(ERROR_TYPES, kind)}/{second}"


def _named(names: Names, value: int | None) -> str:
    return "?" if value is None else names.name(value) or str(value)


def _number(payload: Payload, start: int, stop: int) -> int | None:
    """Bytes of a payload as a number, or None where they are missing or depend on the input."""
    if stop > payload.size:
        return None
    offset = 0
    for piece in payload.pieces:
        size = len(piece) if isinstance(piece, bytes) else piece.width // 8
        if start < offset + size:
            if isinstance(piece, Term) or stop > offset + size:
                return None
            return int.from_bytes(piece[start - offset : stop - offset], "big")
        offset += size
    return None


# ---------------------------------------------------------------------------------------------- concrete traces


def severity(left: Trace, right: Trace) -> Severity:
    """How serious it is that two agents do these two different things with one input."""
    if _endings(left) != _endings(right):
        return "crash"
    if _deliveries(left) != _deliveries(right):
        return "forwarding"
    a, b = _messages(left), _messages(right)
    if sum(key[1].startswith("error") for key in a) != sum(key[1].startswith("error") for key in b):
        return "lost error"
    if len(a) != len(b):
        return "lost message"
    return "different error" if a != b else "content"


def _endings(trace: Trace) -> list[Event]:
    return [event for event in trace if isinstance(event, Crash | Close | Hang | Flood)]


def _deliveries(trace: Trace) -> list[tuple[int, str]]:
    """Where packets went: through which ports, and to the controller."""
    ports = [(event.step, str(event.port)) for event in trace if isinstance(event, Packet)]
    return ports + [key for key in _messages(trace) if key[1].startswith("packet_in")]


def _messages(trace: Trace) -> list[tuple[int, str]]:
    return sorted((event.step, _message(event.payload)) for event in trace if isinstance(event, Message))


def first_difference(left: Trace, right: Trace) -> Difference:
    """The first event in which two concrete traces differ, and the first byte of it."""
    for number in range(max(len(left), len(right))):
        x = left[number] if number < len(left) else None
        y = right[number] if number < len(right) else None
        if x == y:
            continue
        if isinstance(x, Message | Packet) and type(x) is type(y) and isinstance(y, Message | Packet):
            if (x.step, getattr(x, "port", 0)) == (y.step, getattr(y, "port", 0)):
                a, b = x.payload.concrete() or b"", y.payload.concrete() or b""
                same = next((i for i, (p, q) in enumerate(zip(a, b, strict=False)) if p != q), min(len(a), len(b)))
                return Difference(number, same)
        return Difference(number)
    raise ValueError("the traces are equal")


def clauses(left: Trace, right: Trace, scenario: Scenario, *, ports: bool = True) -> tuple[str, str]:
    """What each of two agents does that the other does not, as clauses without subject: "is silent"."""
    only = _without(left, right), _without(right, left)
    if all(only) and [event[:3] for event in group_key(left)] == [event[:3] for event in group_key(right)]:
        at = first_difference(left, right)
        a, b = left[at.event], right[at.event]
        if isinstance(a, Message | Packet) and isinstance(b, Message | Packet) and kinds(left) == kinds(right):
            if a.payload.size != b.payload.size:
                return _size(a, scenario), _size(b, scenario)
            if (found := _field(a, b, scenario)) is not None:
                return found
            return _content(a, at, scenario), _content(b, at, scenario)
    return (
        _clause(only[0], bool(left), scenario, ports),
        _clause(only[1], bool(right), scenario, ports),
    )


def way_clauses(way: Way, met: Iterable[Met], scenario: Scenario) -> tuple[str, str] | None:
    """What two agents do in a region that holds several behaviours, given what they show there in kind.

    None if they do the same in kind: that has to be told by an example.
    """
    if way.what:
        return None
    pairs = list(met)
    left = _side_clause(way.left, pairs, scenario)
    right = _side_clause(way.right, [pair[::-1] for pair in pairs], scenario)
    return left, right


def _side_clause(shown: Iterable[Kind], met: Sequence[Met], scenario: Scenario) -> str:
    wanted = set(cause(shown, scenario))
    if not wanted:
        return "does not" if any(mine for mine, _ in met) else "is silent"
    options: set[Kind] = set()
    for mine, other in met:
        kinds = [kind for kind in mine if wanted.intersection(cause([kind], scenario))]
        # What the other agent shows too is told only if there is nothing else: it does it more often.
        options.update([kind for kind in kinds if kind not in other] or kinds)
    return _options(sorted(options), scenario)


def _options(options: list[Kind], scenario: Scenario) -> str:
    # An error whose code depends on the input is told by those of its type that are known, if there are any.
    known = {kind[2].partition("/")[0] for kind in options if not kind[2].endswith("/?")}
    options = [kind for kind in options if not kind[2].endswith("/?") or kind[2].partition("/")[0] not in known]
    errors = list(dict.fromkeys(kind[2].removeprefix("error ") for kind in options if kind[2].startswith("error ")))
    if len(errors) > 1 and len(errors) == len({kind[2] for kind in options}):
        named = f" ({', '.join(errors[:-1])} or {errors[-1]})" if len(errors) <= _MOST_ERRORS else ""
        return f"answers with an error{named}"
    return " or ".join(dict.fromkeys(_kind_words(kind, scenario) for kind in options))


def _kind_words(kind: Kind, scenario: Scenario) -> str:
    step, what, detail = kind
    packet = "the probe" if isinstance(scenario.steps[step], Probe) else "the packet"
    if what == "message":
        if detail.startswith("packet_in "):
            return f"sends {packet} to the controller" + (" (no_match)" if detail == _MISS else "")
        return f"answers with the {detail}" if detail.startswith("error ") else f"sends {detail}"
    if what == "packet":
        return f"forwards {packet}"
    return f"crashes ({detail})" if what == "crash" else _ENDINGS[what]


_ENDINGS = {"close": "closes the connection", "hang": "hangs", "flood": "sends without end"}


def _without(trace: Trace, other: Trace) -> list[Event]:
    rest = Counter(other)
    result = []
    for event in trace:
        if rest[event]:
            rest[event] -= 1
        else:
            result.append(event)
    return result


def _clause(events: list[Event], anything: bool, scenario: Scenario, ports: bool) -> str:
    if not events:
        return "does nothing more" if anything else "is silent"
    parts: list[str] = []
    done: set[int] = set()
    for event in events:
        if isinstance(event, Packet):
            if event.step not in done:
                done.add(event.step)
                out = sorted({e.port for e in events if isinstance(e, Packet) and e.step == event.step})
                parts.append(_forwards(event.step, out, scenario, ports))
        else:
            parts.append(_words(event, scenario))
    return _listed(parts)


def _forwards(step: int, out: list[int], scenario: Scenario, ports: bool) -> str:
    what = "the probe" if isinstance(scenario.steps[step], Probe) else "the packet"
    if not ports:
        return f"forwards {what}" + (" to several ports" if len(out) > 1 else "")
    return f"forwards {what} to port{'s' if len(out) > 1 else ''} {_listed([str(port) for port in out])}"


def _words(event: Event, scenario: Scenario) -> str:
    match event:
        case Message(step, payload):
            kind = _message(payload)
            if kind.startswith("error "):
                return f"answers with the error {kind.removeprefix('error ')}"
            if kind.startswith("packet_in "):
                what = "the probe" if isinstance(scenario.steps[step], Probe) else "the packet"
                return f"sends {what} to the controller ({kind.removeprefix('packet_in ')})"
            return f"sends {'a message of unknown type' if kind == '?' else kind}"
        case Crash(_, reason):
            return f"crashes ({reason})"
        case Close():
            return "closes the connection"
        case Hang():
            return "hangs"
        case Flood():
            return "sends without end"
        case Packet():
            raise AssertionError("packets are put into words together")


def _field(left: Message | Packet, right: Message | Packet, scenario: Scenario) -> tuple[str, str] | None:
    """Two payloads that differ in a field: what is sent, and with what there. None if they differ in plain bytes."""
    if not isinstance(left, Message) or not isinstance(right, Message):
        return _packet(left, left.payload, right, right.payload, scenario)
    is_packet_in = _message(left.payload).startswith("packet_in ")
    fields = [list(items_of(event.payload, scenario.openflow)) for event in (left, right)]
    for one, other in zip(*fields, strict=False):
        if one == other or one.name == "data":
            continue
        if is_packet_in and one.name == "buffer_id":
            states = ["unbuffered" if item.value == NO_BUFFER else "buffered" for item in (one, other)]
            return f"{_words(left, scenario)}, {states[0]}", f"{_words(right, scenario)}, {states[1]}"
        if one.value is None:
            return _entry(left, one, right, other, scenario)
        return (
            f"{_words(left, scenario)} with {one.name} {one.text}",
            f"{_words(right, scenario)} with {other.name} {other.text}",
        )
    if not is_packet_in:
        return None
    quoted = [event.payload.slice(_PACKET_IN_HEAD, event.payload.size) for event in (left, right)]
    return _packet(left, quoted[0], right, quoted[1], scenario)


def _packet(
    left: Message | Packet, one: Payload, right: Message | Packet, other: Payload, scenario: Scenario
) -> tuple[str, str] | None:
    """As `_field`, for a packet."""
    texts = describe_packet(one), describe_packet(other)
    if texts[0] == texts[1]:
        return None
    return f"{_sends(left, scenario)} as {texts[0]}", f"{_sends(right, scenario)} as {texts[1]}"


def _sends(event: Message | Packet, scenario: Scenario) -> str:
    return _forwards(event.step, [], scenario, False) if isinstance(event, Packet) else _words(event, scenario)


def _entry(left: Message, one: Item, right: Message, other: Item, scenario: Scenario) -> tuple[str, str] | None:
    """As `_field`, for an entry of a list, whose text has its fields."""
    parts = one.text.split(", "), other.text.split(", ")
    if "." not in one.name or len(parts[0]) != len(parts[1]):
        return None
    a, b = next((a, b) for a, b in zip(*parts, strict=True) if a != b)
    return f"{_words(left, scenario)} with {a}", f"{_words(right, scenario)} with {b}"


def _content(event: Message | Packet, at: Difference, scenario: Scenario) -> str:
    """Two payloads that differ in bytes: what is sent, and from where on it differs."""
    data = event.payload.concrete() or b""
    byte = at.byte or 0
    shown = data[byte : byte + 4].hex()
    return f"{_sends(event, scenario)} with {shown or 'nothing'} from byte {byte} on"


def _size(event: Message | Packet, scenario: Scenario) -> str:
    """Two payloads of other lengths: what is sent, and how much."""
    words = _sends(event, scenario)
    if isinstance(event, Packet):
        return f"{words} in {event.payload.size} bytes"
    quoted = event.payload.size - _PACKET_IN_HEAD
    if _message(event.payload).startswith("packet_in ") and quoted >= 0:
        amount = "nothing" if not quoted else "1 byte" if quoted == 1 else f"{quoted} bytes"
        return f"{words}, quoting {amount} of it"
    return f"{words} in a message of {event.payload.size} bytes"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
