"""From a YAML file to a pipeline; every complaint names the line, before anything is consumed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import yaml

from warren.errors import PipelineError
from warren.pipeline.load_options import check_quarantine, check_sinks, check_source
from warren.pipeline.load_spark import wrong_master, wrong_setting
from warren.pipeline.load_table import TableReader, one_of
from warren.pipeline.model import (
    COMPRESSIONS,
    FILE_FORMATS,
    OWN,
    Files,
    Pipeline,
    Publish,
    Quarantine,
    Table,
    Take,
)
from warren.pipeline.places import place, same
from warren.spark.options import span
from warren.yaml_file import Entries, Entry, YamlFile, opened, unknown

_KNOWN = (
    "name",
    "broker",
    "queues",
    "folder",
    "ledger",
    "checkpoint",
    "every",
    "source",
    "spark",
    "tables",
    "ignore",
    "quarantine",
    "publish",
    "statistics",
)
#: Names of tables that something else below the folder has.
RESERVED = (*OWN, "quarantine", "statistics", "messages")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_HERE = "amqp://guest:guest@127.0.0.1:5672/"
T = TypeVar("T")


def load(
    text: str,
    file: str = "pipeline.yaml",
    *,
    broker: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Pipeline:
    """The pipeline that a file describes; ``broker`` is taken instead of the file's.

    Paths are meant from the folder that the file is in. ``${NAME}`` is the environment's word, and
    ``${NAME:-other}`` has another where there is none.

    Raises:
        PipelineError: not YAML, an unknown key (with the nearest that is known), a value that
            can't be used, something that is missing.
    """
    with opened(text, file, PipelineError) as yaml_file:
        values = os.environ if environ is None else environ
        return _Reader(yaml_file, file, broker).read(lambda text: _filled(text, values))


def _filled(text: str, environ: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "${"
        name, has_other, other = match[1].partition(":-")
        found = environ.get(name.strip()) or (other if has_other else environ.get(name.strip()))
        if found is None:
            raise ValueError(
                f"the environment has no {name.strip()}: set it, or say what else with "
                f"${{{name.strip()}:-other}}"
            )
        return found

    return _VARIABLE.sub(value, text)


class _Reader:
    def __init__(self, yaml_file: YamlFile, file: str, broker: str | None) -> None:
        self._yaml, self._file, self._broker = yaml_file, file, broker
        self._here = Path(file).parent if file != "-" else Path()

    def read(self, fill: Callable[[str], str]) -> Pipeline:
        keys = self._yaml.root(_KNOWN, fill=fill)
        name = self._text(keys, "name", Path(self._file).stem if self._file != "-" else "pipeline")
        folder = self._place(keys, "folder", "the file", f"{name}-data")
        spark = self._part(keys, "spark", ("master", "conf"))
        source = self._words(keys, "source")
        pipeline = Pipeline(
            name=name,
            file=self._file,
            broker=self._broker or self._text(keys, "broker", _HERE),
            queues=self._queues(keys),
            folder=folder,
            ledger=self._place(keys, "ledger", "the file", f"{folder}/ledger"),
            checkpoint=self._place(keys, "checkpoint", "the file", f"{folder}/checkpoint"),
            keys=f"{folder}/keys",
            tables=self._tables(keys, folder),
            quarantine=self._quarantine(keys, folder),
            publish=tuple(self._named(keys, "publish", self._publish)),
            statistics=self._statistics(keys, folder),
            ignore=tuple(self._ignored(keys)),
            every_s=self._every(keys),
            source=source,
            master=self._master(spark),
            conf=self._conf(spark),
            lines={name: entry.line for name, entry in keys.items()},
        )
        self._check_options(pipeline, keys)
        self._check_places(pipeline)
        return pipeline

    # -- the top -------------------------------------------------------------------------------
    def _queues(self, keys: Entries) -> tuple[str, ...]:
        if "queues" not in keys:
            problem = "which queues? Say 'queues: [orders, payments.*]'"
            raise PipelineError(self._file, 0, problem)
        names = self._list(keys, "queues", "the file")
        if not names or any(not name or "," in name for name in names):
            raise self._yaml.error(keys["queues"].node, "queues must be names or patterns")
        return names

    def _every(self, keys: Entries) -> float:
        if "every" not in keys:
            return 0.0
        return self._parsed(keys["every"], "every", span)

    def _master(self, spark: Entries) -> str:
        master: str = self._yaml.value(spark, "master", str, "spark", "local[2]")
        if problem := wrong_master(master):
            raise self._yaml.error(spark["master"].node, f"spark: master: {problem}")
        return master

    def _conf(self, spark: Entries) -> dict[str, str]:
        conf = self._words(spark, "conf")
        for name, value in conf.items():
            if problem := wrong_setting(name, value):
                entry = self._yaml.mapping(spark["conf"].node, "conf")[name]
                raise PipelineError(self._file, entry.line, f"spark: {problem}")
        return conf

    def _check_options(self, pipeline: Pipeline, keys: Entries) -> None:
        """What source and sink would refuse, they refuse here."""
        below = self._yaml.mapping(keys["source"].node, "source") if pipeline.source else {}
        check_source(pipeline, below)
        check_quarantine(pipeline)
        check_sinks(pipeline)

    def _check_places(self, pipeline: Pipeline) -> None:
        """Nobody may write where somebody else does: the last one's files would be all."""
        lines = pipeline.lines
        places = [
            ("ledger", pipeline.ledger, lines.get("ledger", 0)),
            ("checkpoint", pipeline.checkpoint, lines.get("checkpoint", 0)),
            ("keys", pipeline.keys, 0),
        ]
        places.append(("quarantine", pipeline.quarantine.files.path, lines.get("quarantine", 0)))
        if pipeline.statistics is not None:
            places.append(("statistics", pipeline.statistics.path, lines.get("statistics", 0)))
        for table in pipeline.tables:
            line = table.lines.get("path", table.line)
            places.append((f"table '{table.name}'", table.files.path, line))
        if found := same((what, path) for what, path, _ in places):
            path, line = next((path, line) for what, path, line in places if what == found[0])
            problem = f"{found[0]}: path {path} is where {found[1]} is"
            raise PipelineError(self._file, line, f"{problem}; each needs a folder of its own")

    # -- tables --------------------------------------------------------------------------------
    def _tables(self, keys: Entries, folder: str) -> tuple[Table, ...]:
        entries = self._yaml.settings(keys["tables"], "tables", None) if "tables" in keys else {}
        if not entries:
            raise PipelineError(
                self._file,
                keys["tables"].line if "tables" in keys else 0,
                "which tables? Below 'tables:', say for each what it takes and its schema",
            )
        reader = TableReader(self._yaml, self._files, self._here)
        names: dict[str, str] = {}
        tables = []
        for name, entry in entries.items():
            self._check_name(name, entry, "table", names)
            tables.append(reader.read(name, entry, folder))
        if all(table.schema is None for table in tables):
            problem = "no table takes messages: at least one needs a schema"
            raise PipelineError(self._file, keys["tables"].line, problem)
        return tuple(tables)

    def _check_name(self, name: str, entry: Entry, what: str, names: dict[str, str]) -> None:
        if not _NAME.fullmatch(name):
            problem = f"{what} '{name}': a name has letters, digits and _ only"
            raise PipelineError(self._file, entry.line, problem)
        if name.lower() in RESERVED:
            raise PipelineError(
                self._file, entry.line, f"{what} '{name}': the name is taken by warren itself"
            )
        if name.lower() in names:
            problem = f"{what} '{name}': there is '{names[name.lower()]}' already; case is the same"
            raise PipelineError(self._file, entry.line, problem)
        names[name.lower()] = name

    def _files(self, keys: Entries, what: str, default: str) -> Files:
        kind = self._yaml.value(keys, "format", str, what, "parquet")
        if kind not in FILE_FORMATS:
            problem = f"{what}: {unknown('format', kind, FILE_FORMATS)}"
            raise self._yaml.error(keys["format"].node, problem)
        return Files(
            path=self._place(keys, "path", what, default),
            format=kind,
            partition_by=self._list(keys, "partition_by", what),
            options=self._file_options(keys, what, kind),
        )

    def _file_options(self, keys: Entries, what: str, kind: str) -> dict[str, str]:
        """Spark would find a wrong word when it has rows to write."""
        options = self._words(keys, "options")
        for name, word in options.items():
            known = COMPRESSIONS.get(kind, ())
            if name.lower() == "compression" and known and word.lower() not in known:
                problem = f"{what}: options: {unknown(f'compression of {kind}', word, known)}"
                entry = self._yaml.mapping(keys["options"].node, "options")[name]
                raise PipelineError(self._file, entry.line, problem)
        return options

    # -- the rest ------------------------------------------------------------------------------
    def _quarantine(self, keys: Entries, folder: str) -> Quarantine:
        what, default = "quarantine", f"{folder}/quarantine"
        known = ("path", "format", "options", "exchange", "routing_key")
        mine = self._part(keys, what, known)
        exchange = self._yaml.value(mine, "exchange", str, what)
        if "routing_key" in mine and exchange is None:
            problem = "quarantine: routing_key is for an exchange, and none is named"
            raise self._yaml.error(mine["routing_key"].node, problem)
        has_table = exchange is None or "path" in mine or "format" in mine
        if "options" in mine and not has_table:
            problem = "quarantine: options are for files; say a path or a format too, or drop them"
            raise PipelineError(self._file, mine["options"].line, problem)
        return Quarantine(
            files=self._files(mine, what, default),
            keeps_all=has_table,
            exchange=exchange,
            routing_key=self._yaml.value(mine, "routing_key", str, what),
            lines={"": keys[what].line if what in keys else 0}
            | {key: found.line for key, found in mine.items()},
        )

    def _statistics(self, keys: Entries, folder: str) -> Files | None:
        what, default = "statistics", f"{folder}/statistics"
        if what in keys and isinstance(keys[what].node, yaml.ScalarNode):
            try:
                wanted = self._yaml.value(keys, what, bool, "the file")
            except PipelineError as error:
                more = "or a mapping with 'path', 'format' and 'options'"
                raise PipelineError(error.file, error.line, f"{error.problem}, {more}") from None
            return Files(default) if wanted else None
        if what not in keys:
            return None
        return self._files(self._part(keys, what, ("path", "format", "options")), what, default)

    def _ignored(self, keys: Entries) -> Iterable[Take]:
        if "ignore" not in keys or self._yaml.is_null(keys["ignore"].node):
            return
        node = keys["ignore"].node
        reader = TableReader(self._yaml, self._files, self._here)
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            take = reader.take(each, "ignore")
            if take == Take(line=take.line):
                problem = "ignore: {} is every message; say which, such as {type: noise}"
                raise self._yaml.error(each, problem)
            yield take

    def _publish(self, name: str, entry: Entry) -> Publish:
        what = f"publish '{name}'"
        known = ("sql", "exchange", "routing_key", "type", "on_unroutable", "on_too_long")
        keys = self._yaml.settings(entry, what, known)
        for needed in ("sql", "exchange"):
            if needed not in keys:
                raise PipelineError(self._file, entry.line, f"{what} needs {_article(needed)}")
        return Publish(
            name,
            sql=self._yaml.value(keys, "sql", str, what),
            exchange=self._yaml.value(keys, "exchange", str, what),
            routing_key=self._yaml.value(keys, "routing_key", str, what, ""),
            type=self._yaml.value(keys, "type", str, what),
            on_unroutable=self._choice(keys, "on_unroutable", what, ("fail", "drop")),
            on_too_long=self._choice(keys, "on_too_long", what, ("fail", "shorten")),
            lines={"": entry.line, **{key: found.line for key, found in keys.items()}},
        )

    # -- values --------------------------------------------------------------------------------
    def _text(self, keys: Entries, name: str, default: str) -> str:
        value: str = self._yaml.value(keys, name, str, "the file", default)
        if not value:
            raise self._yaml.error(keys[name].node, f"{name} must not be empty")
        return value

    def _part(self, keys: Entries, name: str, known: tuple[str, ...]) -> Entries:
        return self._yaml.settings(keys[name], name, known) if name in keys else {}

    def _named(self, keys: Entries, section: str, make: Callable[[str, Entry], T]) -> Iterable[T]:
        if section in keys and not self._yaml.is_null(keys[section].node):
            for name, entry in self._yaml.mapping(keys[section].node, section).items():
                yield make(name, entry)

    def _choice(self, keys: Entries, name: str, what: str, choices: tuple[str, ...]) -> str:
        """One of these words; the first if none is said."""
        word: str = self._yaml.value(keys, name, str, what, choices[0])
        if word not in choices:
            problem = f"{what}: {unknown(name, word, choices)}"
            raise self._yaml.error(keys[name].node, problem)
        return word

    def _words(self, keys: Entries, name: str) -> dict[str, str]:
        """A mapping of options, as the text that Spark takes."""
        if name not in keys or self._yaml.is_null(keys[name].node):
            return {}
        return self._yaml.words(keys[name].node, name)

    def _list(self, keys: Entries, name: str, what: str) -> tuple[str, ...]:
        return one_of(self._yaml, keys[name].node, f"{what}: {name}") if name in keys else ()

    def _parsed(self, entry: Entry, what: str, parse: Callable[[str], T]) -> T:
        try:
            return parse(self._yaml.word(entry.node, what))
        except ValueError as problem:
            raise self._yaml.error(entry.node, f"{what}: {problem}") from None

    def _place(self, keys: Entries, name: str, what: str, default: str) -> str:
        """A folder: from the file's, unless it says where from."""
        path: str = self._yaml.value(keys, name, str, what, default)
        try:
            if not path:
                raise ValueError("must not be empty")
            return place(path, self._here)
        except ValueError as problem:
            node: yaml.Node | int = keys[name].node if name in keys else 0
            where = name if what == "the file" else f"{what}: {name}"
            raise self._yaml.error(node, f"{where}: {problem}") from None


def _article(key: str) -> str:
    return "an exchange to publish to" if key == "exchange" else "a query, 'sql: SELECT …'"
