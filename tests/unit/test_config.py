from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from warren.config import BrokerConfig, machine_bytes, machine_cores
from warren.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "warren.toml"
    path.write_text('[broker]\nport = 1111\nheartbeat_s = 11\nhost = "::1"\n')
    return path


def test_the_defaults_are_rabbitmqs() -> None:
    config = BrokerConfig()

    assert (config.host, config.port, config.heartbeat_s) == ("127.0.0.1", 5672, 60)
    assert (config.channel_max, config.max_message_bytes) == (2047, 134_217_728)


def test_arguments_are_stronger_than_the_environment_and_that_than_the_file(file: Path) -> None:
    config = BrokerConfig.load(
        file=file,
        environment={"WARREN_PORT": "2222", "WARREN_HEARTBEAT_S": "22"},
        arguments={"port": 3333, "host": None},
    )

    assert (config.port, config.heartbeat_s, config.host) == (3333, 22, "::1")
    assert config.channel_max == 2047


def test_nothing_is_read_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_PORT", "2222")

    assert BrokerConfig().port == 5672
    assert BrokerConfig.load().port == 5672


def test_a_file_may_have_tables_of_others_and_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[tool.other]\nport = 1\n")

    assert BrokerConfig.load(file=path) == BrokerConfig()


def test_other_variables_are_left_alone() -> None:
    assert BrokerConfig.load(environment={"WARREN_COLOUR": "blue", "PORT": "1"}) == BrokerConfig()


@pytest.mark.parametrize("item", dataclasses.fields(BrokerConfig), ids=lambda item: item.name)
def test_every_setting_says_what_it_is_for(item: dataclasses.Field[Any]) -> None:
    assert item.metadata["help"]


@pytest.mark.parametrize("item", dataclasses.fields(BrokerConfig), ids=lambda item: item.name)
def test_every_setting_can_be_given_in_the_environment(item: dataclasses.Field[Any]) -> None:
    value = "7" if item.type == "int" else (item.metadata["choices"] or ("somewhere",))[-1]
    config = BrokerConfig.load(environment={f"WARREN_{item.name.upper()}": value})

    assert str(getattr(config, item.name)) == value


def test_settings_do_not_change() -> None:
    config = BrokerConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.port = 1  # type: ignore[misc]

    assert config.replace(port=1).port == 1
    assert config.port == 5672


# -- what is wrong, and where --------------------------------------------------------------------
def refusal(**where: Any) -> str:
    with pytest.raises(ConfigError) as error:
        BrokerConfig.load(**where)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[broker]\nprot = 1", "prot ({file}): there is no such setting; did you mean port?"),
        ('[broker]\nport = "1"', "port ({file}): '1' is not a whole number"),
        ("[broker]\nport = true", "port ({file}): True is not a whole number"),
        ("[broker]\nport = 1.5", "port ({file}): 1.5 is not a whole number"),
        ("[broker]\nport = 70000", "port ({file}): 70000 must be at least 0 and at most 65535"),
        ("[broker]\nhost = 5", "host ({file}): 5 is not a name or address"),
        ("broker = 5", "broker ({file}): must be a table: write [broker] on a line of its own"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_the_file(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "warren.toml"
    path.write_text(text)

    assert refusal(file=path) == told.format(file=path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refusal(file=tmp_path / "no.toml").endswith(f"there is no file {tmp_path / 'no.toml'}")


@pytest.mark.parametrize("content", [b"[broker", b"\xff\xfe", b"port 1"])
def test_a_file_that_is_not_toml_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "warren.toml"
    path.write_bytes(content)

    assert f"{path} can't be read as TOML" in refusal(file=path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert f"{tmp_path} can't be read" in refusal(file=tmp_path)


def test_a_mistake_in_the_environment_is_told_with_the_variable() -> None:
    assert refusal(environment={"WARREN_PORT": "five"}) == (
        "port (WARREN_PORT): 'five' is not a whole number"
    )
    assert refusal(environment={"WARREN_CHANNEL_MAX": "0"}) == (
        "channel_max (WARREN_CHANNEL_MAX): 0 must be at least 1 and at most 65535"
    )
    assert "WARREN_HOST" in refusal(environment={"WARREN_HOST": ""})


def test_a_mistake_in_an_argument_is_told() -> None:
    assert refusal(arguments={"port": -1}) == (
        "port (argument): -1 must be at least 0 and at most 65535"
    )
    assert refusal(arguments={"memory_limit_bytes": -1}) == (
        "memory_limit_bytes (argument): -1 must be at least 0"
    )


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean heartbeat_s"):
        BrokerConfig().replace(heartbeat=1)
    with pytest.raises(ConfigError, match="known are channel_max"):
        BrokerConfig().replace(zzz=1)


def test_a_word_that_is_none_of_those_known_is_refused_with_them() -> None:
    with pytest.raises(ConfigError, match="'maybe' is not one of none, optional, required"):
        BrokerConfig(tls_verify="maybe")


@pytest.mark.parametrize(
    ("setting", "names"),
    [("guest", {"guest"}), ("ann, bob", {"ann", "bob"}), ("none", set()), ("none, ann", {"ann"})],
)
def test_users_of_this_machine_are_named_by_commas(setting: str, names: set[str]) -> None:
    assert BrokerConfig(loopback_users=setting).loopback_user_names == names


def test_a_container_counts_as_the_machine_that_it_is(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    whole = machine_bytes(limit)
    limit.write_text("max\n")
    assert machine_bytes(limit) == whole > 0
    limit.write_text("1234567\n")
    assert machine_bytes(limit) == 1_234_567


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000\n"}, 8),
        ({"cpu.max": ""}, 8),
        ({}, 8),
    ],
)
def test_a_container_has_the_cores_that_it_was_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert machine_cores(tmp_path) == cores


def test_where_no_process_is_bound_to_cores_all_of_the_machine_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)

    assert machine_cores(tmp_path) == 64
