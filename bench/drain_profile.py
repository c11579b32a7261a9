"""Where a message's time goes between the queue and Arrow: ``python -m bench.drain_profile``.

Eight queues are drained as a task does it, without Spark around it: once to warm up, once as fast
as it goes, and once under Python's profiler, which makes calls of Python dearer than they are. The
rate is that of the second. ``acquire`` is waiting for the thread that writes the ledger.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys

from bench.brokers import launchers
from bench.spark_source import Load, drain


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.drain_profile", description=__doc__)
    parser.add_argument("--messages", type=int, default=240_000)
    parser.add_argument("--size", type=int, default=200, help="octets of a body")
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--broker", choices=("warren", "rabbitmq"), default="warren")
    options = parser.parse_args()
    with launchers([options.broker]) as (launcher,):
        running = launcher.start()
        try:
            load = Load(running.url, 8)
            for _ in range(2):
                load.fill(options.messages, options.size)
                rate, share = drain(load, options.messages)
            load.fill(options.messages, options.size)
            with cProfile.Profile() as profile:
                drain(load, options.messages)
            load.delete()
            load.link.close()
        finally:
            running.stop()
    print(f"{rate:,.0f}/s: {1e6 / rate:.2f} us a message, {share:.2f} of it the ledger's")
    pstats.Stats(profile).sort_stats("tottime").print_stats(options.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
