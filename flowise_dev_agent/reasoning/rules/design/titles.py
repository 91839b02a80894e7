"""Fields that a text names by their titles: "set the frequency penalty to 0.5", "enable strict tool calling"."""

import re
from functools import lru_cache
from typing import Any

from flowise_dev_agent.patch import InputParam, NodeSchema
from flowise_dev_agent.reasoning.rules.language.lexicon import NUMBER, pattern, wordset
from flowise_dev_agent.reasoning.rules.language.text import is_negated, to_number

_WORD = re.compile(r"[A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LINK, _ON, _OFF = (f"(?:{pattern('titles', name).pattern})" for name in ("link", "on", "off"))
_EMPTIED, _GONE = (f"(?:{pattern('titles', name).pattern})" for name in ("emptied", "gone"))
_QUOTED = r"(?:\"(?P<a>[^\"]*)\"|“(?P<b>[^”]*)”|„(?P<c>[^“”]*)[“”]|«\s*(?P<d>[^»]*?)\s*»|'(?P<e>[^'\n]{1,80})')"
_SKIPPED = frozenset({"modelName", "model", "systemMessagePrompt", "systemMessage"})
_SECRET = ("key", "token", "secret", "password")


def named_fields(schema: NodeSchema, text: str) -> dict[str, tuple[Any, int, int]]:
    """Field name -> (value, start, end) for the fields of this type that the text names with a value that fits."""
    found: dict[str, tuple[Any, int, int]] = {}
    for param, forms in _patterns(schema):
        for looked_for, value in forms:
            match = next((m for m in looked_for.finditer(text) if not is_negated(text, m.start(), m.start())), None)
            taken = None if match is None else _value(param, match) if value is None else value
            if match and taken is not None:
                found[param.name] = (taken, *match.span())
                break
    return found


@lru_cache(maxsize=512)
def _patterns(schema: NodeSchema) -> list[tuple[InputParam, list[tuple[re.Pattern[str], bool | str | None]]]]:
    """For each field the ways to name it with a value, and the value where the words alone give it."""
    return [(param, forms) for param in schema.params if param.name not in _SKIPPED and (forms := _forms(param))]


def _forms(param: InputParam) -> list[tuple[re.Pattern[str], bool | str | None]]:
    titles = {" ".join(_WORD.findall(text)).casefold() for text in (param.label, _CAMEL.sub(" ", param.name))}
    titles = {title for title in titles if len(title) > 3 and title not in wordset("bare_titles")}
    if not titles:
        return []
    choices = "|".join(title.replace(" ", r"[\s_-]*") for title in sorted(titles, key=len, reverse=True))
    name = rf"\b(?:{choices})\b"
    match param.type:
        case "number":
            set_ = (re.compile(name + _LINK + NUMBER + r"(?!\w)", re.I), None)
            emptied = rf"\b{_EMPTIED}{name}(?!\s*\d)|{name}{_GONE}"
            return [set_, (re.compile(emptied, re.I), "")] if param.optional else [set_]
        case "boolean":
            on = rf"\b{_ON}{name}|{name}{_LINK}(?:on|true|yes|enabled|an|ein)\b"
            return [(re.compile(rf"\b{_OFF}{name}|{name}{_LINK}(?:off|false|disabled|aus)\b", re.I), False),
                    (re.compile(on, re.I), True)]  # fmt: skip
        case "options" if param.options:
            choice = "|".join(re.escape(option) for option in sorted(param.options, key=len, reverse=True))
            return [(re.compile(rf"{name}{_LINK}[\"'“„]?(?P<option>{choice})(?!\w)", re.I), None)]
        case "string" | "asyncOptions" if not param.name.lower().endswith(_SECRET):
            return [(re.compile(name + _LINK + _QUOTED, re.I), None)]
        case _:
            return []


def _value(param: InputParam, match: re.Match[str]) -> Any:
    if param.type == "options":
        said = match["option"].casefold()
        return next(option for option in param.options if option.casefold() == said)
    if param.type == "number":
        number = to_number(match.group(1))
        return int(number) if number == int(number) else number
    return next((text for text in match.groupdict().values() if text is not None), None)
