"""Runs scenarios on both brokers in turn: one, the other, the one again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median

from bench.disturbance import TOO_MUCH, Disturbance, settle
from bench.load.process import LoadFailed
from bench.model import Context, Launcher, Numbers, Running, Scenario, StartFailed

LOAD_LIMITS = 0.9  # a load process busier than this measures itself
Say = Callable[[str], None]


@dataclass
class Outcome:
    """Every round's numbers of one scenario, by broker."""

    scenario: Scenario
    rounds: dict[str, list[Numbers]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def median(self, broker: str, name: str) -> float | None:
        values = [numbers[name] for numbers in self.rounds.get(broker, []) if name in numbers]
        return median(values) if values else None

    @property
    def disturbed(self) -> bool:
        """A round of either broker was: then the comparison is not to be trusted."""
        every = [numbers for rounds in self.rounds.values() for numbers in rounds]
        return any(numbers.get("others", 0.0) > TOO_MUCH for numbers in every)


class Runner:
    """Has each scenario answered by every broker, round by round."""

    def __init__(
        self, launchers: Sequence[Launcher], *, rounds: int, quick: bool, say: Say
    ) -> None:
        self._launchers = launchers
        self._rounds = rounds
        self._quick = quick
        self._say = say
        self.versions: dict[str, str] = {}

    def run(self, scenario: Scenario) -> Outcome:
        """Never raises for a broker that fails: that is a result too."""
        outcome = Outcome(scenario, {launcher.name: [] for launcher in self._launchers})
        rounds = self._rounds if self._quick else max(self._rounds, scenario.rounds)
        with ExitStack() as stack:
            shared: dict[str, Running] = {}
            for launcher in () if scenario.fresh else self._launchers:
                with self._noting(outcome, launcher):
                    shared[launcher.name] = self._prepared(scenario, launcher, stack)
            for number in range(rounds):
                self._say(f"{scenario.name}, round {number + 1} of {rounds}")
                for launcher in self._launchers:
                    if scenario.fresh or launcher.name in shared:
                        with self._noting(outcome, launcher):
                            numbers = self._measure(scenario, launcher, shared)
                            outcome.rounds[launcher.name].append(numbers)
        return outcome

    @contextmanager
    def _noting(self, outcome: Outcome, launcher: Launcher) -> Iterator[None]:
        try:
            yield
        except (StartFailed, LoadFailed) as error:
            outcome.failures.append(f"{outcome.scenario.name} on {launcher.name}: {error}")
            self._say(f"failed: {outcome.failures[-1]}")

    def _measure(
        self, scenario: Scenario, launcher: Launcher, shared: dict[str, Running]
    ) -> Numbers:
        with ExitStack() as once:
            watch = Disturbance()  # a fresh broker's start is watched too: it may be the question
            broker = shared.get(launcher.name)
            if broker is None:
                broker = self._start(scenario, launcher, once)
            elif broker.pid is not None:
                watch = Disturbance(broker.pid)
            try:
                numbers = scenario.measure(Context(broker, self._quick))
            except LoadFailed as error:
                raise LoadFailed(f"{error}; it said: {broker.last_words() or 'nothing'}") from None
            if broker.pid is not None:
                numbers["others"] = watch.share(broker.pid)
        self._doubt(launcher.name, numbers)
        return numbers

    def _doubt(self, name: str, numbers: Numbers) -> None:
        if numbers.get("busy", 0.0) > LOAD_LIMITS:
            self._say(f"the load, not {name}, was the limit: {numbers['busy']:.0%} busy")
        if numbers.get("others", 0.0) > TOO_MUCH:
            self._say(f"{name} disturbed: others used {numbers['others']:.0%} of the machine")

    def _start(self, scenario: Scenario, launcher: Launcher, stack: ExitStack) -> Running:
        broker = launcher.start(data=scenario.data)
        stack.callback(broker.stop)
        self.versions[launcher.name] = broker.version
        if broker.pid is not None:
            settle(broker.pid)
        return broker

    def _prepared(self, scenario: Scenario, launcher: Launcher, stack: ExitStack) -> Running:
        broker = self._start(scenario, launcher, stack)
        context = Context(broker, self._quick)
        if scenario.finish is not None and broker.pid is None:
            stack.callback(scenario.finish, context)
        if scenario.prepare is not None:
            self._say(f"{scenario.name}, preparing {launcher.name}")
            scenario.prepare(context)
        return broker
