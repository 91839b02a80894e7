"""Text and JSON in a form that Postgres accepts: it refuses NUL, lone surrogates and NaN."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

_REPLACEMENT: Final = "\ufffd"
#: Control characters besides tab and line feed, separators of lines, and marks of direction: they change how the text
#: around them reads.
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
#: What Markdown could read as more than text: inside a line, and at its beginning.
_MARKUP: Final = re.compile(
    r"[`*~]|\\(?=[!-/:-@\[-`{-~]|$)|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#|[A-Za-z]{1,31};)|\](?=[(\[:])|!?\[(?=\^)"
)
_BLOCK: Final = re.compile(r"[#>=|\[]|[-+](?![\w.])")
_NUMBERED: Final = re.compile(r"([0-9]{1,9})[.)](?:\s|$)")
#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
#: Their text is ours to choose.
_FOREIGN: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def csv_line(values: Iterable[Any]) -> str:
    """A line of CSV, in which no cell is a formula."""
    texts = ["" if value is None else str(value) for value in values]
    buffer = io.StringIO()
    csv.writer(buffer).writerow([f"'{text}" if text.startswith(_FORMULA) else text for text in texts])
    return buffer.getvalue()


def clean_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two surrogates that form a pair are a character; single ones are replaced.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """A copy of `value` that is plain JSON: texts cleaned, NaN and infinities None, foreign objects as their text."""
    text = _quick_clean(value)
    return _clean_copy(value) if text is None else orjson.loads(text)


def json_text(value: Any) -> bytes:
    """The JSON text of `clean_json(value)`, most often without making that."""
    text = _quick_clean(value)
    return json.dumps(_clean_copy(value)).encode() if text is None else text


def _quick_clean(value: Any) -> bytes | None:
    """The JSON text of a value in which nothing but NaN and infinities needs cleaning; they are null there."""
    text = _quick_text(value)
    return None if text is None or b"\\u0000" in text else text


def _quick_text(value: Any) -> bytes | None:
    """None: it is not plain JSON, not Unicode, or has a number of more than 64 bits."""
    try:
        return orjson.dumps(value, option=_FOREIGN)
    except TypeError:
        return None


def _clean_copy(value: Any) -> Any:
    # By exact type first: nearly all values are of these.
    kind = type(value)
    if kind is str:
        return clean_text(value)
    if value is None or kind is bool or kind is int:
        return value
    if kind is dict:
        return {clean_text(str(key)): _clean_copy(item) for key, item in value.items()}
    if kind is list:
        return [_clean_copy(item) for item in value]
    match value:
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return clean_text(value)
        case Mapping():
            return {clean_text(str(key)): _clean_copy(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean_copy(item) for item in value]
        case _:
            return clean_text(str(value))


def visible(text: str) -> str:
    """`text` without what changes how the text around it reads: control characters and marks of direction."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n"))


def in_markdown(text: str) -> str:
    """`text` in one line of which nothing is read as Markdown or HTML."""
    line = _MARKUP.sub(lambda found: f"\\{found[0]}", " ".join(visible(text).split()))
    number = _NUMBERED.match(line)
    if number:
        return f"{number[1]}\\{line[number.end(1) :]}"
    return f"\\{line}" if _BLOCK.match(line) else line


def shortened(text: str, limit: int) -> str:
    """`text`, cleaned, in at most `limit` characters; an ellipsis marks a cut, which is between words if it can be."""
    cleaned = clean_text(text)
    if len(cleaned) <= limit:
        return text if cleaned == text else cleaned
    kept, end = cleaned[: limit - 1], cleaned[limit - 1 : limit]
    between = 0 if end.isspace() else max(kept.rfind(" "), kept.rfind("\n"))
    return kept[: between if between >= limit // 2 else None].rstrip() + "…"


def bounded(data: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """`data`, cleaned, in at most `limit` bytes of JSON: the largest values are dropped, `truncated` names them."""
    kept: dict[str, Any] = clean_json(data)
    if json_size(kept) <= limit:
        return kept
    names: list[str] = []
    for key in sorted(kept, key=lambda name: json_size({name: kept[name]}), reverse=True):
        del kept[key]
        names.append(key[:60])
        result = {**kept, "truncated": names[:20]}
        if json_size(result) <= limit:
            return result
    # Only names are left, and even they can be too much.
    shown = names[:20]
    while json_size({"truncated": shown}) > limit:
        shown.pop()
    return {"truncated": shown}


def json_size(value: Any) -> int:
    """Bytes of the compact JSON text of a value."""
    text = _quick_text(value)
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace") if text is None else text)
