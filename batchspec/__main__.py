"""``batchspec`` and ``python -m batchspec``: until the rest is imported, a signal ends it without a traceback."""

import signal

__all__ = ["main"]

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command listens; where it is ignored, it stays so


def main() -> None:
    """Import the command line and run it."""
    from batchspec.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
