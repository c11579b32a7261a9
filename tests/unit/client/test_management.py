"""What the management client makes of answers, without a server."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from warren.client.management import Management
from warren.errors import (
    ApiLoginRefused,
    ApiMissing,
    ApiRefused,
    ApiTimedOut,
    ApiUnreachable,
    ApiUntrusted,
    ManagementError,
    NotManagement,
)


def refusal(status: int, error: str = "bad_request", reason: Any = "no") -> ManagementError:
    body = json.dumps({"error": error, "reason": reason}).encode()
    with pytest.raises(ManagementError) as told:
        Management()._judge(status, body, "do it")
    return told.value


def test_an_answer_is_json_or_nothing() -> None:
    assert Management()._judge(200, b'{"a": 1}', "do it") == {"a": 1}
    assert Management()._judge(204, b"", "do it") is None


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("unknown exchange type 'x'", "unknown exchange type 'x'"),
        (
            'Validation failed\n\n[{&lt;&lt;"nope"&gt;&gt;,5}] are not recognised\n',
            '[{"nope",5}] are not recognised',
        ),
        (["no_such_vhost", "nope"], "no_such_vhost nope"),
        (["invalid_regexp", [40], [[109, 105, 115, 115], 1]], "invalid_regexp ( miss 1"),
    ],
)
def test_a_reason_is_told_in_plain_words(reason: Any, told: str) -> None:
    assert str(refusal(400, reason=reason)) == f"can't do it: {told}"


def test_an_answer_without_a_reason_is_told_by_its_status() -> None:
    with pytest.raises(ApiRefused, match="can't do it: HTTP status 500"):
        Management()._judge(500, b"<html>", "do it")


def test_kinds_of_refusals_are_told_apart() -> None:
    assert type(refusal(404)) is ApiMissing
    assert type(refusal(401, "not_authorized", "Login failed")) is ApiLoginRefused
    assert type(refusal(401, "not_authorised", "Not management user")) is ApiLoginRefused
    assert type(refusal(401, "not_authorised", "Access refused.")) is ApiRefused


def test_what_is_not_json_is_no_management_api() -> None:
    with pytest.raises(NotManagement, match="is no management API"):
        Management()._judge(200, b"<html>", "do it")


@pytest.mark.parametrize(
    "error",
    [
        ApiUnreachable("http://h:1", "refused"),
        ApiTimedOut("http://h:1", 0.5),
        ApiUntrusted("https://h:1", "self-signed"),
        NotManagement("http://h:1", "it speaks AMQP"),
        ApiLoginRefused("http://h:1", "alice", "Login failed"),
        ApiRefused("do it", 400, "no"),
        ApiMissing("do it", 404, "not there"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling(error: ManagementError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))
