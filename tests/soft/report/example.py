"""Findings made by hand: every kind of event, several agents, relations, parts of fields, doubts and odd texts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from soft.crosscheck.folder import write_findings
from soft.crosscheck.model import (
    FORMAT,
    Agent,
    Behaviour,
    Cluster,
    Comparison,
    Confirmation,
    Counts,
    Difference,
    Doubt,
    EventRecord,
    Example,
    FieldSet,
    Finding,
    Findings,
    Region,
    Relation,
    ScenarioRecord,
    Statistics,
)
from soft.crosscheck.words import event_records, example_of
from soft.scenarios import loader
from soft.scenarios.model import Scenario
from soft.trace import Crash, Message, Packet, Payload, Trace

TINY = """\
name = "tiny"
summary = "A packet_out with symbolic fields, then a probe"

[[step]]
send = "packet_out"
xid = 1
buffer_id = "symbolic"
in_port = { symbolic = true, range = [1, 100] }
actions = [
    { type = "symbolic", body = "symbolic" },
    { type = "output", port = "symbolic", max_len = "symbolic" },
]
data = { packet = "tcp" }

[[step]]
probe = 1
packet = "tcp"

[[step]]
wait = 20
"""
BUFFER, IN_PORT, KIND, BODY = "m0.buffer_id", "m0.in_port", "m0.actions.0.type", "m0.actions.0.body"
PORT, MAX_LEN = "m0.actions.1.port", "m0.actions.1.max_len"
NO_BUFFER, CONTROLLER = 0xFFFFFFFF, 0xFFFD
# A text that breaks out of everything that forgets to escape it.
HOSTILE = """"><script>alert(1)</script>'{{body}}<img src=x onerror=alert(1)>&amp;`$(id)`\\"""

ERROR = Message(0, Payload.of(bytes.fromhex("0101000c0000000100020004")))
OTHER_ERROR = Message(0, Payload.of(bytes.fromhex("0101000c0000000100020005")))
BARRIER = Message(0, Payload.of(bytes.fromhex("0113000800000007")))
FRAME = bytes.fromhex("020000000a02020000000a010800") + bytes.fromhex(
    "4500001c00010000401166ce0a0000010a0000020035003500080000" + "00" * 18
)


def scenario() -> Scenario:
    return loader.parse(TINY, "example")


def same(low: int) -> tuple[tuple[int, int], ...]:
    return ((low, low),)


