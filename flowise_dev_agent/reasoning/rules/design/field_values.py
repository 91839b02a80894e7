"""Fields that a text names by their titles: "set the frequency penalty to 0.5", "enable strict tool calling"."""

import re
from functools import lru_cache
from typing import Any

from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.reasoning.rules.language.grammar import NUMBER
from flowise_dev_agent.reasoning.rules.language.text import is_negated, to_number

_WORD = re.compile(r"[A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LINK = r"\s*(?:(?:should\s+be|to|of|at|is|be|=|:|auf|von|a|en|de|à|em|para)\s*){0,2}\s*"
_QUOTED = r"(?:\"(?P<a>[^\"]*)\"|“(?P<b>[^”]*)”|„(?P<c>[^“”]*)[“”]|«\s*(?P<d>[^»]*?)\s*»|'(?P<e>[^'\n]{1,80})')"
_ON = r"(?:enable|turn\s+on|switch\s+on|activate|with|allow|use|aktiviere|activa|active|ative|habilita)"
_OFF = (
    r"(?:disable|turn\s+off|switch\s+off|deactivate|without|no|"
    r"deaktiviere|desactiva|désactive|desative|ohne|sin|sans|sem)"
)
_ARTICLE = r"\s+(?:the\s+|its\s+|den\s+|die\s+|das\s+|el\s+|la\s+|le\s+|o\s+|a\s+)?"
#: Titles that say nothing by themselves.
_BARE = frozenset({"name", "text", "description", "url", "type", "model", "query", "method", "format", "path", "memory",
                   "language", "template", "file", "tools", "input", "message", "color"})  # fmt: skip
_SKIPPED = frozenset({"modelName", "model", "systemMessagePrompt", "systemMessage"})


def field_values(schema: NodeSchema, text: str) -> dict[str, Any]:
    """Field name -> value for the fields of this type that the text names with a value that fits their type."""
    return {name: value for name, (value, _, _) in named_fields(schema, text).items()}


def named_fields(schema: NodeSchema, text: str) -> dict[str, tuple[Any, int, int]]:
    """As `field_values`, each with the stretch of the text that says so."""
    found: dict[str, tuple[Any, int, int]] = {}
    for param, patterns in _patterns(schema):
        for pattern, value in patterns:
            match = next((m for m in pattern.finditer(text) if not is_negated(text, m.start(), m.start())), None)
            if match:
                taken = _value(param, match) if value is None else value
                if taken is not None:
                    found[param.name] = (taken, match.start(), match.end())
                    break
    return found


@lru_cache(maxsize=512)
def _patterns(schema: NodeSchema) -> list[tuple[InputParam, list[tuple[re.Pattern[str], bool | None]]]]:
    """For each field the ways to name it with a value, and the value where the words alone give it."""
    return [(param, forms) for param in schema.params if param.name not in _SKIPPED and (forms := _forms(param))]


def _forms(param: InputParam) -> list[tuple[re.Pattern[str], bool | None]]:
    titles = {_title(param.label), _title(_CAMEL.sub(" ", param.name))}
    titles = {title for title in titles if title and title not in _BARE and len(title) > 3}
    if not titles:
        return []
    name = (
        r"\b(?:" + "|".join(title.replace(" ", r"[\s_-]*") for title in sorted(titles, key=len, reverse=True)) + r")\b"
    )
    match param.type:
        case "number":
            return [(re.compile(name + _LINK + NUMBER + r"(?!\w)", re.IGNORECASE), None)]
        case "boolean":
            on = re.compile(rf"\b{_ON}{_ARTICLE}{name}|{name}{_LINK}(?:on|true|yes|enabled|an|ein)\b", re.IGNORECASE)
            off = re.compile(rf"\b{_OFF}{_ARTICLE}{name}|{name}{_LINK}(?:off|false|disabled|aus)\b", re.IGNORECASE)
            return [(off, False), (on, True)]
        case "options":
            choice = "|".join(re.escape(option) for option in sorted(param.options, key=len, reverse=True))
            return (
                [(re.compile(rf"{name}{_LINK}[\"'“„]?(?P<option>{choice})(?!\w)", re.IGNORECASE), None)]
                if choice
                else []
            )
        case "string" | "asyncOptions":
            if param.name.lower().endswith(("key", "token", "secret", "password")):
                return []
            return [(re.compile(name + _LINK + _QUOTED, re.IGNORECASE), None)]
        case _:
            return []


def _value(param: InputParam, match: re.Match[str]) -> Any:
    groups = match.groupdict()
    if param.type == "options":
        said = str(groups["option"]).casefold()
        return next(option for option in param.options if option.casefold() == said)
    if param.type == "number":
        number = to_number(match.group(1))
        return int(number) if number == int(number) else number
    return next((text for text in groups.values() if text is not None), None)


def _title(text: str) -> str:
    return " ".join(_WORD.findall(text)).casefold()
