"""OpenAPI descriptions: their operations as tools with typed inputs, for Flowise's request nodes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.texts import text as said

#: Maximum number of operations of one description.
MOST_OPERATIONS: Final = 200
_METHODS: Final = ("get", "post", "put", "delete")
_DEEPEST_REF: Final = 10
_TEXT: Final = 300
#: Field names of the request nodes of Flowise 3.1.4, by method. All take a description of the parameters; only those of
#: `requestsPost` and `requestsPut` go into the body, and only the others fill in a path.
#: `requestsPost` and `requestsPut` go into the body, and only the others fill in a path.
_NODES: Final[Mapping[str, tuple[str, str, str]]] = {
    "get": ("requestsGet", "requestsGet", "requestsGetQueryParamsSchema"),
    "delete": ("requestsDelete", "requestsDelete", "requestsDeleteQueryParamsSchema"),
    "post": ("requestsPost", "requestsPost", "requestsPostBodySchema"),
    "put": ("requestsPut", "requestsPut", "requestsPutBodySchema"),
}

ParamType = Literal["string", "number", "boolean", "object", "array"]


class ApiParam(BaseModel):
    """One typed input of an operation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    where: Literal["path", "query", "body"]
    type: ParamType = "string"
    required: bool = False
    description: str = ""


class ApiOperation(BaseModel):
    """One operation of an API. ``lacks`` is the reason why it cannot be a tool; empty if it can."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation_id: str = Field(pattern=r"^[A-Za-z0-9_]{1,60}$")
    method: Literal["get", "post", "put", "delete"]
    path: str
    summary: str = ""
    params: tuple[ApiParam, ...] = ()
    header: str = Field(default="", description="The header that lets a caller in; empty without one.")
    scheme: str = Field(default="", description="What stands in front of the token: `Bearer `.")
    lacks: str = ""

    @property
    def title(self) -> str:
        """Method and path, such as `GET /tickets/{id}`."""
        return f"{self.method.upper()} {self.path}"


class ApiDescription(BaseModel):
    """An API as described by its OpenAPI document."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    server: str = Field(description="Address of the API, without a slash at the end; empty when none is given.")
    operations: tuple[ApiOperation, ...] = ()

    @property
    def tools(self) -> tuple[ApiOperation, ...]:
        """The operations that can be tools."""
        return tuple(one for one in self.operations if not one.lacks)

    @property
    def token_variable(self) -> str:
        """Name of the Flowise variable with the token: `ticketsToken`."""
        words = re.findall(r"[A-Za-z0-9]+", self.title)[:3] or ["api"]
        return "".join([words[0].lower(), *(word.capitalize() for word in words[1:])])[:40] + "Token"

    def node(self, operation: ApiOperation) -> tuple[str, dict[str, JsonValue]]:
        """(node type, values) of the tool for an operation."""
        name, prefix, schema = _NODES[operation.method]
        inputs: dict[str, Any] = {}
        for param in operation.params:
            shown: dict[str, Any] = {"type": param.type, "required": param.required, "description": param.description}
            inputs[param.name] = shown if param.where == "body" else {**shown, "in": param.where}
        params: dict[str, JsonValue] = {
            f"{prefix}Url": self.server + re.sub(r"\{([^{}/]+)\}", r":\1", operation.path),
            f"{prefix}Name": operation.operation_id.lower(),
            f"{prefix}Description": operation.summary or operation.title,
        }
        if inputs:
            params[schema] = json.dumps(inputs, ensure_ascii=False)
        if operation.header:
            params[f"{prefix}Headers"] = json.dumps(
                {operation.header: f"{operation.scheme}{{{{$vars.{self.token_variable}}}}}"}
            )
        return name, params


def is_openapi(text: str) -> bool:
    """True if a text may be an OpenAPI description; it is not parsed."""
    return re.search(r"""^\s*\{?\s*["']?(?:openapi|swagger)["']?\s*:""", text[:4_000], re.MULTILINE) is not None


def read_openapi(text: str) -> ApiDescription:
    """Parse a description (JSON or YAML, OpenAPI 3).

    Raises InvalidInputError if it is anything else, or has no operations.
    """
    # Not every service reads descriptions.
    import yaml

    try:
        raw: Any = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidInputError(said("error.api_unreadable", problem=shortened(str(error), _TEXT))) from None
    if not isinstance(raw, dict) or not str(raw.get("openapi") or "").startswith("3."):
        raise InvalidInputError(said("error.no_openapi"), hint=said("error.convert_swagger"))
    document: dict[str, Any] = {str(key): value for key, value in raw.items()}
    operations = tuple(_operations(document))[:MOST_OPERATIONS]
    if not operations:
        raise InvalidInputError(said("error.api_no_operations"), hint=said("error.api_no_operations_hint"))
    return ApiDescription(title=_title(document), server=_server(document), operations=operations)


def _title(document: Mapping[str, Any]) -> str:
    return shortened(str(_mapping(document.get("info")).get("title") or "API"), 80)


