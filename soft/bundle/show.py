"""A bundle for a person: how much there is, what the agent does, and on which input bytes it crashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from soft.bundle.model import Bundle, Path
from soft.scenarios.model import Wait
from soft.trace import Close, Crash, Event, Flood, Hang, Message, Packet, Payload, Trace

# Bytes of a payload that are shown before "...".
_SHOWN_BYTES = 24
_EXAMPLES = 3


def summary(bundle: Bundle, *, most: int = 20) -> Iterator[str]:
    """The lines of `soft bundle show`."""
    manifest, counts = bundle.manifest, bundle.manifest.counts
    yield f"{manifest.agent}, scenario {manifest.scenario}: {'complete' if manifest.complete else 'partial'}"
    yield from (f"  {reason}" for reason in manifest.reasons)
    yield f"{_number(counts.paths, 'path')}, {counts.crashes or 'none'} of them ending in a crash"
    bits = sum(variable.width for variable in bundle.scenario.variables)
    yield f"{_number(counts.conditions, 'distinct condition')} on {_number(bits, 'bit')} of input" + _sizes(bundle)
    if manifest.normalisation:
        yield f"normalised: {', '.join(manifest.normalisation)}"
    yield from (f"limit: {limit}" for limit in manifest.limits)
    marks = Counter(mark for path in bundle.paths for mark in path.marks)
    yield from (f"marked {mark}: {_number(count, 'path')}" for mark, count in marks.most_common())
    yield ""
    yield f"{_number(counts.outputs, 'distinct output')}:"
    frequency = Counter(path.trace for path in bundle.paths)
    for number, count in frequency.most_common(most):
        yield f"  trace {number}, {_number(count, 'path')}"
        yield from (f"    {line}" for line in describe_trace(bundle.traces[number]))
    if len(frequency) > most:
        yield f"  ... and {len(frequency) - most} more (--all shows them)"
    yield from _crashes(bundle, most)


def input_lines(bundle: Bundle, path: Path) -> Iterator[str]:
    """The bytes that take a path, step by step."""
    for number, step in enumerate(bundle.scenario.bind(path.witness)):
        if isinstance(step, Wait):
            yield f"step {number}: wait {step.milliseconds} ms"
        else:
            yield f"step {number}: {step.id} {(step.payload.concrete() or b'').hex()}"


def describe_trace(trace: Trace) -> Iterator[str]:
    if not trace:
        yield "nothing"
    for event in trace:
        yield f"step {event.step}: {_describe(event)}"


def _describe(event: Event) -> str:
    match event:
        case Message(payload=payload):
            return f"message {_payload(payload)}"
        case Packet(port=port, payload=payload):
            return f"packet on port {port} {_payload(payload)}"
        case Crash(reason=reason):
            return f"crash ({reason})"
        case Close():
            return "closes the control connection"
        case Hang():
            return "never becomes quiet"
        case Flood():
            return "sends without end"


def _payload(payload: Payload) -> str:
    # Piece by piece and without cutting terms: those of a stranger may be deep.
    shown = "".join(piece.hex() if isinstance(piece, bytes) else ".." * (piece.width // 8) for piece in payload.pieces)
    size = f"of {payload.size} bytes" if payload.length is None else f"of up to {payload.size} bytes"
    return f"{size}: {shown[: 2 * _SHOWN_BYTES]}{'...' if payload.size > _SHOWN_BYTES else ''}"


def _sizes(bundle: Bundle) -> str:
    lengths = [len(path.conditions) for path in bundle.paths]
    return f"; {sum(lengths) / len(lengths):.1f} a path, at most {max(lengths)}" if lengths else ""


def _crashes(bundle: Bundle, most: int) -> Iterator[str]:
    """Examples of crashes. One output may have several causes, so each gets a few."""
    shown: Counter[int] = Counter()
    for number, path, crash in bundle.crashes():
        if shown[path.trace] >= _EXAMPLES or (path.trace not in shown and len(shown) >= most):
            continue
        if not shown:
            yield ""
            yield f"Crashes, up to {_EXAMPLES} examples an output:"
        shown[path.trace] += 1
        yield f"  {crash.reason} in step {crash.step}, path {number}:"
        yield from (f"    {line}" for line in input_lines(bundle, path))


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
