"""Which tests run where: in which part of a whole run, and on which brokers.

``make test`` runs two parts. What talks to a broker of its own and waits for answers runs on two
processes at once, each with its own servers. What starts clusters, kills processes or weighs
memory has the machine for itself.
"""

from __future__ import annotations

TOGETHER, ALONE = "together", "alone"

_TOGETHER = ("tests/unit/", "tests/contract/", "tests/docs/")
_ALONE = ("tests/contract/groups/",)

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
    return TOGETHER if test.startswith(_TOGETHER) and not test.startswith(_ALONE) else ALONE


def runs_on(nodeid: str, broker: str) -> bool:
    """Whether a test is worth running on a broker of this name."""
    if broker != "durable":
        return True
    # Of a data folder only the contract is said; nothing outside it.
    return "contract/" in nodeid and not any(each in nodeid for each in _NOTHING_KEPT)
