"""``Broker``: the embedded broker as programs hold it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ssl
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from warren._version import __version__
from warren.broker.admin import Admin
from warren.broker.core import BrokerCore
from warren.clock import Clock
from warren.config import BrokerConfig
from warren.errors import BrokerStopped, ConfigError, ListenError, NotStarted
from warren.server.faults import Faults
from warren.server.server import Server
from warren.server.thread import InThread
from warren.server.tls import server_context

if TYPE_CHECKING:
    from warren.server.http import HttpServer

T = TypeVar("T")


class Broker:
    """A RabbitMQ-compatible broker inside this process.

    ::

        async with warren.Broker(port=0) as broker:
            print(broker.url)

    Leaving the block closes every connection and frees the port.

    Raises:
        ListenError: the port is taken, or not ours to take.
    """

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        config: BrokerConfig | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(host, int):
            raise ConfigError("host", f"{host} is no address; write Broker(port={host})")
        _check_clock(clock)
        given = {"host": host, "port": port, **settings}
        self.config = (config or BrokerConfig()).replace(
            **{name: value for name, value in given.items() if value is not None}
        )
        self.core = BrokerCore(
            clock=clock,
            version=__version__,
            heartbeat_s=self.config.heartbeat_s,
            channel_max=self.config.channel_max,
            max_message_bytes=self.config.max_message_bytes,
            memory_limit_bytes=self.config.memory_limit_bytes,
            disk_free_limit_bytes=self.config.disk_free_limit_bytes,
            loopback_users=self.config.loopback_user_names,
        )
        self._server = Server(self.core)
        #: Faults to try a program with: cut connections, lost confirms, alarms.
        self.faults = Faults(self.core, self._run)
        self.port = self.config.port
        self.tls_port = self.config.tls_port
        self.management_port = self.config.management_port
        self.management_tls_port = self.config.management_tls_port
        self._http: HttpServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._stopped = False

    # -- life ------------------------------------------------------------------------------------
    async def __aenter__(self) -> Broker:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stopped = False
        context = server_context(self.config)
        server_context(self.config, "management_tls_verify")  # a wrong setting is told before
        if self.config.data_dir:
            # Only where it is used: a broker in a test should be there at once.
            from warren.store.sqlite import SqliteStore

            self.core.open_store(SqliteStore(self.config.data_dir))
        try:
            self.port = await self._server.start(self.config.host, self.config.port)
            if context is not None and self.config.tls_port >= 0:
                await self._start_tls(context)
            if max(self.config.management_port, self.config.management_tls_port) >= 0:
                await self._start_management()
        except BaseException:
            self._loop = None
            if self.core.journal is not None:
                self.core.journal.close()
            raise
        return self

    def __enter__(self) -> NoReturn:
        raise TypeError(
            "a Broker is started with 'async with'; where there is no event loop, write "
            "'with warren.Broker.in_thread() as broker'"
        )

    def __exit__(self, *error: object) -> None:
        """Only there so that ``with`` asks for ``__enter__``."""

    async def _start_management(self) -> None:
        from warren.management.api import Api
        from warren.management.listeners import Listener
        from warren.server.http import HttpServer

        config, host = self.config, self.config.management_host or self.host
        files = {
            "certificate": config.tls_certificate,
            "key": config.tls_key,
            "ca": config.tls_ca,
        }
        listeners = [Listener("amqp", self.host, self.port)]
        if self.tls_port >= 0:
            tls = Listener("amqp/ssl", self.host, self.tls_port, **files, verify=config.tls_verify)
            listeners.append(tls)
        self._http = HttpServer(
            self.core,
            Api(self.core, listeners).handle,
            self._server.after_event,
            self._server.synced,
        )
        try:
            if config.management_port >= 0:
                self.management_port = await self._http.start(host, config.management_port)
                listeners.append(Listener("http", host, self.management_port))
            if config.management_tls_port >= 0:
                context = server_context(config, "management_tls_verify")
                port = await self._http.start(host, config.management_tls_port, context)
                verify = config.management_tls_verify
                listeners.append(Listener("https", host, port, **files, verify=verify))
                self.management_tls_port = port
        except ListenError:
            await self._http.stop()
            await self._server.stop()
            raise

    async def _start_tls(self, context: ssl.SSLContext) -> None:
        try:
            self.tls_port = await self._server.start_tls(self.host, self.config, context)
        except ListenError:
            await self._server.stop()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._http is not None:
                await self._http.stop()
            await self._server.stop()
        finally:
            self._loop = None
            self._stopped = True
            if self.core.journal is not None:
                self.core.journal.close()

    @classmethod
    def in_thread(
        cls, host: str | None = None, port: int | None = None, **settings: Any
    ) -> InThread:
        """The broker on a thread of its own, for programs without an event loop.

        On any free port, unless a port or a config is given.

        ::

            with warren.Broker.in_thread() as broker:
                connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        """
        if port is None and "config" not in settings:
            port = 0
        return InThread(cls(host, port, **settings))

    # -- looking ---------------------------------------------------------------------------------
    @property
    def host(self) -> str:
        return self.config.host

    @property
    def url(self) -> str:
        """Where clients connect to.

        Raises:
            NotStarted: the port is any free one, and which is not known yet.
        """
        if not self.port:
            raise NotStarted("url")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://guest:guest@{host}:{self.port}/"

    @property
    def management_url(self) -> str:
        """Where the management HTTP API is; empty if the broker does not listen for it."""
        return self._http_url("http", self.management_port)

    @property
    def management_tls_url(self) -> str:
        """Where it is over TLS; empty if the broker does not listen for it."""
        return self._http_url("https", self.management_tls_port)

    def _http_url(self, scheme: str, port: int) -> str:
        name = self.config.management_host or self.host
        host = f"[{name}]" if ":" in name else name
        return f"{scheme}://{host}:{port}" if self._http is not None and port >= 0 else ""

    @property
    def tls_url(self) -> str:
        """Where clients connect to over TLS; empty if the broker does not listen for it."""
        if not self.tls_port:
            raise NotStarted("tls_url")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqps://guest:guest@{host}:{self.tls_port}/" if self.tls_port >= 0 else ""

    def snapshot(self) -> dict[str, Any]:
        """Counts and queues as they are now; names follow RabbitMQ's management API.

        Of a broker that has stopped: as they were at its end.
        """
        if self._stopped:
            return _snapshot(self.core)
        return self._run(lambda: _snapshot(self.core))

    # -- steering --------------------------------------------------------------------------------
    def add_vhost(self, name: str) -> None:
        """Make a virtual host for ``guest`` to use; one that is there already stays as it is."""
        self._run(lambda: self.core.add_vhost(name))

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with all that is in it, and close its connections.

        Raises:
            AdminError: there is none of that name.
        """
        self._run(lambda: self.core.admin.delete_vhost(name))

    def add_user(self, name: str, password: str, tags: Iterable[str] = ()) -> None:
        """Make a user, or give one a new password and new tags."""
        self._run(lambda: self.core.admin.put_user(name, password=password, tags=tags))

    def delete_user(self, name: str) -> None:
        """Delete a user with its permissions, and close its connections.

        Raises:
            AdminError: there is none of that name.
        """
        self._run(lambda: self.core.admin.delete_user(name))

    def set_permissions(
        self,
        user: str,
        vhost: str = "/",
        configure: str = ".*",
        write: str = ".*",
        read: str = ".*",
    ) -> None:
        """Let a user use a virtual host: patterns of the names it may configure, write and read."""
        self._run(lambda: self.core.admin.set_permissions(user, vhost, configure, write, read))

    def clear_permissions(self, user: str, vhost: str = "/") -> None:
        """Take a user's permissions in a virtual host away."""
        self._run(lambda: self.core.admin.clear_permissions(user, vhost))

    def administer(self, act: Callable[[Admin], T]) -> T:
        """Do anything an administrator can: ``broker.administer(lambda admin: admin.users())``."""
        return self._run(lambda: act(self.core.admin))

    def close_connections(self, reason: str = "closed by the operator") -> int:
        """Close every connection with 320 CONNECTION_FORCED; returns how many."""
        return self._run(lambda: self.core.close_connections(reason))

    def memory_alarm(self, on: bool) -> None:
        """Raise or clear the memory alarm: publishers are blocked while it is raised."""
        self._run(lambda: self.core.memory_alarm(on))

    def _run(self, act: Callable[[], T]) -> T:
        """Do something inside the broker, from whatever thread, and let it take effect."""
        if self._stopped:
            raise BrokerStopped(self.host, self.port)
        loop = self._loop
        if loop is None or threading.get_ident() == self._thread:
            return self._acted(act)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            try:
                future.set_result(self._acted(act))
            except Exception as error:  # noqa: BLE001 - the caller's thread raises it
                future.set_exception(error)

        loop.call_soon_threadsafe(call)
        return future.result(10)

    def _acted(self, act: Callable[[], T]) -> T:
        result = act()
        if self._loop is not None:
            self._server.after_event()
        return result


def _check_clock(clock: Any) -> None:
    if isinstance(clock, type):
        name = clock.__name__
        raise ConfigError("clock", f"{name} is a class; write clock={name}()")
    if clock is not None and not hasattr(clock, "monotonic_ms"):
        raise ConfigError("clock", f"{clock!r} is no clock; write clock=FakeClock()")


def _snapshot(core: BrokerCore) -> dict[str, Any]:
    core.tally()
    queues = [queue.snapshot() for vhost in core.vhosts.values() for queue in vhost.queues.values()]
    return {
        "published": core.published,
        "connections": len(core.connections),
        "channels": sum(
            len(connection.session.ready) + len(connection.session.assembling)
            for connection in core.connections
        ),
        "memory_alarm": bool(core.alarm),
        "held_bytes": core.held_bytes,
        "queues": queues,
    }