def _server(document: Mapping[str, Any]) -> str:
    for server in _list(document.get("servers")):
        url = str(_mapping(server).get("url") or "")
        for name, variable in _mapping(_mapping(server).get("variables")).items():
            url = url.replace(f"{{{name}}}", str(_mapping(variable).get("default") or ""))
        if urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname:
            return url.rstrip("/")
    return ""


def _operations(document: Mapping[str, Any]) -> Iterator[ApiOperation]:
    taken: set[str] = set()
    header, scheme = _way_in(document)
    for path, item in _mapping(document.get("paths")).items():
        entries = _mapping(_resolved(item, document))
        for method in _METHODS:
            if not isinstance(entries.get(method), dict):
                continue
            operation = _mapping(entries[method])
            name = _name(str(operation.get("operationId") or f"{method}_{path}"), taken)
            taken.add(name)
            params, lacks = _params(method, [*_list(entries.get("parameters"))], operation, document)
            is_open = operation.get("security") == []
            yield ApiOperation(
                operation_id=name,
                method=method,
                path=str(path),
                summary=shortened(str(operation.get("summary") or operation.get("description") or ""), _TEXT),
                params=params,
                header="" if is_open else header,
                scheme="" if is_open else scheme,
                lacks=lacks or ("" if _server(document) else "the description names no server"),
            )


def _name(text: str, taken: set[str]) -> str:
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:56] or "operation"
    return name if name not in taken else next(new for n in range(2, 10_000) if (new := f"{name}_{n}") not in taken)


def _way_in(document: Mapping[str, Any]) -> tuple[str, str]:
    """(header, prefix of the token) of the first authentication scheme that uses a header."""
    schemes = _mapping(_mapping(document.get("components")).get("securitySchemes"))
    for raw in schemes.values():
        one = _mapping(_resolved(raw, document))
        if one.get("type") == "http" and str(one.get("scheme")).lower() == "bearer":
            return "Authorization", "Bearer "
        if one.get("type") == "apiKey" and one.get("in") == "header" and one.get("name"):
            return str(one["name"]), ""
        if one.get("type") in ("oauth2", "openIdConnect"):
            return "Authorization", "Bearer "
    return "", ""


def _params(
    method: str, shared: Sequence[Any], operation: Mapping[str, Any], document: Mapping[str, Any]
) -> tuple[tuple[ApiParam, ...], str]:
    """The typed inputs, and the reason why the operation cannot be a tool ('' if it can)."""
    found: dict[str, ApiParam] = {}
    for raw in [*shared, *_list(operation.get("parameters"))]:
        one = _mapping(_resolved(raw, document))
        where, name = one.get("in"), str(one.get("name") or "")
        if where not in ("path", "query") or not name:
            if where == "header" and one.get("required"):
                return (), f"it needs the header {name}"
            continue
        if method in ("post", "put"):
            if where == "path" or one.get("required"):
                return (), f"Flowise's {method.upper()} node fills in no {where} parameter ({name})"
            continue
        schema = _mapping(_resolved(one.get("schema"), document))
        found[name] = _param(name, where, schema, one, required=bool(one.get("required") or where == "path"))
    body = _mapping(_resolved(operation.get("requestBody"), document))
    if not body:
        return tuple(found.values()), ""
    if method in ("get", "delete"):
        return (), f"Flowise's {method.upper()} node sends no body"
    content = _mapping(_mapping(body.get("content")).get("application/json"))
    schema = _mapping(_resolved(content.get("schema"), document))
    if not content or schema.get("type", "object") != "object":
        return (), "its body is not a JSON object"
    required = _list(schema.get("required"))
    for name, raw in _mapping(schema.get("properties")).items():
        one = _mapping(_resolved(raw, document))
        if not one.get("readOnly"):
            found[name] = _param(name, "body", one, one, required=name in required)
    return tuple(found.values()), ""


def _param(
    name: str,
    where: Literal["path", "query", "body"],
    schema: Mapping[str, Any],
    described: Mapping[str, Any],
    *,
    required: bool,
) -> ApiParam:
    kind = _kind(schema)
    # In an address everything is a text, or a number or a switch.
    kind = kind if where == "body" or kind in ("number", "boolean") else "string"
    text = str(described.get("description") or schema.get("description") or "")
    if values := _list(schema.get("enum")):
        text = f"{text} One of: {', '.join(map(str, values[:20]))}.".strip()
    return ApiParam(name=name, where=where, type=kind, required=required, description=shortened(text, _TEXT))


def _kind(schema: Mapping[str, Any]) -> ParamType:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    match kind:
        case "integer" | "number":
            return "number"
        case "boolean" | "object" | "array":
            return kind
        case _:
            return "object" if schema.get("properties") else "string"


def _resolved(value: Any, document: Mapping[str, Any]) -> Any:
    """The target of a local reference; external ones are not read."""
    for _ in range(_DEEPEST_REF):
        if not (isinstance(value, dict) and isinstance(value.get("$ref"), str)):
            return value
        here: Any = document
        for step in value["$ref"].removeprefix("#/").split("/"):
            here = _mapping(here).get(step.replace("~1", "/").replace("~0", "~"))
        value = here
    return None


def _mapping(value: Any) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []
