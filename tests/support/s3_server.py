"""moto's S3 as a process: ``python s3_server.py PORT``.

It answers one request after the other: with threads moto looks at the condition of a write and
writes in two steps, between which another one may come. S3 does it in one.
"""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple


class OneServer(WSGIRequestHandler):
    """Moto names a server itself, and aiohttp refuses two, if asyncio is to look closely."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Server":
            super().send_header(keyword, value)


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        DomainDispatcherApplication(create_backend_app),
        threaded=False,
        request_handler=OneServer,
    )
