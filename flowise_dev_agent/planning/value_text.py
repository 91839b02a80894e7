"""Values that a plan sets, as Markdown: names in place of ids and JSON, and texts with their differences."""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, cast

from flowise_dev_agent.patch.model.json_text import is_uuid
from flowise_dev_agent.patch.model.labels import field_name, in_words, titled, without_id
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.patch.model.values import without_markup
from flowise_dev_agent.schemas.base import JsonObject, JsonValue
from flowise_dev_agent.schemas.shown_plan import ShownValue
from flowise_dev_agent.texts import has

#: Longer texts and texts of several lines get their own lines.
_ON_THE_LINE: Final = 80
#: Lines and characters of a longer text that are shown of it, unless it is to be shown in full.
_BEGINNING: Final = 3
_BEGINNING_CHARS: Final = 300
#: Unchanged pieces around those that differ.
_AROUND: Final = 1
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
#: Field of a row in a list.
_IN_ROW: Final = re.compile(r"(.+)\[\d+\]\.(\w+)")
_NUMBER: Final = re.compile(r"\[(\d+)\]\.\w+$")
_ROLES: Final = ("system", "developer", "user", "assistant")
_VARIABLE: Final = re.compile(r"\{\{\s*([^{}]{1,200}?)\s*\}\}")
#: Labels of fields and options.
Words: TypeAlias = Mapping[str, str]
NO_WORDS: Final[Words] = {}
#: Line of a diff in place of what stays as it is.
_LEFT_OUT: Final = "…"


