"""The pages of the documentation as tests see them: snippets, links, headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

#: In a line of its own above a snippet: it can't run, or must not.
SKIP = "<!-- skip -->"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_EXPECTED = re.compile(r"# -> (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page."""

    page: Path
    line: int  # of its first line of code
    language: str
    code: str

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def expected(self) -> list[str]:
        """What it prints, line by line, as its ``# ->`` comments say."""
        return _EXPECTED.findall(self.code)

    @property
    def is_test(self) -> bool:
        """For pytest, not for python."""
        return re.search(r"^(async )?def test_", self.code, re.MULTILINE) is not None

    @property
    def is_portable(self) -> bool:
        """Knows nothing of the broker but its address, so that any broker will do."""
        known = set(re.findall(r"\bbroker\.(\w+)", self.code))
        started = re.search(r"Broker(\.in_thread\(\)|\(port=0\)) as", self.code)
        return started is not None and known <= {"url"}

    def compiled(self) -> object:
        """The code object; tracebacks show the page and its line."""
        padding = "\n" * (self.line - 1)
        return compile(padding + self.code, str(self.page), "exec")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def snippets(*languages: str) -> list[Snippet]:
    """All blocks in these languages, of all pages, but for those that are to be skipped."""
    found = []
    for page in PAGES:
        if page.name == "CONTRIBUTING.md":  # its example is a test of this suite
            continue
        text = page.read_text()
        for match in _FENCE.finditer(text):
            before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
            if match[1] in languages and before != SKIP:
                line = text.count("\n", 0, match.start(2)) + 1
                found.append(Snippet(page, line, match[1], match[2]))
    return found


def links(page: Path) -> list[str]:
    """Targets of the links that lead to a place in this repository."""
    text = _FENCE.sub("", page.read_text())
    return [target for target in _LINK.findall(text) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """What may stand behind ``#`` in a link to the page."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