class Maker:
    """Collects findings of one pair of agents in the scenario `tiny`."""

    def __init__(self, agents: tuple[str, ...] = ("left", "right")) -> None:
        self.agents = agents
        self.findings: list[Finding] = []
        self.clusters: list[Cluster] = []

    def add(
        self,
        heading: str,
        severity: str,
        values: dict[str, int],
        sets: list[FieldSet],
        traces: tuple[Trace, Trace],
        summaries: tuple[str, str],
        *,
        relations: tuple[Relation, ...] = (),
        confirmation: Confirmation | None = None,
        difference: Difference | None = None,
        others: tuple[Behaviour, ...] = (),
        same_cluster: bool = False,
    ) -> Finding:
        number = len(self.findings) + 1
        if same_cluster:
            cluster = self.clusters[-1]
        else:
            cluster = Cluster(
                id=f"{0xC0000000 + number:012x}",
                scenario="tiny",
                heading=heading,
                severity=severity,  # type: ignore[arg-type]
                findings=(),
                fields=tuple(field.field for field in sets),
                folder=f"tiny-{number}",
                covered=True,
            )
            self.clusters.append(cluster)
        texts = [field.text for field in sets] + [f"{r.left} {r.operator} {r.right}" for r in relations]
        behaviours = tuple(
            Behaviour(agent, words, event_records(trace, "1.0"), path=number, trace=number)
            for agent, words, trace in zip(self.agents, summaries, traces, strict=False)
        )
        finding = Finding(
            id=f"{0xF0000000 + number:012x}",
            cluster=cluster.id,
            scenario="tiny",
            agents=self.agents[:2],  # type: ignore[arg-type]
            severity=severity,  # type: ignore[arg-type]
            behaviours=behaviours,  # type: ignore[arg-type]
            others=others,
            difference=difference or Difference(0),
            example=example_of(scenario(), scenario().complete(values)),
            region=Region(tuple(sets), relations, f"{', '.join(texts)}; everything else free", True, bool(sets)),
            fields=tuple(dict.fromkeys([f.field for f in sets] + [n for r in relations for n in (r.left, r.right)])),
            pairs=1,
            conditions=f"{cluster.folder}/{0xF0000000 + number:012x}.smt2",
            confirmation=confirmation,
        )
        self.findings.append(finding)
        self.clusters[-1] = msgspec.structs.replace(cluster, findings=(*cluster.findings, finding.id))
        return finding

    def done(self, *, doubts: tuple[Doubt, ...] = ()) -> Findings:
        record = scenario()
        comparison = Comparison(
            scenario="tiny",
            agents=self.agents[:2],  # type: ignore[arg-type]
            verdict="differ" if self.findings else "unknown" if doubts else "agree",
            counts=Counts((10, 12), (4, 5), 20, len(self.findings)),
            findings=tuple(finding.id for finding in self.findings),
            doubts=doubts,
            statistics=Statistics(0.25, 17),
        )
        return Findings(
            format=FORMAT,
            tool="soft 0.1.0",
            agents=tuple(Agent(label, (f"bundles/{number}",)) for number, label in enumerate(self.agents)),
            scenarios=(ScenarioRecord("tiny", record.digest, record.summary, "1.0", TINY),),
            comparisons=(comparison,),
            findings=tuple(self.findings),
            clusters=tuple(self.clusters),
            seconds=0.5,
            queries=17,
        )


def findings(agents: tuple[str, ...] = ("left", "right")) -> Findings:
    """A crash, a wrong port, a lost error and other bytes; the first is confirmed."""
    maker = Maker(agents)
    unbuffered = FieldSet(BUFFER, same(NO_BUFFER), f"{BUFFER} = none", name=BUFFER)
    maker.add(
        f"packet_out with buffer_id = none, actions.1.port = controller: {agents[0]} crashes (SIGSEGV), {agents[1]} "
        "answers with the error bad_action/bad_out_port",
        "crash",
        {BUFFER: NO_BUFFER, PORT: CONTROLLER},
        [unbuffered, FieldSet(PORT, same(CONTROLLER), f"{PORT} = controller", name=PORT)],
        ((Crash(0, "SIGSEGV"),), (ERROR,)),
        ("crashes (SIGSEGV)", "answers with the error bad_action/bad_out_port"),
        confirmation=Confirmation("confirmed", 2, ("Both agents did what was predicted, twice.",)),
    )
    maker.add(
        f"packet_out with buffer_id = none, actions.1.port ≤ 4: {agents[0]} forwards, {agents[1]} does not",
        "forwarding",
        {BUFFER: NO_BUFFER, PORT: 2, IN_PORT: 1},
        [unbuffered, FieldSet(PORT, ((1, 4),), f"{PORT} from 1 to 4", name=PORT)],
        ((BARRIER, Packet(0, 2, Payload.of(FRAME)), Packet(1, 3, Payload.of(FRAME))), (BARRIER,)),
        ("forwards the packet to port 2", "does nothing more"),
        relations=(Relation(IN_PORT, "≠", PORT),),
        difference=Difference(1),
        confirmation=Confirmation("flaky", 3, ("Once it was silent.",)),
    )
    maker.add(
        f"packet_out with actions.0.type = set_vlan_vid, actions.0.vlan_vid ≥ 4096: {agents[0]} is silent, {agents[1]} "
        "answers with the error bad_action/bad_argument",
        "lost error",
        {KIND: 1, BODY: 0x1000_0000, BUFFER: 5},
        [
            FieldSet(KIND, same(1), f"{KIND} = set_vlan_vid", name=KIND),
            FieldSet(BODY, ((0x1000, 0xFFFF),), "m0.actions.0.vlan_vid ≥ 4096", 16, 16, "m0.actions.0.vlan_vid"),
        ],
        ((), (OTHER_ERROR,)),
        ("is silent", "answers with the error bad_action/bad_argument"),
    )
    maker.add(
        f"packet_out with buffer_id ≠ none: {agents[0]} and {agents[1]} send other bytes",
        "content",
        {BUFFER: 7},
        [FieldSet(BUFFER, ((0, NO_BUFFER - 1),), f"{BUFFER} ≠ none", name=BUFFER)],
        ((ERROR,), (OTHER_ERROR,)),
        (
            "answers with the error bad_action/bad_out_port with 04 from byte 11 on",
            "answers with the error bad_action/bad_argument with 05 from byte 11 on",
        ),
        difference=Difference(0, 11),
        confirmation=Confirmation("not reproduced", 1, ("left answered with another error.",)),
    )
    doubt = Doubt("unexplored", agents[1], f"{agents[1]} was not explored completely.", maker.findings[0].example)
    return maker.done(doubts=(doubt,))


