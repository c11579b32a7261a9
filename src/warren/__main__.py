"""``python -m warren``, and the ``warren`` command."""

from __future__ import annotations


def main() -> int:
    """Run one command; Ctrl-C is silent, also while the command is imported.

    Then it ends the process at once: a KeyboardInterrupt amid an import may get lost there.
    """
    try:
        import signal

        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        def imported() -> None:
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        from warren.cli.main import main as run

        return run(imported=imported)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
