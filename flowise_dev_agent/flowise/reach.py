"""The reach of a flow: deployed, public, and those keys of `chatbotConfig` and `apiConfig` that concern them.

Measured on 3.1.4: the chat page of a flow that is not public asks for an account; a web site may ask it only if its
address is among `allowedOrigins` (all may while there are none); a limit without a text is not applied. All other keys
of the two settings are somebody else's and stay as they are.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.uploads import settings_object, starter_prompts
from flowise_dev_agent.patch.model.json_text import as_dict, inner_json
from flowise_dev_agent.schemas.reach import MessageLimit, Reach, ReachChange

#: Of a list that is shown.
_SHOWN: Final = 50
_MOST: Final = 1_000_000_000
_LEADS: Final[Mapping[str, Any]] = {"name": True, "email": True}


def reach_of(row: Chatflow) -> Reach:
    """The reach of this flow. What cannot be read counts as not set."""
    chat, api = _read(row.chatbot_config), _read(row.api_config)
    prompts = as_dict(chat.get("starterPrompts"))
    origins: Any = chat.get("allowedOrigins")
    return Reach(
        deployed=bool(row.deployed),
        public=bool(row.is_public),
        starters=[said for one in prompts.values() if (said := str(as_dict(one).get("prompt") or ""))][:_SHOWN],
        leads=as_dict(chat.get("leads")).get("status") is True,
        origins=[str(one) for one in origins if one][:_SHOWN] if isinstance(origins, list) else [],
        limit=_limit_of(as_dict(api.get("rateLimit"))),
    )


def columns_of(row: Chatflow, change: ReachChange) -> dict[str, str | bool]:
    """Columns of the row that the change sets, by the names of `ChatflowUpdate`; those that stay are left out.

    Raises FlowiseUnexpectedResponseError if a column to be changed cannot be read.
    """
    wanted: dict[str, Any] = {}
    chat, api = _read(row.chatbot_config), _read(row.api_config)
    if change.starters is not None:
        chat["starterPrompts"] = starter_prompts(change.starters)
    if change.leads is not None:
        chat["leads"] = {**_LEADS, **as_dict(chat.get("leads")), "status": change.leads}
    if change.origins is not None:
        chat["allowedOrigins"] = change.origins
    if change.limit is not None:
        api["rateLimit"] = _limit_row(change.limit)
    if chat != _read(row.chatbot_config):
        settings_object(row.chatbot_config)
        wanted["chatbot_config"] = _written(chat)
    if api != _read(row.api_config):
        settings_object(row.api_config)
        wanted["api_config"] = _written(api)
    if change.deployed not in {None, bool(row.deployed)}:
        wanted["deployed"] = change.deployed
    if change.public not in {None, bool(row.is_public)}:
        wanted["is_public"] = change.public
    return wanted


def _limit_of(row: Mapping[str, Any]) -> MessageLimit | None:
    try:
        numbers = int(row["limitMax"]), int(row["limitDuration"])
    except (KeyError, TypeError, ValueError):
        return None
    told = str(row.get("limitMsg") or "")[:1_000]
    if row.get("status") is not True or not told or not 1 <= min(numbers) <= max(numbers) <= _MOST:
        return None
    return MessageLimit(messages=numbers[0], seconds=numbers[1], told=told)


def _limit_row(limit: MessageLimit | Literal[False]) -> dict[str, Any]:
    if limit is False:
        return {"status": False}
    return {"status": True, "limitMax": limit.messages, "limitDuration": limit.seconds, "limitMsg": limit.told}


def _read(config: str | None) -> dict[str, Any]:
    return dict(as_dict(inner_json(config or "")))


def _written(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
