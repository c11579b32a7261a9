"""A broker that is a real process with a data folder, and ways to end it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.durability.steps import Restart
from tests.support.process import BrokerProcess, broker_process


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path / "data") as broker:
        yield broker


@pytest.fixture(params=["stopped", "killed"])
def restart(request: pytest.FixtureRequest, broker: BrokerProcess) -> Restart:
    """Ends the broker, in one way or the other, and starts it again."""

    def restart() -> None:
        broker.stop() if request.param == "stopped" else broker.kill()
        broker.start()

    return restart


@pytest.fixture
def kill(broker: BrokerProcess) -> Restart:
    def kill() -> None:
        broker.kill()
        broker.start()

    return kill
