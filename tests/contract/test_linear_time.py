"""Functions that read text of people, flows, servers and models take time that grows linearly with it."""

import time
from collections.abc import Callable

import pytest

from flowise_dev_agent.flowise.responses import flowise_message, storable
from flowise_dev_agent.knowledge.pattern_library import terms_of
from flowise_dev_agent.patch.model.addresses import addresses_in, bare_address
from flowise_dev_agent.patch.model.reach import reached, sets_credential
from flowise_dev_agent.patch.model.references import has_variable, referenced, sole_reference, variables
from flowise_dev_agent.patch.model.visibility import is_visible
from flowise_dev_agent.planning import wording
from flowise_dev_agent.redaction import holds_secret, masked, redacted
from flowise_dev_agent.sanitize import clean_json, clean_text, shortened

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "clean_text": clean_text,
    "clean_json": clean_json,
    "flowise_message": lambda text: flowise_message(f"<html>{text}".encode(errors="replace")),
    "has_variable": has_variable,
    "addresses_in": addresses_in,
    "bare_address": bare_address,
    "reached": lambda text: reached("baseOptions", text, None),
    "sets_credential": lambda text: sets_credential("baseOptions", text),
    "terms_of": terms_of,
    "wording.split": wording.split,
    "holds_secret": holds_secret,
    "is_visible, hostile condition": lambda text: is_visible({"show": {"a": text}}, {"a": "a" * len(text)}),
    "is_visible, hostile value": lambda text: is_visible({"show": {"a": "^(a+)+$"}}, {"a": text}),
    "masked": masked,
    "redacted": lambda text: redacted({"a": [text], "apiKey": text}),
    "referenced": referenced,
    "shortened": lambda text: shortened(text, 100),
    "sole_reference": sole_reference,
    "storable": storable,
    "variables": variables,
}
UNITS = [
    *(" ", "\n", "a", "a ", "{", "{{", "}}", "{{a", "{{ ", "{{ }", ".", ".*", ".+", ".*a", "<title>", "<", "[[", '{"'),
    *(
        "://",
        "://a:",
        "a:\\\\",
        "'http:",
        "http://a@",
        ", ",
        "not call ",
        "sk-",
        "eyJ",
        "-eyJ",
        "eyJaaaaaaaaaaa.",
        "Bearer ",
        "Basic ",
        "-----BEGIN ",
        "password=",
        "Aa1",
    ),
    *("api_key ", "a-b_", "token:", " 12345678:AA", "(a+)+", "\ud800", "\x00", "ä", "hooks.slack.com/services/"),
]
SMALL, LARGE = 8_192, 32_768
#: Below this the clock measures noise.
_NOISE_SECS = 0.004
#: Four times the text takes four times as long, on a busy machine up to seven; what is quadratic takes sixteen.
_SLOWER = 9
_TRIES = 3


def seconds(function: Callable[[str], object], text: str) -> float:
    """Processor time of one call."""
    began = time.process_time()
    function(text)
    return time.process_time() - began


def is_slow(function: Callable[[str], object], text: str) -> bool:
    """True if one call took longer than its text explains. Most take so little that the short text need not be read."""
    large = seconds(function, text[:LARGE])
    if large <= _SLOWER * _NOISE_SECS:
        return False
    return large > _SLOWER * min(seconds(function, text[:SMALL]) for _ in range(3))


#: `redacted` reads by the patterns of these two.
BY_NIGHT = ("holds_secret", "masked")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in BY_NIGHT else ()) for name in FUNCTIONS]
)
def test_p87_p86_time_grows_linearly_with_hostile_text(name: str) -> None:
    function = FUNCTIONS[name]
    texts = [text for unit in UNITS for text in (unit * LARGE, f"temp{unit * LARGE}", f"{{{{{unit * LARGE}!")]
    # What is quadratic is slow each time; one measurement alone may have met something else.
    assert [text[:20] for text in texts if all(is_slow(function, text) for _ in range(_TRIES))] == []


def test_what_is_quadratic_is_found() -> None:
    text = "a" * LARGE

    def quadratic(text: str) -> int:
        # Few long searches: what each call costs beside them grows linearly.
        return sum(text[at:].count("ab") for at in range(0, len(text), 8))

    assert all(is_slow(quadratic, text) for _ in range(_TRIES))
    assert not all(is_slow(lambda text: [text.count(unit) for unit in UNITS * 50], text) for _ in range(_TRIES))