def many(number: int) -> Findings:
    """A crosscheck with as many findings as asked for, in clusters of ten."""
    maker = Maker()
    for place in range(number):
        maker.add(
            f"packet_out with buffer_id = {place}: left answers with an error, right forwards the packet",
            "forwarding",
            {BUFFER: place, PORT: 2},
            [
                FieldSet(BUFFER, same(place), f"{BUFFER} = {place}", name=BUFFER),
                FieldSet(PORT, ((2, 2 + place),), f"{PORT} from 2 to {2 + place}", name=PORT),
            ],
            ((ERROR,), (Packet(0, 2, Payload.of(FRAME)), Packet(0, 3, Payload.of(FRAME * 20)))),
            ("answers with the error bad_action/bad_out_port", "forwards the packet to ports 2 and 3"),
            same_cluster=place % 10 != 0,
        )
    return maker.done()


def hostile() -> Findings:
    """Findings in which every text wants to be something else."""
    maker = Maker((f"a{HOSTILE}", f"b{HOSTILE}"))
    event = EventRecord("message", 0, None, None, "0101000c0000000100020004", (HOSTILE, f"  field: {HOSTILE}"))
    finding = maker.add(
        f"{HOSTILE}: a{HOSTILE} crashes, b{HOSTILE} does not",
        "crash",
        {BUFFER: 7},
        [FieldSet(BUFFER, same(7), f"{HOSTILE} = 7", name=HOSTILE)],
        ((Crash(0, HOSTILE),), ()),
        (HOSTILE, HOSTILE),
        confirmation=Confirmation("flaky", 1, (HOSTILE,)),
    )
    behaviours = (
        msgspec.structs.replace(finding.behaviours[0], events=(event,), marks=(HOSTILE,)),
        finding.behaviours[1],
    )
    example = Example(
        {**finding.example.values, HOSTILE: 5}, (*finding.example.settings, HOSTILE), finding.example.steps
    )
    maker.findings[0] = msgspec.structs.replace(
        finding, behaviours=behaviours, example=example, fields=(BUFFER, HOSTILE)
    )
    maker.clusters[0] = msgspec.structs.replace(
        maker.clusters[0], odd_one_out=maker.agents[0], fields=(HOSTILE,), covered=False
    )
    made = maker.done(doubts=(Doubt("undecided", None, HOSTILE),))
    record = msgspec.structs.replace(made.scenarios[0], summary=HOSTILE)
    return msgspec.structs.replace(made, scenarios=(record,), tool=HOSTILE)


def write(directory: Path, made: Findings) -> Path:
    """Findings as a crosscheck leaves them."""
    write_findings(directory, made, {finding.conditions: b"; conditions\n" for finding in made.findings})
    return directory
