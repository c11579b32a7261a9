from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from warren.cli.supervise import Supervisor, seen

# Writes a file named after itself, waits for the parent's pipe or SIGTERM, takes the file away.
CHILD = """
import os, select, signal, sys
mark = os.path.join(sys.argv[1], str(os.getpid()))
def end(*_):
    os.unlink(mark)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
open(mark, "w").close()
select.select([int(os.environ["WARREN_PARENT_PIPE"])], [], [])
end()
"""


def pids(folder: Path) -> set[int]:
    return {int(each.name) for each in folder.iterdir() if each.name.isdigit()}


async def until(check: object, within_s: float = 20.0) -> None:
    await asyncio.to_thread(eventually, check, within_s)  # type: ignore[arg-type]


def supervisor(folder: Path, count: int, watch: bool = False) -> Supervisor:
    return Supervisor([[sys.executable, "-c", CHILD, str(folder)]] * count, watch=watch)


async def test_a_child_that_dies_is_replaced_and_all_stop_together(tmp_path: Path) -> None:
    run = asyncio.create_task(supervisor(tmp_path, 2).run())
    await until(lambda: len(pids(tmp_path)) == 2)
    victim = min(pids(tmp_path))
    os.kill(victim, signal.SIGKILL)
    (tmp_path / str(victim)).unlink()
    await until(lambda: len(pids(tmp_path)) == 2)
    assert victim not in pids(tmp_path)

    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(run, 20) == 0
    assert pids(tmp_path) == set()


async def test_a_mistake_of_the_user_ends_it_with_its_code() -> None:
    tested = Supervisor([[sys.executable, "-c", "import sys; sys.exit(2)"]])
    assert await asyncio.wait_for(tested.run(), 20) == 2


# Says that it works the first time it is run; from then on ends with the code it is given.
FICKLE = """
import os, signal, sys
mark = os.path.join(sys.argv[1], "was")
if not os.path.exists(mark):
    os.write(int(os.environ["WARREN_READY_PIPE"]), b"30\\n")
    open(mark, "w").close()
else:
    open(os.path.join(sys.argv[1], "again"), "w").close()
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize("code", [1, 2])
async def test_what_has_worked_is_tried_again_and_the_others_are_left_alone(
    tmp_path: Path, code: int
) -> None:
    fickle = [sys.executable, "-c", FICKLE, str(tmp_path), str(code)]
    steady = [sys.executable, "-c", CHILD, str(tmp_path)]
    run = asyncio.create_task(Supervisor([fickle, steady]).run())
    await until(lambda: (tmp_path / "again").exists() and len(pids(tmp_path)) == 1, 60)
    steady_pid = pids(tmp_path)
    (tmp_path / "again").unlink()
    await until((tmp_path / "again").exists, 60)
    assert pids(tmp_path) == steady_pid
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(run, 20)
    assert pids(tmp_path) == set()


async def test_a_failure_ends_it_as_long_as_nothing_has_worked() -> None:
    tested = Supervisor([[sys.executable, "-c", "import sys; sys.exit(1)"]] * 2)
    assert await asyncio.wait_for(tested.run(), 20) == 1


# Does not listen to SIGTERM.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
while True:
    time.sleep(60)
"""


async def test_the_first_interrupt_lets_finish_and_the_second_leaves_at_once(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    tested = Supervisor([[sys.executable, "-c", DEAF, str(tmp_path)]] * 2, say=said.append)
    run = asyncio.create_task(tested.run())
    await until(lambda: len(pids(tmp_path)) == 2)
    os.kill(os.getpid(), signal.SIGINT)
    await until(lambda: len(said) == 1)
    assert said[0].startswith("finishing what is being handled")
    assert not run.done()
    os.kill(os.getpid(), signal.SIGINT)
    assert await asyncio.wait_for(run, 20) == 130
    assert said[1].startswith("left at once")
    for pid in pids(tmp_path):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_children_are_started_again_when_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    run = asyncio.create_task(supervisor(tmp_path, 1, watch=True).run())
    await until(lambda: len(pids(tmp_path)) == 1)
    first = pids(tmp_path)

    def changed() -> bool:
        (code / "shop.py").write_text("x = 2\n")
        return len(pids(tmp_path)) == 1 and pids(tmp_path) != first

    await until(changed)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(run, 20)
    assert pids(tmp_path) == set()


def test_only_python_files_of_the_project_are_watched(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", "c.txt", ".hidden/d.py", "venv/pyvenv.cfg", "venv/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(seen(tmp_path)) == ["a.py", "sub/b.py"]
