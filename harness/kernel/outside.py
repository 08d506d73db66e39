"""What is outside of the agent in one run: the controller and the cables, driven by the scenario's steps.

Bytes go in step by step, whenever the agent has nothing left to do; everything that comes out is kept with the step it
belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.kernel.clock import Clock, later, until
from harness.kernel.descriptions import Frames, Stream
from harness.kernel.endings import Flooded, Quiet
from harness.machine.ends import Unsupported
from harness.machine.values import Sym, Value, make, term_of
from soft.openflow.cut import cut_steps
from soft.scenarios.model import Probe, Scenario, Send, Step, Wait
from soft.solve import terms as t
from soft.solve.evaluate import evaluate
from soft.solve.terms import Term
from soft.trace import Close, Event, Packet, Payload

# Timers that fire within this time after a step belong to it: an agent may look at its queue every few milliseconds.
SETTLE_MS = 20
# An agent that has not read what it was sent may be one that looks later: Open vSwitch does not read from a controller
# for half a second after it has connected. The native runner waits as long.
UNREAD_MS = 1500
# More than any answer to a step; the native runner has the same kind of bound.
FLOOD_BYTES = 1 << 20
# An agent that polls without ever sleeping is quiet after this many polls that found nothing.
IDLE_POLLS = 64


class Plan:
    """The steps of a scenario, made ready once: for each byte an integer or a term.

    `inside` turns a term over the scenario's fields into one over what the explorer's variables are; without it all
    bytes are integers.
    """

    def __init__(self, scenario: Scenario, inside: Callable[[Term], Term] | None) -> None:
        self.steps: tuple[Step, ...] = scenario.steps
        self._inside = inside
        self._ranges = {variable.name: variable.range for variable in scenario.variables}
        self._templates = [
            None
            if isinstance(step, Wait) or inside is None
            else [part if isinstance(part, int) else inside(part) for part in step.payload.each_byte()]
            for step in scenario.steps
        ]

    def duration(self, step: Wait, values: Mapping[str, int]) -> Value:
        """How long to wait, in milliseconds."""
        milliseconds = step.milliseconds
        if isinstance(milliseconds, int):
            return milliseconds
        if self._inside is None:
            return evaluate(milliseconds, values)
        term = self._inside(milliseconds)
        return make(t.zero_extend(64 - term.width, term), evaluate(milliseconds, values))

    def longest(self, step: Wait) -> int:
        """More milliseconds than a wait has in no run."""
        milliseconds = step.milliseconds
        if isinstance(milliseconds, int):
            return milliseconds
        known = self._ranges.get(milliseconds.args[0]) if milliseconds.op == "var" else None
        return milliseconds.most if known is None else known[1]

    def bytes_of(self, step: int, values: Mapping[str, int], pin: Callable[[Value], int]) -> list[Value]:
        """The bytes of a step in a run with these inputs."""
        template, current = self._templates[step], self.steps[step]
        assert isinstance(current, Send | Probe)
        payload = current.payload
        if self._inside is None:
            return list(payload.evaluate(values))
        assert template is not None
        data = Payload(payload.pieces).evaluate(values)
        result: list[Value] = [
            byte if isinstance(part, int) else Sym(part, byte) for part, byte in zip(template, data, strict=True)
        ]
        if payload.length is not None:
            size = pin(make(self._inside(payload.length), len(payload.evaluate(values))))
            result = result[:size]
        return result


class Outside:
    """The controller's end of the control channel, the far ends of the ports, and how far the scenario is."""

    def __init__(
        self, plan: Plan, values: Mapping[str, int], clock: Clock, pin: Callable[[Value], int], framing: str
    ) -> None:
        self._plan = plan
        self._values = values
        self._clock = clock
        self._pin = pin
        self._framing = framing
        self.step = -1
        self.horizon: Value = clock.now
        self.longest = 0
        """The milliseconds that are at most left of a wait."""
        self.control: Stream | None = None
        self.ports: dict[int, Frames | Stream] = {}
        self.events: list[Event] = []
        self._writes: list[tuple[int, Payload]] = []
        self._port_streams: dict[int, list[Value]] = {}
        self._sent = 0
        self._idle_polls = 0
        self.closed = False
        self._patient = False
        self.waiting = False
        """The scenario lets time pass."""
        self.all_threads_run = True
        """Whoever would read what is sent can do so."""
        self.before_output: Callable[[Sequence[Value]], Sequence[Value]] = lambda data: data
        """Shown everything that goes out; what it gives is what goes."""
        self.before_step: Callable[[], None] = lambda: None

    def follow(self, values: Mapping[str, int]) -> None:
        """From now on the scenario goes on with these inputs."""
        self._values = values

    # ---------------------------------------------------------------------------------------------- going in

    def next_step(self) -> None:
        """The agent has nothing left to do: time passes if this step is a wait, and the next one begins."""
        self.before_step()
        steps = self._plan.steps
        if 0 <= self.step < len(steps) and isinstance(steps[self.step], Wait):
            self._clock.advance(self.horizon)
        self.step += 1
        self.waiting = self._patient = False
        self._idle_polls = 0
        if self.step >= len(steps):
            self.step = len(steps) - 1
            if self.control is not None and self.control.unseen and not self.closed:
                raise Unsupported("an agent that does not look at what its controller sends")
            if not self.all_threads_run and self._unread():
                raise Unsupported("something that nobody has read, as a thread stays frozen")
            raise Quiet
        step = steps[self.step]
        if isinstance(step, Wait):
            self.waiting = True
            self.horizon = later(self._clock.now, self._plan.duration(step, self._values))
            self.longest = self._plan.longest(step)
            return
        self._clock.settle(SETTLE_MS)
        if isinstance(step, Send):
            if self.control is not None and not self.closed:
                self.control.deliver(self._plan.bytes_of(self.step, self._values, self._pin))
            return
        port = self.ports.get(step.port)
        if port is None:
            return
        frame = self._plan.bytes_of(self.step, self._values, self._pin)
        if isinstance(port, Frames):
            port.deliver(frame)
        else:
            port.deliver([*len(frame).to_bytes(2, "big"), *frame])

    def reaches(self, deadline: Value) -> bool:
        """Whether a timer fires before the next step.

        Between other steps only a moment passes: a timer counts there only if it is known to fire within it. Before a
        wait not even that: it gives timers all the time that there is.
        """
        if self.waiting:
            return self._clock.not_after(deadline, self.horizon)
        steps = self._plan.steps
        if self.step + 1 < len(steps) and isinstance(steps[self.step + 1], Wait):
            return False
        left = until(deadline, self._clock.now)
        if self._unread() and not self._patient:
            self._patient = True
            self._clock.settle(UNREAD_MS)
        return isinstance(left, int) and self._clock.spend(left)

    def _unread(self) -> bool:
        """Whether the agent has not taken what it was sent."""
        ends = [self.control, *self.ports.values()]
        return any(end is not None and end.inbox for end in ends)

    def found_nothing(self) -> None:
        """A poll that would not wait found nothing. Too many of these in a row, and the agent counts as quiet."""
        self._idle_polls += 1
        if self._idle_polls > IDLE_POLLS:
            self.next_step()

    # ---------------------------------------------------------------------------------------------- coming out

    def control_written(self, data: Sequence[Value], length: Sym | None = None) -> None:
        """Bytes for the controller; with a `length`, only that many of them."""
        data, length = self._shown(data, length)
        if not self.closed:
            self._writes.append((max(self.step, 0), payload_of(data, length)))

    def control_closed(self) -> None:
        if not self.closed:
            self.closed = True
            self.events.append(Close(max(self.step, 0)))

    def frame_written(self, port: int, data: Sequence[Value], length: Sym | None = None) -> None:
        data, length = self._shown(data, length)
        self.events.append(Packet(max(self.step, 0), port, payload_of(data, length)))

    def port_stream_written(self, port: int, data: Sequence[Value]) -> None:
        """Frames with two bytes of length before each."""
        stream = self._port_streams.setdefault(port, [])
        stream.extend(data)
        while len(stream) >= 2:
            size = self._pin(stream[0]) << 8 | self._pin(stream[1])
            if len(stream) < 2 + size:
                return
            self.frame_written(port, stream[2 : 2 + size])
            del stream[: 2 + size]

    def _shown(self, data: Sequence[Value], length: Sym | None) -> tuple[Sequence[Value], Sym | None]:
        """What goes out, shown and counted."""
        self._idle_polls = 0
        if length is not None:
            *data, size = self.before_output([*data, length])
            data, length = (data, size) if isinstance(size, Sym) else (data[:size], None)
        else:
            data = self.before_output(data)
        self._sent += len(data)
        if self._sent > FLOOD_BYTES:
            raise Flooded
        return data, length

    @property
    def written(self) -> int:
        """How many writes the controller got."""
        return len(self._writes)

    def all_events(self, choose: Callable[[Term], int]) -> list[Event]:
        """Everything that came out, the control bytes cut into messages."""
        return [*cut_steps(self._writes, choose), *self.events]


def payload_of(data: Sequence[Value], length: Sym | None = None) -> Payload:
    """Values as a payload: runs of integers as bytes, the rest as terms."""
    pieces: list[bytes | Term] = []
    run = bytearray()
    for value in data:
        if value.__class__ is int:
            run.append(value)
            continue
        if run:
            pieces.append(bytes(run))
            run.clear()
        assert isinstance(value, Sym)
        pieces.append(value.term)
    if run:
        pieces.append(bytes(run))
    return Payload(tuple(pieces), None if length is None else term_of(length, 16))