class ValueText:
    """Lines about the values of a plan. `text` escapes words for Markdown, `said` gives texts of the catalogue; longer
    texts are folded to their beginning unless `full`.
    """

    def __init__(
        self,
        values: Sequence[ShownValue],
        names: Mapping[str, str],
        text: Callable[[str], str],
        said: Callable[..., str],
        *,
        full: bool = False,
    ) -> None:
        self._full = full
        self._values = values
        self._names = names
        self.text = text
        self._said = said

    def lines(self) -> list[str]:
        """The fields that are set; short new rows of one list are told together, as is one value of several nodes."""
        messages = {one.param for one in self._values if one.param.endswith("].content")}
        lists: dict[tuple[str, str], list[ShownValue]] = {}
        for value in self._values:
            if (row := _IN_ROW.fullmatch(value.param)) and not value.param.endswith(("].role", "].content")):
                lists.setdefault((value.node_id, row[1]), []).append(value)
        lines: list[str] = []
        alike: dict[tuple[str, str], list[ShownValue]] = {}
        for value in self._values:
            if not _IN_ROW.fullmatch(value.param) and self._is_short(value):
                alike.setdefault((self._field(value), self._new(value)), []).append(value)
        for value in self._values:
            if value.param.endswith("].role") and f"{value.param.removesuffix('role')}content" in messages:
                continue  # said with the text
            row = _IN_ROW.fullmatch(value.param)
            together = lists.get((value.node_id, row[1]), []) if row else []
            same = alike.get((self._field(value), self._new(value)), [value])
            if value in same[1:]:
                continue  # said with the first
            if not together or any(one.old is not None or "\n" in self._new(one) for one in together):
                lines.append(self._value(value, same if value is same[0] else [value]))
            elif value is together[0]:
                lines.append(self._rows(together))
        return lines

    def _is_short(self, value: ShownValue) -> bool:
        new = self._new(value)
        return value.old is None and len(new) <= _ON_THE_LINE and "\n" not in new

    def _new(self, value: ShownValue) -> str:
        return self._readable(value.new, value.words, _last(value.param))

    def _rows(self, values: Sequence[ShownValue]) -> str:
        """Rows of one list, each on its line if there are several."""
        rows: dict[str, JsonObject] = {}
        for value in values:
            place, _, name = value.param.rpartition(".")
            rows.setdefault(place, {})[name] = self._said("plan.empty") if value.new in ("", None) else value.new
        where = f"**{self.text(values[0].node)}**, {self._listed_field(values[0])}"
        words = {name: label for value in values for name, label in value.words.items()}
        told = [self.text(self._readable(row, words)) for row in rows.values()]
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
        old, new = self._readable(value.old, value.words, _last(value.param)), self._new(value)
        remark = f"\n\n  {self._said('plan.loses_text')}" if value.loses_text else ""
        if max(len(old), len(new)) <= _ON_THE_LINE and "\n" not in old + new:
            now = f" ({self._said('plan.now')}: {self.text(old)})" if old else ""
            return f"{where}: {self.text(new) or self._said('plan.empty')}{now}{remark}"
        return f"{where}:\n\n{self._marked(old, new) if old else self._folded(new)}{remark}"

    def _folded(self, text: str) -> str:
        """A text as a fenced block; of a longer one the beginning, and its length below."""
        shown = text if self._full else _beginning(text)
        return f"{fenced(shown)}{self._length(text) if shown != text else ''}"

    def _length(self, text: str) -> str:
        return f"\n\n  {self._said('plan.goes_on', length=self._said('count.characters', count=len(text)))}"

    def _marked(self, old: str, new: str) -> str:
        """The differences between two texts, sentence by sentence, as a fenced diff. What stays is left out but for the
        sentences around, and so is the rest of a long addition or removal.
        """
        before, after = _pieces(old), _pieces(new)
        lines: list[str] = []
        cut, end = False, 0
        for group in difflib.SequenceMatcher(None, before, after, False).get_grouped_opcodes(_AROUND):
            lines += [_LEFT_OUT] if group[0][1] > end else []
            end = group[-1][2]
            for kind, *places in group:
                old_ones, new_ones = before[places[0] : places[1]], after[places[2] : places[3]]
                if kind == "equal":
                    lines += [f"  {piece}" for piece in old_ones]
                    continue
                for mark, text in (("-", "\n".join(old_ones)), ("+", "\n".join(new_ones))):
                    shown = text if self._full else _beginning(text)
                    cut |= shown != text
                    lines += [f"{mark} {piece}" for piece in shown.splitlines()]
        lines += [_LEFT_OUT] if end < len(before) else []
        return f"{fenced(chr(10).join(lines), 'diff')}{self._length(new) if cut else ''}"

    def _field(self, value: ShownValue) -> str:
        """Name of a field: its label, or its last name in words; of a message also whose it is."""
        name = self.text(value.label or field_name(value.param))
        place = f"{value.param.removesuffix('content')}role"
        role = next((str(one.new) for one in self._values if (one.node_id, one.param) == (value.node_id, place)), "")
        if value.param != place and role in _ROLES:
            return f"{name} ({self._said(f'plan.role.{role}')})"
        # Rows of one list have the same fields.
        row = _NUMBER.search(value.param)
        return f"{self.text(value.list_label)} {int(row[1]) + 1}, {name}" if row and value.list_label else name

    def _readable(self, value: JsonValue, words: Words = NO_WORDS, name: str = "", between: str = "\n") -> str:
        """A value in words: names in place of ids and types, rows and settings as `name: value`. `words` are labels of
        fields, and of their options as `field=option`.
        """
        if value is None:
            return ""
        if isinstance(value, bool):
            return self._said("plan.yes" if value else "plan.no")
        if isinstance(value, dict):
            if value.keys() == {"role", "content"} and value["role"] in _ROLES:
                role = self._said(f"plan.role.{value['role']}")
                return f"{role}: {self._readable(value['content'])}"
            if {"value1", "operation"} <= value.keys():
                return condition_words(value, self._names, self._said)
            # Settings repeat the choice that they belong to.
            own = {
                key: {inner: one for inner, one in item.items() if inner not in value}
                if isinstance(item, dict)
                else item
                for key, item in value.items()
            }
            told = {key: self._readable(item, words, key, ", ") for key, item in own.items()}
            if told.keys() == {"key", "value"}:
                return f"{told['key']}: {told['value'] or self._said('plan.empty')}"
            return _row({key: one for key, one in told.items() if one}, words)
        if isinstance(value, list):
            return between.join(told for item in value if (told := self._readable(item, words, name, between)))
        if not isinstance(value, str):
            return words.get(f"{name}={value}", str(value))
        if value[:1] in ("[", "{") and not value.startswith((MARK, "{{")):
            with suppress(ValueError):
                given = json.loads(value)
                if isinstance(given, dict):
                    return self._verbatim(cast("JsonObject", given))
                return self._readable(given, words, name, between)
        if value.startswith("data:") and stands_in(value):
            return self._said("plan.file_to_come")
        value = without_id(value if self._full else without_markup(value))
        chosen = words.get(f"{name}={value}") or self._names.get(value)
        if is_uuid(value) and not chosen:
            return self._said("plan.chosen_by_id")
        return chosen or _VARIABLE.sub(lambda found: titled(found[0], self._names), value)

    def _verbatim(self, fields: JsonObject) -> str:
        """The fields of a JSON text, whose names are the person's or another system's."""
        return ", ".join(
            f"{name} ({self._verbatim(item)})" if isinstance(item, dict) else f"{name}: {self._readable(item)}"
            for name, item in fields.items()
        )


