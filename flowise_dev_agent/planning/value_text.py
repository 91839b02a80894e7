"""Values that a plan sets, as Markdown: names in place of ids and JSON, and texts with their differences."""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.labels import field_name, in_words, without_id
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.shown_plan import ShownValue

#: Longer texts and texts of several lines get their own lines.
_ON_THE_LINE: Final = 80
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
#: Field of a row in a list.
_IN_ROW: Final = re.compile(r"(.+)\[\d+\]\.(\w+)")
_ROLES: Final = ("system", "developer", "user", "assistant")


class ValueText:
    """Lines about the values of a plan. `text` escapes words for Markdown, `said` gives texts of the catalogue."""

    def __init__(
        self,
        values: Sequence[ShownValue],
        names: Mapping[str, str],
        text: Callable[[str], str],
        said: Callable[..., str],
    ) -> None:
        self._values = values
        self._names = names
        self.text = text
        self._said = said

    def lines(self) -> list[str]:
        """The fields that are set; short new rows of one list are told together, as is one value of several nodes."""
        lists: dict[tuple[str, str], list[ShownValue]] = {}
        for value in self._values:
            if row := _IN_ROW.fullmatch(value.param):
                lists.setdefault((value.node_id, row[1]), []).append(value)
        lines: list[str] = []
        messages = {one.param for one in self._values if one.param.endswith("].content")}
        alike: dict[tuple[str, str], list[ShownValue]] = {}
        for value in self._values:
            if not _IN_ROW.fullmatch(value.param) and self._is_short(value):
                alike.setdefault((self._field(value), self._readable(value.new)), []).append(value)
        for value in self._values:
            if value.param.endswith("].role") and f"{value.param.removesuffix('role')}content" in messages:
                continue  # said with the text
            row = _IN_ROW.fullmatch(value.param)
            together = lists[value.node_id, row[1]] if row else []
            same = alike.get((self._field(value), self._readable(value.new)), [value])
            if value in same[1:]:
                continue  # said with the first
            if not together or not all(map(self._is_short, together)):
                lines.append(self._value(value, same if value is same[0] else [value]))
            elif value is together[0]:
                lines.append(self._rows(together))
        return lines

    def _is_short(self, value: ShownValue) -> bool:
        new = self._readable(value.new)
        return value.old is None and len(new) <= _ON_THE_LINE and "\n" not in new

    def _rows(self, values: Sequence[ShownValue]) -> str:
        """Rows of one list, each on its line if there are several."""
        rows: dict[str, dict[str, str]] = {}
        for value in values:
            place, _, name = value.param.rpartition(".")
            rows.setdefault(place, {})[name] = self._readable(value.new) or self._said("plan.empty")
        where = f"**{self.text(values[0].node)}**, {self._listed_field(values[0])}"
        told = [self.text(_row(row)) for row in rows.values()]
        return f"{where}: {told[0]}" if len(told) == 1 else "\n  - ".join([f"{where}:", *told])

    def _listed_field(self, value: ShownValue) -> str:
        """Name of a field; of a row it is the name of its list."""
        row = _IN_ROW.fullmatch(value.param)
        return self.text(value.list_label or in_words(row[1].rpartition(".")[2])) if row else self._field(value)

    def _value(self, value: ShownValue, same: Sequence[ShownValue]) -> str:
        """A field that is set (also in the nodes of `same`): old and new value, or a longer text with its differences
        marked.
        """
        nodes = ", ".join(f"**{self.text(one.node)}**" for one in same)
        where = f"{nodes}, {self._field(value)}"
        old, new = self._readable(value.old), self._readable(value.new)
        remark = f"\n\n  {self._said('plan.loses_text')}" if value.loses_text else ""
        if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
            now = f" ({self._said('plan.now')}: {self.text(old)})" if old else ""
            return f"{where}: {self.text(new) or self._said('plan.empty')}{now}{remark}"
        return f"{where}:\n\n{_marked(old, new) if old else _fenced(new)}{remark}"

    def _field(self, value: ShownValue) -> str:
        """Name of a field: its label, or its last name in words; of a message also whose it is."""
        name = self.text(value.label or field_name(value.param))
        place = f"{value.param.removesuffix('content')}role"
        role = next((str(one.new) for one in self._values if (one.node_id, one.param) == (value.node_id, place)), "")
        return f"{name} ({self._said(f'plan.role.{role}')})" if value.param != place and role in _ROLES else name

    def _readable(self, value: JsonValue, between: str = "\n") -> str:
        """A value in words: names in place of ids and types, rows and settings as `name: value`."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return self._said("plan.yes" if value else "plan.no")
        if isinstance(value, dict):
            if value.keys() == {"role", "content"} and value["role"] in _ROLES:
                role = self._said(f"plan.role.{value['role']}")
                return f"{role}: {self._readable(value['content'])}"
            # Settings repeat the choice that they belong to.
            own = {
                key: {name: one for name, one in item.items() if name not in value} if isinstance(item, dict) else item
                for key, item in value.items()
            }
            return _row({key: words for key, item in own.items() if (words := self._readable(item, ", "))})
        if isinstance(value, list):
            return between.join(words for item in value if (words := self._readable(item, between)))
        if not isinstance(value, str):
            return str(value)
        if value[:1] in ("[", "{") and not value.startswith((MARK, "{{")):
            with suppress(ValueError):
                return self._readable(json.loads(value), between)
        if value.startswith("data:") and stands_in(value):
            return self._said("plan.file_to_come")
        value = without_id(value)
        return self._names.get(value) or (self._said("plan.chosen_by_id") if is_uuid(value) else value)


def _row(fields: Mapping[str, str]) -> str:
    """A row in words: a field by label and type, a pair as `name: value`, a condition in its order, else each field."""
    match fields:
        case {"label": title, "type": type_, **rest} | {"key": title, "type": type_, **rest}:
            told = {name: words for name, words in rest.items() if name != "name" or "label" not in fields}
            return f"{title} ({type_})" + (f": {_fields(told)}" if told else "")
        case {"value1": left, "operation": operation, **rest}:
            type_, right = rest.pop("type", ""), rest.pop("value2", "")
            sentence_ = " ".join(filter(None, (left, operation, right, f"({type_})" if type_ else "")))
            return f"{sentence_}; {_fields(rest)}" if rest else sentence_
        case _:
            if chosen := next((name for name in fields if f"{name}Config" in fields), None):
                return f"{fields[chosen]} ({fields[f'{chosen}Config']})"
            names = list(fields)
            if len(names) == 2 and names[0].lower().endswith(("key", "name")) and names[1].lower().endswith("value"):
                return f"{fields[names[0]]}: {fields[names[1]]}"
            return fields[names[0]] if len(names) == 1 else _fields(fields)


def _fields(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{in_words(name)}: {words}" for name, words in fields.items())


def _marked(old: str, new: str) -> str:
    """The differences between two texts, sentence by sentence, as a fenced diff."""
    lines = [line for line in difflib.ndiff(_pieces(old), _pieces(new)) if not line.startswith("?")]
    return _fenced("\n".join(lines), "diff")


def _pieces(text: str) -> list[str]:
    return [piece for line in text.splitlines() for piece in _SENTENCE_END.split(line) if piece.strip()]


def _fenced(text: str, kind: str = "") -> str:
    """A fenced block inside a list item; the fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return "\n".join(f"  {line}" for line in (fence + kind, *text.splitlines(), fence))
