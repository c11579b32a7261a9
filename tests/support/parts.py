"""Which tests run where: in which part of a whole run, and on which brokers.

``make test`` runs three parts. What talks to brokers of its own and waits for answers runs on four
processes at once, each with its own servers. What starts Spark, which for long keeps one core busy,
or waits for a server that starts again, runs on two, each file on one of them. What kills a server
that others use, proves something under load or weighs memory has the machine for itself.
"""

from __future__ import annotations

TOGETHER, PAIRS, ALONE = "together", "pairs", "alone"
#: In the order of a whole run.
PARTS = (TOGETHER, PAIRS, ALONE)

_TOGETHER = (
    "tests/unit/",
    "tests/contract/",
    "tests/docs/",
    "tests/fuzz/",
    "tests/integration/",
    "tests/e2e/test_crash.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_work.py",
    # These need no Spark session.
    "tests/spark/test_exactly_once_company.py",
    "tests/spark/test_exactly_once_doubt.py",
    "tests/spark/test_exactly_once_many.py",
    "tests/spark/test_exactly_once_steps.py",
    "tests/spark/test_ledger_cli.py",
    "tests/spark/test_ledger_places.py",
    "tests/spark/test_queue_offsets.py",
    "tests/spark/test_sink_tasks.py",
    "tests/spark/test_slow_spark.py",
    "tests/spark/test_source_connection.py",
    "tests/spark/test_source_queues.py",
    "tests/spark/test_stream_connection.py",
    "tests/spark/test_stream_offsets.py",
)
_PAIRS = (
    "tests/spark/",
    # These wait for a RabbitMQ to start again, while Spark has the processors.
    "tests/integration/durability/test_like_rabbitmq.py",
    "tests/integration/test_client_restart.py",
)
_ALONE = (
    "tests/spark/test_exactly_once.py",  # publishers that keep up their rate, kills at random
    "tests/integration/groups/",  # an etcd that is killed, leases of two seconds
    "tests/integration/test_many.py",  # weighs memory
    "tests/integration/test_support.py",  # a cluster; test runs within the test run
)
#: Of two that name a test, the one that says more holds; what none names runs alone.
_PATHS = {TOGETHER: _TOGETHER, PAIRS: _PAIRS, ALONE: _ALONE}

# A data folder keeps definitions and messages: what declares, holds, hands out or settles them
# runs with one, too. What is decided before anything is kept can't tell the difference.
_NOTHING_KEPT = (
    "contract/wire/",
    "contract/client/",
    "contract/cli/",  # over the HTTP API, whose tests stay
    "contract/access/test_limits.py",
    "contract/access/test_permissions.py",
    "contract/access/test_topic_permissions.py",
    "contract/access/test_vhost_access.py",
    "contract/exchanges/test_cc_bcc.py",
    "contract/exchanges/test_consistent_hash.py",
    "contract/exchanges/test_default.py",
    "contract/exchanges/test_direct.py",
    "contract/exchanges/test_fanout.py",
    "contract/exchanges/test_headers.py",
    "contract/exchanges/test_topic.py",
    "contract/management/test_connections.py",
    "contract/management/test_counters.py",
    "contract/management/test_errors.py",
    "contract/management/test_health.py",
    "contract/management/test_history.py",
    "contract/management/test_node.py",
    "contract/management/test_tags.py",
    "contract/publishing/test_errors.py",
    "contract/publishing/test_expiration_validation.py",
    "contract/publishing/test_reply_to.py",
    "contract/publishing/test_user_id.py",
)


def part_of(test: str) -> str:
    """The part of a test, or of a whole file of them, by its path from the project's folder."""
    found = [(path, part) for part, paths in _PATHS.items() for path in paths]
    _, part = max(
        ((path, part) for path, part in found if test.startswith(path)), default=("", ALONE)
    )
    return part


def runs_on(nodeid: str, broker: str) -> bool:
    """Whether a test is worth running on a broker of this name."""
    if broker != "durable":
        return True
    # Of a data folder only the contract is said; nothing outside it.
    return "contract/" in nodeid and not any(each in nodeid for each in _NOTHING_KEPT)
