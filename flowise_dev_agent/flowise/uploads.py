"""The part of a `chatbotConfig` that a plan sets: files that people upload with a message, and starter questions.

Flowise refuses each file while the key is off, and each type that it does not list (measured on 3.1.4). All other keys
of the settings are somebody else's and stay as they are. Settings that cannot be read are never written over.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from flowise_dev_agent.errors import FlowiseUnexpectedResponseError
from flowise_dev_agent.patch.model.json_text import as_dict, dump_json, inner_json
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.plan import UploadKind
from flowise_dev_agent.texts import text

#: Change of the text of a flow's `chatbotConfig`.
SettingsChange: TypeAlias = Callable[[str | None], str]

#: Code of the finding on settings that a plan changes and that cannot be read.
UNREADABLE: Final = "SETTINGS_UNREADABLE"
_KEY: Final = "fullFileUpload"
_STARTERS: Final = "starterPrompts"
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_TYPES: Final[Mapping[UploadKind, tuple[str, ...]]] = {
    "pdf": ("application/pdf",),
    "word": (f"{_OFFICE}.wordprocessingml.document", "application/msword"),
    "excel": (f"{_OFFICE}.spreadsheetml.sheet", "application/vnd.ms-excel"),
    "powerpoint": (f"{_OFFICE}.presentationml.presentation", "application/vnd.ms-powerpoint"),
    "text": ("text/plain",),
    "csv": ("text/csv",),
    "json": ("application/json",),
    "html": ("text/html",),
}


def taking(kinds: Collection[UploadKind]) -> SettingsChange:
    """Change that lets people upload these kinds of files and no others; with none of them no file at all."""

    def change(config: str | None) -> str:
        settings = settings_object(config)
        setting = {**as_dict(settings.get(_KEY)), "status": bool(kinds)}
        if kinds:
            listed = [type_ for kind, types in _TYPES.items() if kind in kinds for type_ in types]
            setting["allowedUploadFileTypes"] = ",".join(listed)
        return _written({**settings, _KEY: setting})

    return change


def offering(questions: Sequence[str]) -> SettingsChange:
    """Change that lets the chat offer these questions before the first message, and no others."""
    return lambda config: _written({**settings_object(config), _STARTERS: starter_prompts(questions)})


def starter_prompts(questions: Sequence[str]) -> JsonObject:
    """Starter questions as Flowise stores them."""
    return {str(at): {"prompt": said} for at, said in enumerate(questions)}


def put_back(before: str | None) -> SettingsChange:
    """Change that gives what plans set the values that it had before, and leaves all else."""

    def change(config: str | None) -> str:
        if not is_readable(config):
            return config or ""
        had, now = _read(before), _read(config)
        for key in (_KEY, _STARTERS):
            now.pop(key, None)
            if key in had:
                now[key] = had[key]
        return _written(now)

    return change


def as_kept(kept: JsonObject) -> SettingsChange:
    """Change that puts back what `kept_settings` gave."""

    def change(config: str | None) -> str:
        if not is_readable(config):
            return config or ""
        others = {name: value for name, value in _read(config).items() if name != _KEY or name in kept}
        return _written({**others, **kept})

    return change


def kept_settings(config: str | None) -> JsonObject:
    """Part of a flow's settings that earlier releases record."""
    return {name: value for name, value in _read(config).items() if name == _KEY}


def takes_files(config: str | None) -> bool:
    """True if people can upload files in a flow with these settings."""
    return bool(as_dict(_read(config).get(_KEY)).get("status"))


def is_set(change: SettingsChange | None, config: str | None) -> bool:
    """True if the change would change nothing."""
    return change is None or _read(change(config)) == _read(config)


def is_readable(config: str | None) -> bool:
    """True for settings that are an object, or none at all."""
    return (config or "").strip() in ("", "null") or isinstance(inner_json(config or ""), dict)


def settings_object(config: str | None) -> dict[str, Any]:
    """Settings that are about to be changed. Raises FlowiseUnexpectedResponseError if they cannot be read."""
    if not is_readable(config):
        raise FlowiseUnexpectedResponseError(text(f"finding.{UNREADABLE}"), hint=text(f"remedy.{UNREADABLE}"))
    return _read(config)


def _read(config: str | None) -> dict[str, Any]:
    return dict(as_dict(inner_json(config or "")))


def _written(settings: Mapping[str, Any]) -> str:
    return dump_json(settings)
