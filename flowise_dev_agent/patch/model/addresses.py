"""One reading of addresses: scheme, host and port that Flowise (Node) calls for a text, by the WHATWG rules.

A text that is an address is read as a whole, as `new URL` does. Addresses inside other texts (code, JSON, words of
people) are read up to their end. What other readers, or the end of the text, could make another address of is not
clear; nothing allows it. Everything is read in linear time.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ada_url import URL

from flowise_dev_agent.sanitize import clean_text

#: Entry of an address on the server's disk.
FILES: Final = "file:"
_SPECIAL: Final = frozenset({"http", "https", "ws", "wss", "ftp"})
_DROPPED: Final = {ord(char): None for char in "\t\r\n"}
_CONTROLS: Final = "".join(map(chr, range(0x21)))
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):([/\\]*)", re.IGNORECASE)
_INSIDE: Final = re.compile(
    r"\b([a-z][a-z0-9+.-]{0,19}):([/\\]+)|(?<=[\"'`])(https?|wss?|ftp):(?=[^\s/\\\"'`])", re.IGNORECASE
)
_AUTHORITY: Final = re.compile(r"[^/?#]*")
#: Authority of an address inside a text: ends at blanks, quotes and punctuation as well.
_SHORT_AUTHORITY: Final = re.compile(r"[^\s/?#\\\"'`<>,;()|]*")
#: The rest that a reader who knows no quotes would take to it.
_LONGER: Final = re.compile(r"[^\s/?#\\]{0,300}")
_ODD: Final = re.compile(r"[\x00-\x20\x7f\\\"'`<>^|]")
#: Expressions that Flowise or code resolves at run time.
_EXPRESSION: Final = re.compile(r"\{\{([^{}]{0,200})\}\}")
_AT_RUN_TIME: Final = re.compile(r"[{}$]")
#: A path on the server, relative or absolute; two slashes begin a host.
_PATH: Final = re.compile(r"\.{1,2}(?:[/\\]|$)|/(?![/\\])")
_LONGEST = 300
_SHOWN: Final = 60


class Address(NamedTuple):
    """Scheme, host and port that are called (`https://a.example:8443`), or an expression that is resolved at run time.

    `clear`: no reader makes another address of the text.
    """

    origin: str
    clear: bool = True


def addresses_in(text: str) -> list[Address]:
    """Addresses that a text is or holds."""
    value = _condensed(text)
    return list(_of_value(value))


def named_origin(text: str) -> str:
    """Scheme, host and port of an address that a person names, without a path. Raises ValueError."""
    found = addresses_in(text)
    plain = urlsplit(text.strip())
    if (
        [one.clear for one in found] != [True]
        or plain.scheme.casefold() not in ("http", "https")
        or _AT_RUN_TIME.search(text)
        or (plain.path.rstrip("/") or plain.query or plain.fragment or plain.username is not None)
    ):
        raise ValueError("give scheme, host and port, such as https://hooks.example.com:8443")
    return found[0].origin


def bare_address(text: str) -> list[Address]:
    """Address without a scheme (`cache:6379`); an expression is returned as it is. A path is none."""
    value = _condensed(text)
    plain = value.translate(_DROPPED).strip(_CONTROLS)
    if not plain or _PATH.match(plain):
        return []
    authority = _match(_AUTHORITY, plain.lstrip("/\\"))
    if not authority:
        return []
    read = _read("http", authority)
    end = len(plain) - len(plain.lstrip("/\\")) + len(authority)
    return [Address(read.origin.removeprefix("http://"), read.clear and value.strip(_CONTROLS)[:end] == plain[:end])]


def _of_value(value: str) -> Iterator[Address]:
    plain = value.translate(_DROPPED).strip(_CONTROLS)
    begin = _SCHEME.match(plain)
    scheme = begin[1].casefold() if begin else ""
    if begin is None or not (scheme in {*_SPECIAL, "file"} or len(begin[2]) > 1):
        yield from _inside(value)
        return
    if scheme == "file":
        yield Address(FILES)
        return
    authority = _match(_AUTHORITY, plain, begin.end())
    end = begin.end() + len(authority)
    read = _read(scheme, authority)
    yield Address(read.origin, read.clear and begin[2] == "//" and value.strip(_CONTROLS)[:end] == plain[:end])
    yield from _inside(plain[end:])


def _inside(text: str) -> Iterator[Address]:
    for found in _INSIDE.finditer(text):
        if address := _found_inside(text, found):
            yield address


def _found_inside(text: str, found: re.Match[str]) -> Address | None:
    scheme, slashes = (found[1] or found[3]).casefold(), found[2] or ""
    if scheme == "file":
        return Address(FILES)
    authority = _match(_SHORT_AUTHORITY, text, found.end())
    if not authority or not (scheme in _SPECIAL or len(slashes) > 1):
        return None
    end = found.end() + len(authority)
    goes_on = text[end : end + 1] == "\\" or "@" in _match(_LONGER, text, end)
    authority = authority.rstrip(".:!" if "[" in authority else ".:!]")
    read = _read(scheme, authority)
    return Address(read.origin, read.clear and slashes == "//" and not goes_on)


def _read(scheme: str, authority: str) -> Address:
    """Address of a scheme and what stands between its slashes and its path."""
    shown = Address(clean_text(f"{scheme}://{authority[:_SHOWN]}"), clear=False)
    if len(authority) > _LONGEST:
        return shown
    plain = authority.count("@") <= 1 and not _ODD.search(authority) and not any(map(_is_blank, authority))
    if _AT_RUN_TIME.search(authority):
        balanced = authority.count("{") == authority.count("}")
        return Address(f"{scheme}://{authority}", plain and balanced)
    try:
        host = URL(f"{scheme}://{authority}").host
    except ValueError:
        return shown
    return Address(f"{scheme}://{host.casefold()}", plain) if host else shown


def _is_blank(char: str) -> bool:
    """True for blanks and control characters beyond ASCII, such as U+2028 and U+200B."""
    return unicodedata.category(char)[0] in "ZC"


def _match(pattern: re.Pattern[str], text: str, start: int = 0) -> str:
    found = pattern.match(text, start)
    return found[0] if found else ""


def _condensed(text: str) -> str:
    """Text without the blanks around expressions."""
    return _EXPRESSION.sub(lambda one: "{{" + one[1].strip() + "}}", text)
