"""Settings of a flow: which files people upload with a message."""

import json
from typing import get_args

import pytest

from flowise_dev_agent.errors import FlowiseUnexpectedResponseError
from flowise_dev_agent.flowise.uploads import (
    _TYPES,
    as_kept,
    is_set,
    kept_settings,
    offering,
    put_back,
    takes_files,
    taking,
)
from flowise_dev_agent.schemas.plan import UploadKind

THEIRS = '{"title":"Shop \u00fc","n":0.10,"fullFileUpload":{"status":false,"pdfFile":{"usage":"perFile"}},"z":[1]}'


def test_each_kind_has_types() -> None:
    assert set(_TYPES) == set(get_args(UploadKind))


@pytest.mark.parametrize("config", [None, "", "null", THEIRS])
def test_files_are_taken_and_all_other_settings_stay_as_they_are(config: str | None) -> None:
    changed = taking(["text", "pdf"])(config)
    before, after = (json.loads(config) if config == THEIRS else {}), json.loads(changed)
    assert after.pop("fullFileUpload") == {
        **before.pop("fullFileUpload", {}),
        "status": True,
        "allowedUploadFileTypes": "application/pdf,text/plain",
    }
    assert list(after.items()) == list(before.items())
    assert is_set(taking(["pdf", "text"]), changed)
    assert not is_set(taking(["pdf"]), changed)
    assert takes_files(changed)


@pytest.mark.parametrize("config", ['{"title":"Shop",}', "[1]", '{"title":"Shop","n":' + "1" * 5_000 + "}"])
def test_settings_that_cannot_be_read_are_not_written_over(config: str) -> None:
    for change in (taking(["pdf"]), offering(["Who pays?"])):
        with pytest.raises(FlowiseUnexpectedResponseError):
            change(config)
    assert put_back(THEIRS)(config) == as_kept({"fullFileUpload": {"status": True}})(config) == config


def test_no_kinds_take_no_files() -> None:
    changed = taking([])(taking(["csv"])(THEIRS))
    assert json.loads(changed)["fullFileUpload"]["status"] is False
    assert not takes_files(changed)


@pytest.mark.parametrize("config", [None, THEIRS, '{"starterPrompts":{"0":{"prompt":"Hi"}},"title":"Shop"}'])
def test_what_a_plan_sets_is_put_back_and_what_others_set_meanwhile_stays(config: str | None) -> None:
    before = json.loads(config or "{}")
    changed = json.loads(offering(["Who pays?"])(taking(["pdf"])(config)))
    assert changed["starterPrompts"] == {"0": {"prompt": "Who pays?"}}
    assert json.loads(put_back(config)(json.dumps({**changed, "leads": 1}))) == {**before, "leads": 1}


@pytest.mark.parametrize("config", [THEIRS, '{"title":"Shop"}', "{}"])
def test_kept_settings_are_put_back(config: str) -> None:
    changed = json.dumps({**json.loads(taking(["json"])(config)), "title": "Changed meanwhile"})
    back = json.loads(as_kept(kept_settings(config))(changed))
    assert back == {**json.loads(config), "title": "Changed meanwhile"}
