"""The reach of a flow: read from its row and written into it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.errors import FlowiseUnexpectedResponseError
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.reach import columns_of, reach_of
from flowise_dev_agent.schemas.reach import MessageLimit, Reach, ReachChange

LIMIT = MessageLimit(messages=5, seconds=60, told="Please wait.")


def row(**columns: Any) -> Chatflow:
    texts = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in columns.items()}
    return Chatflow.model_validate({"id": "a", "name": "Bot", "flow_data": "{}", **texts})


def after(before: Chatflow, **change: Any) -> Chatflow:
    return before.model_copy(update=columns_of(before, ReachChange(**change)))


def test_what_is_written_is_read_back_and_foreign_keys_stay() -> None:
    before = row(
        chatbot_config={"title": "Hi", "leads": {"email": False, "title": "Who are you?"}, "allowedOrigins": [""]},
        api_config={"overrideConfig": {"status": True}},
    )
    assert reach_of(before) == Reach(deployed=False, public=False, starters=[], leads=False, origins=[], limit=None)
    wanted: dict[str, Any] = {
        "deployed": True,
        "public": True,
        "starters": ["Hours?", "Returns?"],
        "leads": True,
        "origins": ["https://shop.example"],
        "limit": LIMIT,
    }
    changed = after(before, **wanted)
    assert reach_of(changed) == Reach.model_validate(wanted)
    chat, api = json.loads(changed.chatbot_config or ""), json.loads(changed.api_config or "")
    assert chat["title"] == "Hi"
    assert chat["leads"] == {"name": True, "email": False, "title": "Who are you?", "status": True}
    assert chat["starterPrompts"] == {"0": {"prompt": "Hours?"}, "1": {"prompt": "Returns?"}}
    assert api["overrideConfig"] == {"status": True}
    taken_away = Reach.model_validate(wanted | {"limit": None, "starters": []})
    assert reach_of(after(changed, limit=False, starters=[])) == taken_away


@pytest.mark.parametrize("change", [{"starters": ["Hours?"]}, {"limit": LIMIT}])
def test_settings_that_cannot_be_read_are_not_written_over(change: dict[str, Any]) -> None:
    with pytest.raises(FlowiseUnexpectedResponseError):
        after(row(chatbot_config='{"title":', api_config="[1]"), **change)


@pytest.mark.parametrize("change", [{}, {"deployed": False, "public": False}, {"starters": None, "limit": None}])
def test_what_is_so_already_writes_no_column(change: dict[str, Any]) -> None:
    assert columns_of(row(chatbot_config={"title": "Hi"}), ReachChange(**change)) == {}


@pytest.mark.parametrize(
    "column",
    ["", "no json", "[]", '{"starterPrompts": [1], "allowedOrigins": 7, "leads": "x", "rateLimit": {"status": true}}']
    + [
        json.dumps({"rateLimit": {"status": True, "limitMax": most, "limitDuration": "60", "limitMsg": "x"}})
        for most in (0, "many", None, 10**12)
    ],
)
def test_settings_that_cannot_be_read_count_as_not_set(column: str) -> None:
    read = reach_of(row(chatbot_config=column, api_config=column))
    assert read == Reach(deployed=False, public=False, starters=[], leads=False, origins=[], limit=None)


@pytest.mark.parametrize("origin", ["shop.example", "https://shop.example/path", "javascript:x", "https://a b", ""])
def test_an_origin_is_an_address_without_a_path(origin: str) -> None:
    with pytest.raises(ValidationError):
        ReachChange(origins=[origin])
