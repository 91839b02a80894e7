"""Settings of a flow: what Flowise keeps beside its text and a version holds.

Who may use a flow is none of them: deployed, public, its key, its MCP server (whose column holds a token). A version
that is put back opens or closes no flow.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pydantic.alias_generators import to_camel

from flowise_dev_agent.flowise.flow_tags import PREFIX, without_tags
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.uploads import as_kept, is_set
from flowise_dev_agent.patch.model.json_text import as_dict, dump_json, inner_json
from flowise_dev_agent.patch.model.values import on_one_line
from flowise_dev_agent.patch.views.flow_diff import NO_DIFFERENCE, value_changes
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import clean_text, shortened
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.change import Difference, SettingChange
from flowise_dev_agent.schemas.flow_writes import FlowSettings
from flowise_dev_agent.texts import has, text

_MOST_CHANGES: Final = 100
_PATH_CHARS: Final = 200


def settings_of(row: Chatflow) -> FlowSettings:
    """Settings of a row, without tags of sessions and what no database keeps."""
    columns = {name: clean_text(getattr(row, name) or "") or None for name in FlowSettings.model_fields}
    if PREFIX in (row.category or ""):
        columns["category"] = without_tags(row.category) or None
    return FlowSettings(**columns)


def differing(settings: FlowSettings, others: FlowSettings) -> list[str]:
    """Columns in which they differ, as Flowise calls them."""
    return [to_camel(name) for name in FlowSettings.model_fields if getattr(settings, name) != getattr(others, name)]


def columns_for(row: Chatflow, wanted: FlowSettings) -> dict[str, str | bool]:
    """Columns that bring the row to these settings, '' for those to be cleared; tags of sessions stay."""
    now = settings_of(row)
    columns: dict[str, str | bool] = {
        name: getattr(wanted, name) or ""
        for name in FlowSettings.model_fields
        if getattr(wanted, name) != getattr(now, name)
    }
    if "category" in columns:
        own = [tag for tag in row.tags if tag.startswith(PREFIX)]
        columns["category"] = ";".join(filter(None, [wanted.category, *own]))
    if "api_config" in columns and _is_limited(now) and not _is_limited(wanted):
        # Flowise 3.1.4 lifts a limit only when it is told that it is off.
        config: dict[str, Any] = {**_object(wanted.api_config), "rateLimit": {"status": False}}
        columns["api_config"] = dump_json(config)
    return columns


def recorded_before(now: FlowSettings, uploads: JsonObject | None) -> FlowSettings:
    """Settings as they are now, with the uploads of a version in which earlier releases recorded nothing else."""
    if uploads is None or is_set(as_kept(uploads), now.chatbot_config):
        return now
    return now.model_copy(update={"chatbot_config": as_kept(uploads)(now.chatbot_config)})


def beside_uploads(settings: FlowSettings) -> list[str]:
    """Columns with a value beside the uploads, as Flowise calls them."""
    without = as_kept({})(settings.chatbot_config)
    config = None if without == as_kept({})(None) else without
    return differing(settings.model_copy(update={"chatbot_config": config}), FlowSettings())


def with_settings(found: Difference, before: FlowSettings | None, after: FlowSettings | None) -> Difference:
    """A difference with that of the settings; None: not recorded, so that they cannot be compared."""
    if before is None or after is None:
        return found.model_copy(update={"settings": None})
    changes = [*islice(_changes(before, after), _MOST_CHANGES)]
    if not changes:
        return found
    number = f"{len(changes)} setting{'s' if len(changes) > 1 else ''} changed"
    shown = [f"~ {one.name} ({one.path}): {one.before or '(none)'} -> {one.after or '(none)'}" for one in changes]
    return found.model_copy(
        update={
            "settings": changes,
            "summary": number if found.summary == NO_DIFFERENCE else f"{found.summary}; {number}",
            "text": "\n".join(shown if found.text == NO_DIFFERENCE else [found.text, *shown]),
        }
    )


def _changes(before: FlowSettings, after: FlowSettings) -> Iterator[SettingChange]:
    for column in FlowSettings.model_fields:
        old, new = getattr(before, column), getattr(after, column)
        for one in value_changes(to_camel(column), _parsed(old), _parsed(new)):
            keys = [f"setting.{key}" for key in one.name.split(".", 2)[:2]]
            code = next((key for key in reversed(keys) if has(key)), "setting.other")
            path = shortened(masked(on_one_line(one.name)), _PATH_CHARS)
            yield SettingChange(name=text(code), path=path, before=one.before, after=one.after)


def _parsed(column: str | None) -> Any:
    found = inner_json(column or "")
    return column if found is None else found


def _object(column: str | None) -> dict[str, Any]:
    return as_dict(inner_json(column or ""))


def _is_limited(settings: FlowSettings) -> bool:
    return as_dict(_object(settings.api_config).get("rateLimit")).get("status") is True
