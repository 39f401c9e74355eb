"""The scripted model as its own process, so that it outlives its clients."""

import argparse
import signal
import sys
from pathlib import Path

import anyio
import msgspec

from windlass.testing.model.script import Book
from windlass.testing.model.server import ModelServer


def main() -> None:
    """Serve until a signal arrives or standard input closes."""
    parser = argparse.ArgumentParser(
        prog="python -m windlass.testing.model", description="Serve a scripted model on 127.0.0.1"
    )
    parser.add_argument("--port", type=int, default=0, help="Listen here; 0 takes any free port")
    parser.add_argument("--book", type=Path, help="Read the scripts from this file, JSON or TOML")
    parser.add_argument("--log", type=Path, help="Append every request to this file")
    parser.add_argument("--until-eof", action="store_true", help="Exit when standard input closes")
    args = parser.parse_args()
    try:
        book = read(args.book) if args.book else Book()
    except (OSError, ValueError) as error:  # not JSON or TOML, or not a book
        parser.error(f"{args.book}: {error}")
    anyio.run(serve, book, args.port, args.log, args.until_eof)


def read(path: Path) -> Book:
    """Read the book from a JSON or TOML file; TOML is easier to write by hand."""
    decode = msgspec.toml.decode if path.suffix == ".toml" else msgspec.json.decode
    return decode(path.read_bytes(), type=Book)


async def serve(book: Book, port: int, log: Path | None, until_eof: bool) -> None:  # noqa: FBT001
    """Serve the book and print the URL."""
    async with ModelServer.serving(book, port=port, log=log) as server:
        sys.stdout.write(f"listening on {server.url}\n")
        sys.stdout.flush()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_signal, tasks.cancel_scope)
            if until_eof:
                await anyio.to_thread.run_sync(_until_eof, abandon_on_cancel=True)
                tasks.cancel_scope.cancel()


async def _until_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()
            return


def _until_eof() -> None:
    while sys.stdin.buffer.read(4096):
        pass


if __name__ == "__main__":
    main()
