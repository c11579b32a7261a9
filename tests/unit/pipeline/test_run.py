"""What a pipeline says when it could not go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from warren.errors import (
    LedgerDamaged,
    LedgerGap,
    LedgerGone,
    LedgerNotSeen,
    OffsetGone,
    QueueBusy,
    RowRefused,
    StreamReplaced,
    WarrenError,
)
from warren.pipeline.batch import Batches
from warren.pipeline.check import Checked
from warren.pipeline.run import Run

NOTHING_LOST = "; nothing is lost, the next run goes on from the last batch that was whole"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    file = tmp_path / "job.yaml"
    file.write_text("queues: a\ntables: {t: {schema: id INT}}\n")
    return Run.from_file(str(file))


def as_spark_says(error: WarrenError) -> OSError:
    """What a query ends with whose source has raised."""
    raised = f"{type(error).__module__}.{type(error).__qualname__}: {error}"
    return OSError(f'[STREAM_FAILED] Traceback:\n  File "source.py", line 5, in x\n{raised}\n')


@pytest.mark.parametrize(
    "error",
    [
        LedgerDamaged("/ledger", "a.arrow", "cut"),
        LedgerGone("/ledger", "its id is another"),
        LedgerNotSeen("/ledger", "it is empty", "there", "here"),
        LedgerGap("/ledger", "a", 5, 9),
        OffsetGone("a", 5, 9),
        StreamReplaced("a", 9, 5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_may_be_lost_is_not_called_safe(run: Run, error: WarrenError) -> None:
    stopped = run._stopped(as_spark_says(error))

    assert str(stopped) == f"pipeline 'job' stopped: {error}"


@pytest.mark.parametrize("error", [QueueBusy("a", 30), OSError("no room")])
def test_what_will_go_on_says_so(run: Run, error: Exception) -> None:
    ended = as_spark_says(error) if isinstance(error, WarrenError) else error
    told = str(run._stopped(ended))

    assert str(error) in told
    assert told.endswith(NOTHING_LOST)


def test_what_a_batch_raised_is_told_in_its_own_words(run: Run) -> None:
    run._batches = Batches(Checked(run.pipeline, {}), lambda *_: None)
    run._batches.error = OffsetGone("a", 5, 9)
    assert not run._stopped(OSError("foreachBatch failed")).goes_on

    run._batches.error = RowRefused("type", 3, "is odd")
    assert str(run._stopped(OSError("foreachBatch failed"))).endswith(f"odd{NOTHING_LOST}")
