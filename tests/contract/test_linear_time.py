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
    """Processor time of the quickest of a few calls."""
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        function(text)
        taken.append(time.process_time() - began)
        if taken[-1] < _NOISE_SECS:
            break
    return min(taken)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_p87_p86_time_grows_linearly_with_hostile_text(name: str) -> None:
    function = FUNCTIONS[name]
    slow: list[str] = []
    for unit in UNITS:
        for text in (unit * LARGE, f"temp{unit * LARGE}", f"{{{{{unit * LARGE}!"):
            times = ((seconds(function, text[:SMALL]), seconds(function, text[:LARGE])) for _ in range(_TRIES))
            # What is quadratic is slow each time; one measurement alone may have met something else.
            if all(large > _SLOWER * max(small, _NOISE_SECS) for small, large in times):
                slow.append(repr(unit))
    assert slow == []
