"""Rules on what Flowise refuses at run time unless its operator allows it: measured on Flowise 3.1.4 as installed."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from flowise_dev_agent.patch.model.findings import Finding, warning
from flowise_dev_agent.patch.model.json_text import inner_json
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.validate.context import Component, FlowContext, rule
from flowise_dev_agent.patch.validate.limits import is_address
from flowise_dev_agent.patch.validate.params import SELECTED_TOOL, chosen_tool

#: Models whose schema calls the credential optional and that fail without one, unless the environment of the server has
#: the key: node type -> the variable that it may be in.
_KEYS: Final[Mapping[str, str]] = {
    "awsChatBedrock": "AWS_ACCESS_KEY_ID",
    "AWSBedrockEmbeddings": "AWS_ACCESS_KEY_ID",
    "chatCerebras": "OPENAI_API_KEY",
    "chatLitellm": "OPENAI_API_KEY",
    "chatOpenAICustom": "OPENAI_API_KEY",
    "chatOpenRouter": "OPENAI_API_KEY",
    "groqChat": "GROQ_API_KEY",
}
#: Node types that ignore their credential, with the version that does: -> the variable that they read.
_IGNORED: Final[Mapping[tuple[str, float], str]] = {("tavilyAPI", 1.2): "TAVILY_API_KEY"}
_PATHS: Final = frozenset({("faiss", "basePath"), ("simpleStoreLlamaIndex", "basePath"), ("folderFiles", "folderPath")})
#: Paths that lie in the folder `.flowise` of the server, or in the one that a setting names.
_KEPT_INSIDE: Final[Mapping[tuple[str, str], str]] = {
    ("faiss", "basePath"): "BLOB_STORAGE_PATH",
    ("simpleStoreLlamaIndex", "basePath"): "BLOB_STORAGE_PATH",
    ("sqlDatabaseChain", "url"): "DATABASE_PATH",
}
_UNSAFE_PATH: Final = re.compile(r"\.\.|%2e|%2f|%5c|[\x00-\x1f]|^[A-Za-z]:\\|^\\\\", re.IGNORECASE)
_LOCAL: Final = frozenset({"localhost", "ip6-localhost"})
#: Models whose server may be anywhere but in the network of Flowise; the others' may be there.
_KEPT_OUTSIDE: Final = frozenset(
    {
        *("chatCloudflareWorkersAI", "chatGoogleGenerativeAI", "chatNemoGuardrails", "chatOllama"),
        *("chatOllama_LlamaIndex", "chatOpenAICustom"),
    }
)
_OF_MODELS: Final = frozenset({"basepath", "baseUrl"})
_IMPORTED: Final = re.compile(r"""\brequire\(\s{0,9}["']([^"'\s]{1,80})["']|\bfrom\s{1,9}["']([^"'\s]{1,80})["']""")
#: Modules that the sandbox offers as installed.
_OFFERED: Final = frozenset(
    ["assert", "buffer", "crypto", "events", "path", "querystring", "timers", "url", "zlib", "axios", "node-fetch"]
)
_OF_NODE: Final = frozenset(
    [
        "child_process",
        "dns",
        "fs",
        "http",
        "http2",
        "https",
        "net",
        "os",
        "process",
        "stream",
        "tls",
        "util",
        "vm",
        "worker_threads",
    ]
)


@rule("CREDENTIAL_MAY_LACK")
def keys(flow: FlowContext) -> Iterator[Finding]:
    """Credentials that are optional by the schema and needed in fact."""
    for one in flow.components:
        variable = _KEYS.get(one.name)
        if variable and is_empty(one.credential):
            yield warning(
                "CREDENTIAL_MAY_LACK",
                f"{one.name} fails without a credential unless {variable} is set on the Flowise server.",
                where=one.node.id,
                field=one.path.rstrip(".") or "credential",
                hint=f"Use BindCredential on {one.node.id}.",
                setting=variable,
            )


@rule("SERVER_SETTING_NEEDED")
def refused(flow: FlowContext) -> Iterator[Finding]:
    """Commands, addresses, paths and modules that the server refuses as installed."""
    for one in flow.components:
        schema = flow.schemas.get(one.name)
        variable = _IGNORED.get((one.name, schema.version)) if schema else None
        if variable:
            text = f"{one.name} does not read its credential in this version of Flowise."
            yield _needed(one, "", text, variable)
        code = {entry["name"] for entry in (schema.definitions.params if schema else ()) if entry["type"] == "code"}
        tool = chosen_tool(flow, one)
        # A custom tool stands for its code.
        chosen = {SELECTED_TOOL: tool.code} if tool else {}
        for name, value in {**one.inputs, **chosen}.items():
            if not isinstance(value, str) or not value:
                continue
            if one.name == "customMCP" and name == "mcpServerConfig" and (command := _command(value)):
                text = f"The server starts no command ({command}) for MCP as installed."
                yield _needed(one, name, text, "CUSTOM_MCP_ALLOWED_COMMANDS")
            elif (one.name, name) in _PATHS and _UNSAFE_PATH.search(value):
                yield _needed(one, name, "The server refuses such a path.", "PATH_TRAVERSAL_SAFETY")
            elif (setting := _KEPT_INSIDE.get((one.name, name))) and value.startswith("/") and "/.flowise" not in value:
                text = "The server takes a path of its folder .flowise only, such as a relative one."
                yield _needed(one, name, text, setting)
            elif (
                is_address(one.name, name)
                and _is_private(value)
                and (name not in _OF_MODELS or one.name in _KEPT_OUTSIDE)
            ):
                yield _needed(one, name, "The server calls no address of its own network.", "HTTP_SECURITY_CHECK")
            elif (name in code or name in chosen) and (module := _module(value)):
                setting = "TOOL_FUNCTION_BUILTIN_DEP" if module in _OF_NODE else "TOOL_FUNCTION_EXTERNAL_DEP"
                yield _needed(one, name, f"The sandbox does not offer the module {module}.", setting)


def _needed(one: Component, name: str, text: str, setting: str) -> Finding:
    return warning(
        "SERVER_SETTING_NEEDED",
        text,
        where=one.node.id,
        field=f"{one.path}{name}".rstrip("."),
        hint=f"It works if {setting} of the Flowise server allows it; else use another way.",
        setting=setting,
    )


def _command(value: str) -> str:
    config: Any = inner_json(value)
    command = config.get("command") if isinstance(config, dict) else None
    return str(command)[:40] if command else ""


def _is_private(address: str) -> bool:
    try:
        host = urlsplit(address.strip()).hostname or ""
        return host in _LOCAL or not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _module(code: str) -> str:
    found = (first or second for first, second in _IMPORTED.findall(code))
    return next((name for name in found if name.removeprefix("node:") not in _OFFERED), "")
