"""Fields of the items of a structured list (`jsonSchema` of a `jsonArray`), as Flowise 3.1.4 reads them.

It reads a map from field names to types. A JSON Schema, which models write, it takes for an item with the fields `type`
and `properties`, so that every answer fails.
"""

from typing import Any, Final

from flowise_dev_agent.patch.model.json_text import dump_json, inner_json

FIELD: Final = "jsonSchema"
_PLAIN: Final = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}


def as_item_fields(schema: Any) -> Any:
    """The schema of an item as text that Flowise reads; the same text if it is one already, or no JSON.

    >>> as_item_fields('{"type": "object", "properties": {"count": {"type": "integer"}}}')
    '{"count":{"type":"number"}}'
    """
    text = dump_json(schema) if isinstance(schema, dict | list) and schema else schema
    given = inner_json(text) if isinstance(text, str) else None
    fields = _fields(given)
    return text if fields is None or fields == given else dump_json(fields)


def _fields(schema: Any) -> dict[str, Any] | None:
    """Field name -> its type, of a schema or a map of fields; None if there are none."""
    if isinstance(schema, list):
        schema = schema[0] if schema else None
    if isinstance(schema, dict) and schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    if not isinstance(schema, dict):
        return None
    # Of a field that is called "properties" or "type" the value says its own type.
    inner = schema.get("properties")
    if isinstance(inner, dict) and not isinstance(inner.get("type"), str):
        schema = inner
    elif schema.get("type") == "object":
        return None
    return {str(name): _field(one) for name, one in schema.items()} or None


def _field(field: Any) -> Any:
    if isinstance(field, str) and field in _PLAIN:
        return {"type": _PLAIN[field]}
    if not isinstance(field, dict) or not isinstance(field.get("type"), str):
        return field
    kept = {name: field[name] for name in ("description", "optional") if name in field}
    match field["type"]:
        case "array":
            # The items of a list of texts or numbers have no fields: Flowise reads no type of theirs.
            items = field.get("items")
            fields = _fields(items) if isinstance(items, dict) and items.get("type") not in _PLAIN else None
            return {"type": "array", **({"items": fields} if fields else {}), **kept}
        case "object":
            fields = _fields(field.get("properties"))
            return {"type": "object", **({"properties": fields} if fields else {}), **kept}
        case kind if kind in _PLAIN:
            return {"type": _PLAIN[kind], **kept}
        case _:
            return field