def _row(fields: Mapping[str, str], words: Words) -> str:
    """A row in words: a field by label and type, a pair as `name: value`, else each field."""
    match fields:
        case {"label": title, "type": type_, **rest} | {"key": title, "type": type_, **rest}:
            return f"{title} ({type_})" + (f": {_fields(rest, words)}" if rest else "")
        case _:
            if chosen := next((name for name in fields if f"{name}Config" in fields), None):
                return f"{fields[chosen]} ({fields[f'{chosen}Config']})"
            names = list(fields)
            if len(names) == 2 and names[0].lower().endswith(("key", "name")) and names[1].lower().endswith("value"):
                return f"{fields[names[0]]}: {fields[names[1]]}"
            return fields[names[0]] if len(names) == 1 else _fields(fields, words)


def _last(param: str) -> str:
    return param.rpartition(".")[2]


def _fields(fields: Mapping[str, str], words: Words) -> str:
    return ", ".join(f"{words.get(name) or in_words(name)}: {told}" for name, told in fields.items())


def condition_words(row: Mapping[str, object], names: Mapping[str, str], said: Callable[..., str]) -> str:
    """The row of a condition as a sentence; empty for the last row of older flows, which compares nothing."""
    operation = str(row.get("operation") or "equal")
    left, right = (_compared(row.get(name), names, said) for name in ("value1", "value2"))
    if not left or not has(code := f"plan.condition.{operation}"):
        return " ".join(filter(None, (left, operation, right))) if left else ""
    return said(code, left=left, right=right or '""')


def _compared(value: object, names: Mapping[str, str], said: Callable[..., str]) -> str:
    """One side of a condition, with the last names of variables."""

    def name(found: re.Match[str]) -> str:
        whole = found[1]
        if whole == "question":
            return said("plan.variable.question")
        return names.get(whole) or whole.rpartition(".")[2]

    if isinstance(value, bool):
        return said("plan.yes" if value else "plan.no")
    return _VARIABLE.sub(name, without_markup(str(value))) if value is not None else ""


def _beginning(text: str) -> str:
    """The first lines of a text that is longer than they are, up to a number of characters."""
    lines = text.splitlines()
    begun = "\n".join(lines[:_BEGINNING])
    if len(begun) > _BEGINNING_CHARS:
        return f"{begun[:_BEGINNING_CHARS].rsplit(None, 1)[0]} …"
    return f"{begun}\n…" if len(lines) > _BEGINNING else text


def _pieces(text: str) -> list[str]:
    return [piece for line in text.splitlines() for piece in _SENTENCE_END.split(line) if piece.strip()]


def fenced(text: str, kind: str = "") -> str:
    """A fenced block inside a list item; the fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return "\n".join(f"  {line}" for line in (fence + kind, *text.splitlines(), fence))
