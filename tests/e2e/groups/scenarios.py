"""What can happen to a group. Each is a function of a stage with members under load.

A scenario disturbs, waits until the group works as it should, and says nothing of what was
handled: that is ``check_group``'s, from the members' own lines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.e2e.groups.stage import Stage
from tests.support.eventually import eventually

Scenario = Callable[[Stage], None]

#: Messages that must be handled before and after whatever happens.
SOME = 100


@dataclass(frozen=True)
class Needs:
    """What a scenario has to have."""

    own_broker: bool = False
    etcd: bool = False
    cluster: bool = False
    members: int = 3
    queues: int = 12
    rate: int = 400
    #: How members differ: fields of ``WorkerOptions``.
    worker: dict[str, object] = field(default_factory=dict)


def kill_a_member(stage: Stage) -> None:
    ring = stage.ring
    ring.kill(ring.any_member(ring.dispatcher()))
    ring.wait_balanced()
    ring.start(1)
    ring.wait_balanced()


def kill_the_dispatcher(stage: Stage) -> None:
    ring = stage.ring
    ring.kill(ring.dispatcher())
    ring.wait_balanced()
    ring.start(1)
    ring.wait_balanced()


def kill_one_of_four_with_many_queues(stage: Stage) -> None:
    kill_a_member(stage)


def stop_a_member(stage: Stage) -> None:
    _hang(stage, stage.ring.any_member(stage.ring.dispatcher()))


def stop_the_dispatcher(stage: Stage) -> None:
    _hang(stage, stage.ring.dispatcher())


def stop_an_app_that_is_behind(stage: Stage) -> None:
    """Messages wait in its memory when it is stopped: others have done them when it goes on."""
    _hang(stage, stage.ring.any_member())


def _hang(stage: Stage, label: str) -> None:
    """SIGSTOP until the others have its queues, then SIGCONT: it must not go on as before."""
    ring = stage.ring
    ring.stop(label)
    hung = ring.members.pop(label)
    ring.wait_balanced()
    ring.wait_handled(SOME)
    ring.members[label] = hung
    ring.go_on(label)
    ring.wait_balanced()


def rolling_restart(stage: Stage) -> None:
    """Every member is replaced, one after the other; nothing is to come twice."""
    ring = stage.ring
    for label in list(ring.members):
        ring.start(1)
        ring.end(label)
    ring.wait_balanced()


def restart_the_broker(stage: Stage) -> None:
    """kill -9, and up again with what it had on disk."""
    ring = stage.ring
    with ring.log.disturbing("cut"):
        stage.nodes[0].kill()
        stage.nodes[0].start()
    ring.wait_balanced(120)


def kill_a_node(stage: Stage) -> None:
    """One of three; quorum queues go on with the other two."""
    ring = stage.ring
    node = ring.random.choice(stage.nodes)
    with ring.log.disturbing("cut"):
        node.kill()
        ring.wait_handled(SOME, 120)
    with ring.log.disturbing("cut"):
        node.start()
    ring.wait_balanced(120)


def kill_etcd(stage: Stage) -> None:
    """While it is away members work on; a death in that time is made good afterwards."""
    ring, etcd = stage.ring, stage.etcd
    assert etcd is not None
    victim = ring.any_member()
    etcd.kill()
    ring.wait_handled(3 * SOME)
    ring.kill(victim)
    etcd.start()
    ring.wait_balanced(120)
    ring.start(1)
    ring.wait_balanced()


def cut_the_network(stage: Stage) -> None:
    """A reset of one member's connections, several times."""
    label = _behind_the_proxy(stage)
    for _ in range(3):
        with _cut_off(stage, label):
            stage.proxy.cut()
        stage.ring.wait_balanced()
        stage.ring.wait_handled(SOME)


def freeze_the_network(stage: Stage) -> None:
    """Half open: one member's connections stay, and nothing passes."""
    label = _behind_the_proxy(stage)
    with _cut_off(stage, label):
        stage.proxy.freeze()
    stage.ring.wait_balanced()


def slow_the_network(stage: Stage) -> None:
    """Fifty milliseconds each way: no reason to lose anything, or to do it twice."""
    _behind_the_proxy(stage)
    stage.proxy.delay(0.05)
    stage.ring.wait_handled(5 * SOME)
    stage.proxy.delay(0)
    stage.ring.wait_balanced()


@contextmanager
def _cut_off(stage: Stage, label: str) -> Iterator[None]:
    """Until the member has noticed, and connects again."""
    with stage.ring.log.disturbing("cut", label):
        accepted = stage.proxy.accepted
        yield
        eventually(lambda: stage.proxy.accepted > accepted, 60)


def _behind_the_proxy(stage: Stage) -> str:
    (label,) = stage.ring.start(1, url=stage.proxy.url)
    stage.ring.wait_balanced()
    return label


def queues_come_and_go(stage: Stage) -> None:
    """Members look for a pattern; queues appear under load, are emptied and deleted."""
    ring = stage.ring
    for number in range(3):
        names = [f"{ring.queues[0]}-extra-{number}-{each}" for each in range(4)]
        ring.declare(*names)
        publisher = ring.publish(100, names)
        ring.queues += names
        ring.wait_balanced()
        ring.wait_handled(SOME)
        ring.silence(publisher)
        eventually(ring.all_handled, 60, every_s=0.3)
        del ring.queues[-len(names) :]
        ring.delete(*names)
        ring.wait_balanced()


def much_of_everything(stage: Stage) -> None:
    """Random disturbances on many queues, for a while."""
    ring = stage.ring
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        ring.random.choice([kill_a_member, kill_the_dispatcher, stop_a_member])(stage)


SCENARIOS: dict[Scenario, Needs] = {
    kill_a_member: Needs(),
    kill_one_of_four_with_many_queues: Needs(members=4, queues=200),
    kill_the_dispatcher: Needs(),
    stop_a_member: Needs(),
    stop_the_dispatcher: Needs(),
    stop_an_app_that_is_behind: Needs(members=2, worker={"app": True, "work_s": 0.04}),
    rolling_restart: Needs(),
    restart_the_broker: Needs(own_broker=True),
    kill_a_node: Needs(own_broker=True, cluster=True),
    kill_etcd: Needs(etcd=True),
    cut_the_network: Needs(),
    freeze_the_network: Needs(),
    slow_the_network: Needs(),
    queues_come_and_go: Needs(),
    much_of_everything: Needs(members=4, queues=200, rate=1500),
}
