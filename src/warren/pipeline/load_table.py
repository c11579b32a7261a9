"""A table of a pipeline's file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import yaml

from warren.pipeline.model import BODY_FORMATS, Deduplicate, Files, Table, Take
from warren.spark.columns import BY_NAME
from warren.spark.options import span
from warren.yaml_file import Entries, Entry, YamlFile, unknown

_KNOWN = (
    "take",
    "schema",
    "as",
    "sql",
    "columns",
    "deduplicate",
    "format",
    "path",
    "partition_by",
    "options",
    "csv",
    "avro",
    "protobuf",
)
_OF_MESSAGES = ("take", "as", "columns", "deduplicate", "csv", "avro", "protobuf")
_TAKEN = ("type", "routing_key", "queue", "app_id")
#: A schema or a set of descriptors that is larger is no such thing.
_MOST_OCTETS = 16 << 20

FilesOf = Callable[[Entries, str, str], Files]


class TableReader:
    """Reads tables, and which messages they take."""

    def __init__(self, yaml_file: YamlFile, files: FilesOf, here: Path) -> None:
        self._yaml, self._files, self._here = yaml_file, files, here

    def read(self, name: str, entry: Entry, folder: str) -> Table:
        what = f"table '{name}'"
        keys = self._yaml.settings(entry, what, _KNOWN)
        schema = self._yaml.value(keys, "schema", str, what)
        sql = self._yaml.value(keys, "sql", str, what)
        if schema is None:
            self._check_derived(keys, entry, what, sql)
        if sql is not None and "columns" in keys:
            problem = f"{what}: the query says which columns there are: SELECT *, _message.queue"
            raise self._yaml.error(keys["columns"].node, f"{problem} FROM messages")
        body = self._yaml.value(keys, "as", str, what)
        if body is not None and body not in BODY_FORMATS:
            problem = f"{what}: as: {unknown('format', body, BODY_FORMATS)}"
            raise self._yaml.error(keys["as"].node, problem)
        table = Table(
            name,
            files=self._files(keys, what, f"{folder}/{name}"),
            schema=schema,
            take=self.take(keys["take"].node, what) if "take" in keys else Take(),
            body=body,
            sql=sql,
            columns=self._columns(keys, what),
            deduplicate=self._deduplicate(keys, what),
            csv=self._csv(keys, what),
            avro=self._avro(keys, what),
            protobuf=self._protobuf(keys, what),
            lines={"": entry.line, **{key: found.line for key, found in keys.items()}},
        )
        for needed in ("avro", "protobuf"):
            if body == needed and getattr(table, needed) is None:
                keys_of = "schema: FILE" if needed == "avro" else "descriptors: FILE, message: NAME"
                problem = f"{what}: as: {needed} needs '{needed}: {{{keys_of}}}'"
                raise self._yaml.error(keys["as"].node, problem)
        return table

    def _check_derived(self, keys: Entries, entry: Entry, what: str, sql: str | None) -> None:
        if sql is None:
            raise self._yaml.error(
                entry.line,
                f"{what} needs a schema, such as 'schema: id BIGINT NOT NULL, name STRING'; or, "
                "made from other tables' rows, 'sql: SELECT …'",
            )
        for key in _OF_MESSAGES:
            if key in keys:
                problem = f"{what}: {key} is for messages, which need a schema"
                raise self._yaml.error(keys[key].line, problem)

    def take(self, node: yaml.Node, what: str) -> Take:
        keys = self._yaml.mapping(node, f"{what}: take" if what != "ignore" else what, _TAKEN)
        found = {name: one_of(self._yaml, keys[name].node, f"{what}: {name}") for name in keys}
        for name, patterns in found.items():
            if not patterns:
                problem = f"{what}: {name} needs a pattern, or several in brackets"
                raise self._yaml.error(keys[name].node, problem)
        return Take(**found, line=node.start_mark.line + 1)

    def _columns(self, keys: Entries, what: str) -> tuple[str, ...]:
        if "columns" not in keys:
            return ()
        names = one_of(self._yaml, keys["columns"].node, f"{what}: columns")
        for name in names:
            if name not in BY_NAME:
                problem = f"{what}: {unknown('column of a message', name, BY_NAME)}"
                raise self._yaml.error(keys["columns"].node, problem)
        return names

    def _deduplicate(self, keys: Entries, what: str) -> Deduplicate | None:
        if "deduplicate" not in keys:
            return None
        what = f"{what}: deduplicate"
        mine = self._yaml.mapping(keys["deduplicate"].node, what, ("key", "watermark"))
        if "key" not in mine or "watermark" not in mine:
            problem = f"{what} needs a key and a watermark: {{key: order_id, watermark: 1h}}"
            raise self._yaml.error(keys["deduplicate"].node, problem)
        try:
            watermark_s = span(self._yaml.word(mine["watermark"].node, f"{what}: watermark"))
        except ValueError as problem:
            raise self._yaml.error(mine["watermark"].node, f"{what}: watermark {problem}") from None
        key = one_of(self._yaml, mine["key"].node, f"{what}: key")
        if not key:
            raise self._yaml.error(mine["key"].node, f"{what}: key names no column")
        return Deduplicate(key, watermark_s, line=mine["key"].line)

    # -- formats -------------------------------------------------------------------------------
    def _csv(self, keys: Entries, what: str) -> dict[str, str]:
        if "csv" not in keys:
            return {}
        return self._yaml.words(keys["csv"].node, f"{what}: csv")

    def _avro(self, keys: Entries, what: str) -> str | None:
        if "avro" not in keys:
            return None
        mine = self._yaml.mapping(keys["avro"].node, f"{what}: avro", ("schema",))
        if "schema" not in mine:
            raise self._yaml.error(keys["avro"].line, f"{what}: avro needs 'schema: FILE'")
        raw = self._file(mine, "schema", f"{what}: avro")
        try:
            return json.dumps(json.loads(raw))
        except ValueError as error:
            problem = f"{what}: avro: schema is not JSON: {error}"
            raise self._yaml.error(mine["schema"].node, problem) from None

    def _protobuf(self, keys: Entries, what: str) -> tuple[bytes, str] | None:
        if "protobuf" not in keys:
            return None
        what = f"{what}: protobuf"
        known = ("descriptors", "message")
        mine = self._yaml.mapping(keys["protobuf"].node, what, known)
        if set(mine) != set(known):
            problem = (
                f"{what} needs 'descriptors: FILE', as protoc --include_imports "
                "--descriptor_set_out writes it, and 'message: NAME'"
            )
            raise self._yaml.error(keys["protobuf"].line, problem)
        message: str = self._yaml.value(mine, "message", str, what)
        return self._file(mine, "descriptors", what), message

    def _file(self, keys: Entries, name: str, what: str) -> bytes:
        given: str = self._yaml.value(keys, name, str, what)
        place = self._here / os.path.expanduser(given)
        try:
            if place.stat().st_size > _MOST_OCTETS:
                raise OSError(f"larger than {_MOST_OCTETS >> 20} MiB")
            return place.read_bytes()
        except OSError as error:
            problem = f"{what}: {name}: {place} can't be read: {error.strerror or error}"
            raise self._yaml.error(keys[name].node, problem) from None


def one_of(yaml_file: YamlFile, node: yaml.Node, what: str) -> tuple[str, ...]:
    """Words: a list of them, or a single one."""
    value = yaml_file.plain(node)
    words = value if isinstance(value, list) else [value]
    for word in words:
        if not isinstance(word, str):
            raise yaml_file.error(node, f"{what} must be text, or a list of texts")
    return tuple(words)
