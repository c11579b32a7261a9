"""moto's S3 as a process: ``python s3_server.py PORT``.

It answers one request after the other: with threads moto looks at the condition of a write and
writes in two steps, between which another one may come. S3 does it in one.
"""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        DomainDispatcherApplication(create_backend_app),
        threaded=False,
    )
