"""What kind of queue it is, asked over AMQP alone.

AMQP 0-9-1 has no question for this, and an exclusive consumer is no protection on a quorum queue:
the flag is ignored there. But a declaration that does not match is refused with the name and the
present value of the first argument that differs. So: declare what can't be (a kind of queue that
does not exist, which no broker would ever create), and take over each argument that the refusal
tells, until it tells the kind. Of a quorum queue the delivery limit comes behind the kind, and is
asked for in the same way, beside a leader locator that can't be: nobody compares that one, and no
queue can be made with it. Nothing is changed by it; each refusal costs a channel.

No IO here: ``KindProbe`` says what to declare and reads the refusal, whoever carries it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from warren.errors import PreconditionFailed

if TYPE_CHECKING:
    from warren.client.connection import Connection

_TYPE, _SINGLE = "x-queue-type", "x-single-active-consumer"
_LOCATOR = "x-queue-leader-locator"
_LIMIT, _DEAD_LETTERS = "x-delivery-limit", "x-dead-letter-exchange"
_IMPOSSIBLE = "warren-asks"
#: A queue has a dozen arguments at the most; a broker that goes on longer is not to be understood.
_MOST_QUESTIONS = 24

_REFUSAL = re.compile(
    r"inequivalent arg '(?P<name>[^']+)' for queue '.*' in vhost '.*': received .* but current is "
    r"(?:the value )?(?P<value>none|'(?P<text>.*?)')(?: of type '(?P<type>[a-z]+)')?$",
    re.DOTALL,
)
#: A reply text has 255 octets, and brokers end a longer one with dots: a long name leaves no room.
_CUT = re.compile(
    r"inequivalent arg '(?P<name>[^']+)' for queue '.*?(?: but current is "
    r"(?P<value>n|(?:the value )?'(?P<text>[a-z]+)).*)?\.\.\.$",
    re.DOTALL,
)
_TYPES = ("classic", "quorum", "stream")
_INTEGERS = {"byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint"}


@dataclass(frozen=True)
class QueueKind:
    """``classic``, ``quorum`` or ``stream``, and whether it has a single active consumer.

    ``auto_delete``: it goes, with what is in it, when its last consumer goes. ``delivery_limit``
    and ``dead_letters`` (it has a dead-letter exchange): by its arguments; policies are not told.
    """

    type: str
    single_active: bool
    auto_delete: bool = False
    delivery_limit: int | None = None
    dead_letters: bool = False

    @property
    def one_consumer_by(self) -> str | None:
        """How the broker can be made to let one consumer work at a time; None: it can't."""
        if self.single_active:
            return "single-active"
        return "exclusive" if self.type == "classic" else None


class KindProbe:
    """The questions to a broker about one queue, one declaration after another."""

    def __init__(self) -> None:
        self.durable = True
        self.exclusive = False
        self.auto_delete = False
        self.arguments: dict[str, Any] = {_TYPE: _IMPOSSIBLE}
        #: The broker's answer was cut before it told anything.
        self.cut = False
        self._asked = 0
        self._type = ""
        self._single_active = False

    def refused(self, text: str) -> QueueKind | None:
        """Read a 406; None: declare again as the attributes now say.

        Raises:
            PreconditionFailed: the refusal is not one that tells anything.
        """
        found = _REFUSAL.search(text)
        self._asked += 1
        if found is None or self._asked > _MOST_QUESTIONS:
            return self._kind() or self._of_cut(text) or _not_told(text)
        name, value = found["name"], found["text"]
        if name == _TYPE:
            self._type = value or "classic"
            self.arguments |= {_TYPE: self._type, _LIMIT: _IMPOSSIBLE, _LOCATOR: _IMPOSSIBLE}
            return self._kind() if self._type != "quorum" else None
        if self._type and name in (_LIMIT, _LOCATOR):
            told = name == _LIMIT and value is not None and value.lstrip("-").isdigit()
            return self._kind(int(value) if told else None)
        if name in ("durable", "exclusive", "auto_delete"):
            setattr(self, name, value == "true")
            return None
        if found["value"] == "none":
            self.arguments.pop(name, None)
        else:
            self.arguments[name] = _as_argument(value, found["type"])
        if name == _SINGLE:
            self._single_active = value == "true"
        return None

    def taken(self) -> QueueKind:
        """The same for a declaration that was not refused."""
        return self._kind() or _not_told("an impossible declaration was taken")

    def _of_cut(self, text: str) -> QueueKind | None:
        """What the beginning of an answer tells."""
        found = _CUT.search(text)
        self.cut = found is not None
        if found is None or found["name"] != _TYPE or found["value"] is None:
            return None
        began = found["text"] or "classic"
        self._type = next((each for each in _TYPES if each.startswith(began)), "")
        return self._kind()

    def _kind(self, delivery_limit: int | None = None) -> QueueKind | None:
        if not self._type:
            return None
        return QueueKind(
            self._type,
            self._single_active,
            self.auto_delete,
            delivery_limit,
            self.arguments.get(_DEAD_LETTERS) is not None,
        )


def _not_told(text: str) -> NoReturn:
    raise PreconditionFailed(text)


def _as_argument(text: str, kind: str | None) -> Any:
    if kind == "bool":
        return text == "true"
    if kind in _INTEGERS or (kind is None and text.lstrip("-").isdigit()):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    return text


async def queue_kind(connection: Connection, queue: str) -> QueueKind:
    """What kind of queue it is.

    Raises:
        NotFound: there is no such queue.
        AccessRefused: the user may not configure it, so the broker does not tell.
    """
    # A queue that is not there would be refused with another 406 (no such type), not with 404.
    async with await connection.channel(confirms=False) as channel:
        await channel.declare_queue(queue, passive=True)
    probe = KindProbe()
    while True:
        channel = await connection.channel(confirms=False)
        try:
            await channel.declare_queue(
                queue,
                durable=probe.durable,
                exclusive=probe.exclusive,
                auto_delete=probe.auto_delete,
                arguments=probe.arguments,
            )
        except PreconditionFailed as refusal:
            kind = probe.refused(refusal.text)
            if kind is not None:
                return kind
        else:
            await channel.close()
            return probe.taken()
