"""What the evaluation runs: agents, scenarios, limits, and which deviation shows in which scenario."""

from __future__ import annotations

from dataclasses import dataclass

# The paper's order: Table 1, Table 5, and the scenario of its third crash.
SCENARIOS = (
    "packet_out",
    "stats_request",
    "set_config",
    "eth_flow_mod",
    "flow_mod",
    "cs_flow_mods",
    "concrete",
    "short_symb",
    "fully_symbolic",
    "concrete_match",
    "concrete_action",
    "concrete_probe",
    "symbolic_probe",
    "queue_config",
)
QUICK = ("packet_out", "stats_request", "set_config", "concrete", "short_symb", "queue_config")
# Beside these, what is small enough to finish on Open vSwitch.
MORE = ("eth_concrete_match",)
OPEN_VSWITCH = (*QUICK, *MORE, "eth_flow_mod", "flow_mod")
FIGURE_1 = ("figure1-agent1", "figure1-agent2")
TIMEOUTS = ("idle_timeout", "hard_timeout")
HANDSHAKE = ("hello", "hello_twice", "first_message")
TIME = (*TIMEOUTS, "timeout_refresh", "flow_expire_order", "echo_idle", *HANDSHAKE)
# Where random delays are compared with symbolic ones.
DELAYS = (*TIMEOUTS, "timeout_refresh", "flow_expire_order")
# The deviation that shows in a narrow range of delays only.
NARROW = "modified-02"

# build → the scenario that shows it.
DEVIATIONS = {
    "modified-01": "hello",
    "modified-02": "hard_timeout",
    "modified-03": "stats_request",
    "modified-04": "packet_out",
    "modified-05": "ip_flow_mod",
    "modified-06": "two_flow_mods",
    "modified-07": "packet_out",
    "modified-08": "queue_config",
    "modified-09": "two_flow_mods",
    "modified-10": "set_config",
    "modified-11": "packet_out",
    "modified-12": "echo",
}

# Seconds, so that all of it takes an hour on two cores. What does not finish is partial, and says so.
TIME_LIMIT = 60.0
TIME_LIMITS = {
    "eth_flow_mod": 240.0,
    "cs_flow_mods": 300.0,
    "concrete_match": 300.0,
    "concrete_action": 300.0,
    "flow_mod": 45.0,
    "fully_symbolic": 45.0,
}
# A path of Open vSwitch is some fifty times as long as one of ours.
TIME_LIMITS_OPEN_VSWITCH = {
    "packet_out": 600.0,
    "stats_request": 600.0,
    "eth_concrete_match": 180.0,
    "eth_flow_mod": 240.0,
    "flow_mod": 300.0,
    # A path for every timer that expires in a wait, after every time at which the rule may expire; and one for every
    # version of a hello.
    "idle_timeout": 1800.0,
    "hard_timeout": 1800.0,
    "hello": 420.0,
    "hello_twice": 420.0,
}
QUICK_TIME_LIMIT = 10.0
# A crosscheck of two partial bundles of ten thousands of paths need not end: then it says what it has found.
CROSSCHECK_LIMIT = 120.0
# An agent whose clock cannot be moved waits in real time, up to a minute for each input. Open vSwitch, where it can, is
# started again for each: four to six of them in a second.
REPLAY_LIMIT, VERIFY_LIMIT = 150.0, 400.0
# Witnesses that verify sends to the live agent, evenly chosen from larger bundles; there are none among these.
SAMPLE = 20_000
SAMPLE_OPEN_VSWITCH, SAMPLE_WAITS_OPEN_VSWITCH = 3000, 1000
QUICK_SAMPLE = 50

# Agents that are compared all with all, in the scenarios of the deviations: those that are no deviation themselves.
EVERYBODY = ("reference", "vswitch", "ovs-vswitchd")

BINARIES = {"ovs-vswitchd": "ovs-vswitchd"}


@dataclass(frozen=True, slots=True, order=True)
class Exploration:
    """One bundle to make."""

    agent: str
    scenario: str

    @property
    def place(self) -> str:
        return f"{self.agent}/{self.scenario}"


@dataclass(frozen=True, slots=True)
class Crosscheck:
    """Bundles of one scenario to compare."""

    agents: tuple[str, ...]
    scenario: str
    all_with_all: bool = False
    """Every pair of the agents in the scenario of a deviation."""

    @property
    def place(self) -> str:
        return f"crosschecks/{'all' if self.all_with_all else '+'.join(self.agents)}/{self.scenario}"

    @property
    def with_itself(self) -> bool:
        return self.agents[0] == self.agents[-1]


@dataclass(frozen=True, slots=True)
class Plan:
    explorations: tuple[Exploration, ...]
    crosschecks: tuple[Crosscheck, ...]
    quick: bool

    def time_limit(self, exploration: Exploration) -> float:
        if self.quick:
            return QUICK_TIME_LIMIT
        limits = TIME_LIMITS_OPEN_VSWITCH if exploration.agent == "ovs-vswitchd" else TIME_LIMITS
        return limits.get(exploration.scenario, TIME_LIMIT)

    def sample(self, exploration: Exploration) -> int:
        if self.quick:
            return QUICK_SAMPLE
        if exploration.agent == "ovs-vswitchd":
            return SAMPLE_WAITS_OPEN_VSWITCH if exploration.scenario in TIMEOUTS else SAMPLE_OPEN_VSWITCH
        return SAMPLE


def binary(agent: str) -> str:
    """What `soft explore` is given: ours are built, Open vSwitch is Debian's."""
    return BINARIES.get(agent, f"agents/build/{agent}")


def plan(quick: bool = False) -> Plan:
    """Everything that is to be run; with `quick` only what takes seconds."""
    scenarios = QUICK if quick else SCENARIOS
    both = (*scenarios, *(() if quick else (*MORE, *TIME)))
    third = ("concrete",) if quick else (*OPEN_VSWITCH, *TIMEOUTS, *HANDSHAKE)
    wanted = [Exploration(agent, scenario) for agent in ("reference", "vswitch") for scenario in both]
    wanted += [Exploration("ovs-vswitchd", scenario) for scenario in third]
    wanted += [Exploration(agent, "packet_out") for agent in FIGURE_1]
    for build, scenario in DEVIATIONS.items():
        wanted += [Exploration(agent, scenario) for agent in (build, "reference", "vswitch")]
        wanted += [Exploration(build, other) for other in QUICK]
    wanted = list(dict.fromkeys(wanted))
    crosschecks = [Crosscheck(("reference", "vswitch"), scenario) for scenario in both]
    crosschecks += [Crosscheck(("reference", "vswitch", "ovs-vswitchd"), scenario) for scenario in third]
    crosschecks += [Crosscheck(FIGURE_1, "packet_out")]
    crosschecks += [Crosscheck(("reference", build), scenario) for build, scenario in DEVIATIONS.items()]
    for scenario in dict.fromkeys(DEVIATIONS.values()):
        builds = [build for build, shows in DEVIATIONS.items() if shows == scenario]
        together = tuple(agent for agent in (*EVERYBODY, *builds) if Exploration(agent, scenario) in wanted)
        crosschecks.append(Crosscheck(together, scenario, all_with_all=True))
    crosschecks += [Crosscheck((each.agent, each.agent), each.scenario) for each in wanted]
    return Plan(tuple(wanted), tuple(crosschecks), quick)
