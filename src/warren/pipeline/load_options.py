"""What source and sink would refuse of a pipeline's file: told before anything is consumed."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from warren.errors import ConfigError, PipelineError
from warren.pipeline.model import Pipeline
from warren.spark.options import CONNECTION, READING, SourceOptions
from warren.spark.sink.options import SINK, SinkOptions

if TYPE_CHECKING:
    from warren.yaml_file import Entries

#: Options that have a place of their own in the file.
_OURS = {
    "uri": "broker",
    "url": "broker",
    "queues": "queues",
    "ledger": "ledger",
    "checkpointlocation": "checkpoint",
    "queryname": "name",
}
_READ = {option.name.lower() for option in CONNECTION + READING}
_WRITTEN = {option.name.lower() for option in SINK}
#: AMQP's limit for names, keys and types.
_MOST_OCTETS = 255


def source_options(pipeline: Pipeline) -> dict[str, str]:
    """What ``format("rabbitmq")`` is told."""
    return {
        **pipeline.connection,
        **pipeline.source,
        "queues": ",".join(pipeline.queues),
        "ledger": pipeline.ledger,
    }


def check_source(pipeline: Pipeline, entries: Entries) -> None:
    """``entries`` are those below ``source``."""
    for name, entry in entries.items():
        if problem := _misplaced(name):
            raise PipelineError(pipeline.file, entry.line, f"source: {problem}")
    lines = {name.lower(): entry.line for name, entry in entries.items()}
    try:
        options = SourceOptions.parse(source_options(pipeline))
    except ConfigError as error:
        raise _told(error, pipeline, lines) from None
    for name, problem in (
        ("peek", "leaves the messages in the queue, and a pipeline takes them"),
        ("replay", "is for spark.read; a pipeline reads again what it needs by itself"),
    ):
        if getattr(options, name):
            raise PipelineError(pipeline.file, lines[name], f"source: {name} {problem}; drop it")


def _misplaced(name: str) -> str | None:
    lower = name.lower()
    if lower in _OURS:
        return f"'{name}' stands at the top of the file, as '{_OURS[lower]}'"
    if lower in _WRITTEN:
        return f"'{name}' is for what is written, and this is what is read; drop it"
    if lower in ("path", "paths", "inferschema", "outputmode"):  # Spark's: it takes them in silence
        return f"'{name}' means nothing here; drop it"
    return None


def _told(error: ConfigError, pipeline: Pipeline, lines: Mapping[str, int]) -> PipelineError:
    """``lines`` are those of the options below ``source``."""
    # What is wrong inside of a URI names its part, and the URI as where it was found.
    for option in (error.source.lower(), error.option.lower()):
        if option in lines:
            return PipelineError(pipeline.file, lines[option], _problem(error))
        if option in _OURS:
            key = _OURS[option]
            problem = f"{key}: {_inside(error)}{error.problem}"
            return PipelineError(pipeline.file, pipeline.lines.get(key, 0), problem)
    return PipelineError(pipeline.file, pipeline.lines.get("source", 0), _problem(error))


def _problem(error: ConfigError) -> str:
    where = error.source if error.source.lower() in _READ else error.option
    return f"{where}: {_inside(error)}{error.problem}"


def _inside(error: ConfigError) -> str:
    return f"{error.option}: " if error.source.lower() in _READ else ""


def check_quarantine(pipeline: Pipeline) -> None:
    """What would be found out at the first message that can't be read."""
    place = pipeline.quarantine
    read = [name for name in pipeline.queues if fnmatchcase(place.routing_key or "", name.strip())]
    if place.files.format == "csv":
        key, problem = "format", "CSV can't hold a message; there are parquet, orc and json"
    elif place.exchange == "" and not place.routing_key:
        key = "exchange"
        problem = "the default exchange takes a message to the queue that its routing key names, "
        problem += "perhaps the one it came from; say to which queue: 'routing_key: NAME'"
    elif place.exchange == "" and read:
        key = "routing_key"
        problem = f"routing_key '{place.routing_key}' is a queue that is read "
        problem += f"('{read[0]}' in queues): each message would come back"
    else:
        return
    raise PipelineError(pipeline.file, place.lines[key], f"quarantine: {problem}")


def check_sinks(pipeline: Pipeline) -> None:
    """What is published and quarantined, as far as it can be known."""
    quarantine = pipeline.quarantine
    sinks = [(f"publish '{each.name}'", each.options, each.lines) for each in pipeline.publish]
    if quarantine.exchange is not None:
        sinks.append(("quarantine", quarantine.options, quarantine.lines))
    for what, options, lines in sinks:
        for key, option in (("exchange", "exchange"), ("routing_key", "routingKey")):
            if len(options[option].encode()) > _MOST_OCTETS:
                problem = f"{what}: {key} is longer than {_MOST_OCTETS} octets"
                raise PipelineError(pipeline.file, lines.get(key, lines[""]), problem)
        try:
            SinkOptions.parse({**pipeline.connection, **options})
        except ConfigError as error:
            line = lines.get(error.option, lines[""])
            problem = f"{what}: {error.option}: {error.problem}"
            raise PipelineError(pipeline.file, line, problem) from None
