"""Objects of any shape as lists of names and values: the form in which a closed schema can hold them."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from flowise_dev_agent.patch.model.json_text import JsonObject


def named_values(value: Any) -> Any:
    """The object that a list of `{"name": ..., "value": ...}` says; any other value as it is."""
    if not isinstance(value, list) or not all(isinstance(one, dict) and "name" in one for one in value):
        return value
    return {str(one["name"]): one.get("value") for one in value}


#: An object whose fields may also be given as a list of names and values.
NamedValues = Annotated[JsonObject, BeforeValidator(named_values)]
