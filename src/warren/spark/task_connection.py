"""A task's connection to the broker, made again for a while when it breaks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from warren.client.blocking import BlockingConnection
from warren.clock import Moment, seconds_since
from warren.errors import ClientError, ConnectionForced, InternalError, WarrenError

log = logging.getLogger(__name__)

#: How long a broker that went away is waited for.
RECONNECT_S = 60.0
#: What says that a connection broke, or could not be made. RabbitMQ calls it an internal error if a
#: queue has lost most of its nodes.
BROKEN = (ClientError, ConnectionForced, InternalError, TimeoutError)
#: Longer each time: what was on its way is given out once more each time, and some queues count.
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 2.0
#: But first at once: whether a broker is there tells a cut from a restart.
_FIRST_PAUSE_S = 0.02
#: A broker that was there so lately, and lets us in again at once, was not restarted in between: a
#: warren needs as long to start, a RabbitMQ seconds. When it was heard does not say when it was
#: there: who slept reads first what it said before that.
_BRIEFLY_S = 0.25


class TaskConnection:
    """The one connection of a task, however many queues it reads."""

    def __init__(
        self, connect: Callable[[], BlockingConnection], reconnect_s: float = RECONNECT_S
    ) -> None:
        self._connect = connect
        self._reconnect_s = reconnect_s
        self._link: BlockingConnection | None = None
        self._failing_since: float | None = None
        self._failures = 0
        #: It is not the first one, or not made at once; who has judged that sets it back.
        self.made_again = False
        #: Since the one before it, the broker may have been restarted.
        self.restarted = False
        self._was_down = False
        #: The one before it: where it led, and when the broker was surely there.
        self._before: tuple[str, Moment] | None = None

    @property
    def link(self) -> BlockingConnection:
        """The connection, made if there is none."""
        if self._link is None or not self._link.is_open:
            self.abandon()
            link = self._connect()
            self.restarted = self._was_down or self._is_news(link)
            self.made_again = self.made_again or self._was_down or self._before is not None
            self._link, self._was_down = link, False
        return self._link

    def _is_news(self, link: BlockingConnection) -> bool:
        if self._before is None:
            return False
        address, alive_at = self._before
        return link.address != address or seconds_since(alive_at) > _BRIEFLY_S

    def works(self) -> None:
        """Something came over it: from here on, it has as long again."""
        self._failing_since, self._failures = None, 0

    def keep_alive(self, has_room: Callable[[], bool]) -> None:
        """Read what is there while there is room for it, and send a heartbeat if one is due.

        For the thread that uses the connection, while it waits for something else. A broker hangs
        up also on who does not read. What breaks is found by the next use.
        """
        link = self._link
        if link is None or not link.is_open:
            return
        try:
            while (reads := has_room()) and link.pump(0.0):
                pass
            if not reads:
                link.beat()
            link.flush()
        except WarrenError as error:
            log.debug("connection lost while a task waited: %s", error)

    def lost(self, error: Exception) -> bool:
        """Let go of what broke; False when that has gone on for too long to try again."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        self._was_down = self._was_down or self._link is None
        self.abandon()
        if now - self._failing_since > self._reconnect_s:
            return False
        log.warning("connection lost in a task (%s); connecting again", error)
        time.sleep(_pause_s(self._failures))
        self._failures += 1
        return True

    def abandon(self) -> None:
        """Close it without a word, as a crash would."""
        if self._link is not None:
            self._before = self._link.address, self._link.alive_at
            self._link.abandon()
            self._link = None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


def _pause_s(failures: int) -> float:
    if not failures:
        return _FIRST_PAUSE_S
    return min(_PAUSE_S * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_S)
