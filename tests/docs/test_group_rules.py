"""Every rule of groups has its tests, and the page that lists them is up to date."""

from __future__ import annotations

from tools import group_rules


def test_the_page_names_the_tests_there_are() -> None:
    assert group_rules.PAGE.read_text() == group_rules.page(), "make docs"


def test_every_rule_is_proved_on_every_broker_and_coordinator() -> None:
    proved = {rule for rule, _, file in group_rules.tests() if file.parts[1] == "contract"}
    assert proved == set(group_rules.rules()) == set(range(1, 11))
