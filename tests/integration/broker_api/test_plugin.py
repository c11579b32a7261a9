"""The pytest fixture ``warren_broker``."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

USES_THE_FIXTURE = """
import pika
import pytest

@pytest.mark.parametrize("number", range(6))
def test_a_broker_of_its_own(warren_broker, number, worker_id):
    connection = pika.BlockingConnection(pika.URLParameters(warren_broker.url))
    channel = connection.channel()
    assert channel.queue_declare("orders").method.message_count == 0
    channel.basic_publish("", "orders", b"one")
    with open(f"{number}.seen", "w") as file:
        file.write(f"{worker_id} {warren_broker.port}")
    connection.close()
"""


@pytest.mark.timeout(300)  # a run of pytest with processes of its own
@pytest.mark.parametrize(("workers", "names"), [("0", {"master"}), ("2", {"gw0", "gw1"})])
def test_every_test_gets_a_broker_of_its_own(
    pytester: pytest.Pytester, workers: str, names: set[str]
) -> None:
    pytester.makepyfile(test_it=USES_THE_FIXTURE)

    result = pytester.runpytest_subprocess("-q", "-n", workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=6)
    seen = [path.read_text().split() for path in pytester.path.glob("**/*.seen")]
    assert len(seen) == 6
    assert {worker for worker, _ in seen} == names


SAYS_WHAT_IS_LOADED = """
import sys

def pytest_runtest_setup(item):
    print("broker loaded:", "warren.server.broker" in sys.modules)
"""


@pytest.mark.parametrize(("wanted", "loaded"), [("warren_broker", "True"), ("tmp_path", "False")])
def test_the_broker_is_loaded_before_the_first_test_that_wants_it_and_for_no_other(
    pytester: pytest.Pytester, wanted: str, loaded: str
) -> None:
    pytester.makeconftest(SAYS_WHAT_IS_LOADED)
    pytester.makepyfile(test_it=f"def test_it({wanted}): pass")

    result = pytester.runpytest_subprocess("-q", "-s", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*broker loaded: {loaded}*"])


def test_the_fixture_is_listed_with_what_it_does(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--fixtures", "-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["warren_broker*", "*A fresh broker on a free port*"])
