"""The form of `build --guided`: each part asked for at the terminal."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import typer
from pydantic import ValidationError

from flowise_dev_agent.cli.console import fail, say
from flowise_dev_agent.schemas.designs import DesignForm

#: A schema, and the answers to its parts.
_Schema = Mapping[str, Any]
_NOTHING: Final = "-"


def ask_form(begun: DesignForm | None = None) -> DesignForm:
    """Ask for each part that the form has for what was answered before it, until it is valid and complete."""
    schema = DesignForm.model_json_schema()
    given: dict[str, Any] = begun.model_dump(mode="json", exclude_defaults=True) if begun else {}
    say("Enter leaves a part out, or keeps what is shown in brackets; - takes that out.")
    while True:
        given = _parts(schema, schema["$defs"], given, "")
        try:
            form = DesignForm.model_validate(given)
        except ValidationError as error:
            for problem in error.errors():
                fail(": ".join(filter(None, [".".join(map(str, problem["loc"])), problem["msg"]])))
            continue
        if not form.needs:
            return form
        for path in form.needs:
            fail(f"{path}: Fill it in.")


def _parts(schema: _Schema, defs: _Schema, before: _Schema, where: str, *, row: bool = False) -> dict[str, Any]:
    """The answers to the parts of an object that apply; none where the first one of a `row` is left out."""
    found, fields = dict[str, Any](), schema["properties"]
    for name, field in fields.items():
        asked = field.get("x-show", {}).items()
        if all(found.get(other, fields[other].get("default")) in wanted for other, wanted in asked):
            title = f"{where}{field.get('title') or name.capitalize()}"
            answer = _field_answer(title, _resolved(field, defs), defs, before.get(name))
            if answer:
                found[name] = answer
            elif row and not found:
                return {}
    return found


def _field_answer(title: str, field: _Schema, defs: _Schema, before: Any) -> Any:
    match field.get("type"):
        case "object":
            return _parts(field, defs, before or {}, f"{title} - ")
        case "array":
            return _list(title, field, defs, before or [])
        case _:
            return _line(title, field, before)


def _list(title: str, field: _Schema, defs: _Schema, before: Sequence[Any]) -> list[Any]:
    """One answer after the other, until one is left out that has none after it."""
    item, found = _resolved(field["items"], defs), list[Any]()
    for number in count():
        former = before[number] if number < len(before) else None
        if item.get("type") == "object":
            answer = _parts(item, defs, former or {}, f"{title} {number + 1} - ", row=True)
        else:
            answer = _line(f"{title} {number + 1}", {**field, "enum": item.get("enum")}, former)
        if answer:
            found.append(answer)
        elif number >= len(before) - 1:
            return found
    return found


def _line(title: str, field: _Schema, before: Any) -> str:
    """One line, one of the choices where there are any."""
    choices = field.get("enum") or []
    about = ", ".join(choices) or str(field.get("description") or "").replace("`", "").rstrip(".")
    former = str(before if before is not None else "")
    while True:
        said = typer.prompt(f"{title} ({about})" if about else title, default=former, show_default=bool(former))
        answer = "" if said.strip() == _NOTHING else said.strip()
        if not (answer and choices) or answer in choices:
            return answer
        fail(f"Name one of {', '.join(choices)}.")


def _resolved(field: _Schema, defs: _Schema) -> _Schema:
    """A part of a schema with its reference resolved, or without `null`.

    A part of several kinds keeps only its description.
    """
    kinds = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
    if len(kinds) > 1:
        return {"description": field.get("description")}
    named = kinds[0].get("$ref", "").rpartition("/")[2]
    return {**kinds[0], **(defs[named] if named else {}), "description": field.get("description")}
