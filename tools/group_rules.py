"""Writes docs/internals/group-rules.md: which tests prove which rule of groups. ``make docs``.

The rules are those of docs/guide/groups.md; a test names the rule that it is of:
``test_rule_7_a_death_does_not_wait``. ``--check`` writes nothing, and fails if the page is old.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "internals" / "group-rules.md"
RULES = ROOT / "docs" / "guide" / "groups.md"
#: Folder → what a test there works with.
WHERE = {
    "contract": "every broker, every coordinator",
    "e2e": "processes, killed and stopped",
    "unit": "no sockets",
}
HEAD = """\
<!-- Written by tools/group_rules.py (`make docs`): change the names of the tests. -->
# The rules of groups, and the tests that prove them

The rules are [what a group promises](../guide/groups.md#what-it-promises). Beside these tests there
is a [simulation](../../tests/unit/groups/test_simulation.py) of random accidents that checks rules
1 to 8 and 10 after each schedule, [the soak](group-faults.md), and
[how fast](../guide/groups.md#how-fast) for the figures in rules 3 and 5.
"""


def rules() -> dict[int, str]:
    """Number → its text."""
    found = re.findall(r"^(\d+)\. (.+(?:\n {3,}.+)*)", RULES.read_text(), re.MULTILINE)
    return {int(number): re.sub(r"\n +", " ", text) for number, text in found}


def tests() -> Iterator[tuple[int, str, Path]]:
    """Rule, what is proved, and the file."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        if "test_rule_" not in (text := file.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _proved(node.name, file.relative_to(ROOT))


def _proved(name: str, file: Path) -> Iterator[tuple[int, str, Path]]:
    found = re.match(r"test_rule_(\d+)(?:_and_(\d+))?_(.+)", name)
    for number in (found[1], found[2]) if found else ():
        if found and number:
            yield int(number), found[3].replace("_", " "), file


def page() -> str:
    proofs = sorted(tests(), key=lambda each: (each[0], each[2], each[1]))
    parts = [HEAD]
    for number, text in rules().items():
        parts.append(f"\n## Rule {number}\n\n{text}\n\n| test | with |\n|---|---|\n")
        parts += (
            f"| [{words}](../../{file}) | {WHERE[file.parts[1]]} |\n"
            for rule, words, file in proofs
            if rule == number
        )
    return "".join(parts)


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        print(f"{PAGE.relative_to(ROOT)} is not up to date: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
