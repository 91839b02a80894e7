"""Objects of any shape as lists of names and values: the form in which a closed schema can hold them."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from flowise_dev_agent.patch.model.json_text import JsonObject


def named_values(value: Any) -> Any:
    """The object that a list of `{"name": ..., "value": ...}` says; any other value as it is."""
    if not isinstance(value, list) or not all(isinstance(one, dict) and "name" in one for one in value):
        return value
    return {str(one["name"]): one.get("value") for one in value}


def as_named_values(values: Mapping[str, Any], place: str = "") -> list[JsonObject]:
    """The list of names and values that says an object: as answer schemas ask for it, with paths for what is inside.

    Empty parts are left out: no path names them.

    >>> as_named_values({"rows": [{"key": "a"}], "on": True})
    [{'name': 'rows[0].key', 'value': 'a'}, {'name': 'on', 'value': True}]
    """
    found: list[JsonObject] = []
    for name, value in values.items():
        path = f"{place}.{name}" if place else name
        if isinstance(value, Mapping):
            found += as_named_values(cast("Mapping[str, Any]", value), path)
        elif isinstance(value, list) and any(isinstance(row, Mapping) for row in value):
            for number, row in enumerate(value):
                found += as_named_values({f"{path}[{number}]": row})
        else:
            found.append({"name": path, "value": value})
    return found


#: An object whose fields may also be given as a list of names and values.
NamedValues = Annotated[JsonObject, BeforeValidator(named_values)]
