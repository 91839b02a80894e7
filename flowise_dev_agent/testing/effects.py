"""Effect of each step and tool on the world outside Flowise: what a test may run, and what it simulates instead.

Measured on Flowise 3.1.4. A type that is not listed, and that is a tool, counts as changing the world.
"""

import ipaddress
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from flowise_dev_agent.patch import CUSTOM_TOOL
from flowise_dev_agent.patch.model.addresses import addresses_in
from flowise_dev_agent.patch.model.field_kinds import FieldKind, classified
from flowise_dev_agent.patch.model.javascript import reaches_out

Effect = Literal["none", "reads", "changes"]

HTTP: Final = "httpAgentflow"
TOOL_STEP: Final = "toolAgentflow"
FLOW_STEP: Final = "executeFlowAgentflow"
FUNCTION_STEP: Final = "customFunctionAgentflow"
TOOL_CATEGORIES: Final = frozenset({"Tools", "Tools (MCP)"})
#: Nodes that act in any case: another flow, and chains that write whatever a model decides to an API.
_ACT: Final = frozenset({FLOW_STEP, "seqExecuteFlow", "postApiChain", "openApiChain"})
_NONE: Final = frozenset({"calculator", "currentDateTime", "jsonPathExtractor", "sequentialThinkingMCP", "chainTool"})
_READS: Final = frozenset(
    {
        *("arxiv", "braveSearchAPI", "braveSearchMCP", "exaSearch", "googleCustomSearch", "queryEngineToolLlamaIndex"),
        *("requestsGet", "retrieverTool", "searXNG", "searchAPI", "serpAPI", "serper", "tavilyAPI", "webBrowser"),
        *("webScraperTool", "wolframAlpha"),
    }
)
_READING_METHODS: Final = frozenset({"", "GET", "HEAD"})
_READING_ACTION: Final = re.compile(r"(?:get|list|search|find|read|lookup|fetch|query|describe|count)(?![a-z])")

#: Things that send one request to the address of one field; of others only running them tells what they call.
_ADDRESS_OF: Final[Mapping[str, str]] = {
    HTTP: "url",
    "requestsGet": "requestsGetUrl",
    "requestsPost": "requestsPostUrl",
    "requestsPut": "requestsPutUrl",
    "requestsDelete": "requestsDeleteUrl",
}
#: Names and networks of examples (RFC 2606, 6761, 5737, 3849), and the port of the service that answers nothing.
_FOR_EXAMPLES: Final = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|invalid|test)$")
_DOCUMENTATION: Final = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"))
)
_DISCARD: Final = 9
#: Tools that read what the flow itself stored.
OF_STORES: Final = frozenset({"retrieverTool", "queryEngineToolLlamaIndex"})


def address_of(type_: str, inputs: Mapping[str, Any]) -> str | None:
    """The one address that a step or tool calls; None if it is not certain before a run."""
    found = addresses_in(str(inputs.get(_ADDRESS_OF.get(type_, "")) or ""))
    return found[0].origin if len(found) == 1 and found[0].clear else None


def is_nowhere(address: str) -> bool:
    """True for an address that cannot be there, of which a test only shows that nothing answers: names and networks
    kept for examples, and the port that answers nothing.
    """
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return False
    if _FOR_EXAMPLES.search(host):
        return True
    with suppress(ValueError):
        ip = ipaddress.ip_address(host)
        return any(ip in network for network in _DOCUMENTATION) or (ip.is_loopback and port == _DISCARD)
    return host == "localhost" and port == _DISCARD


def tool_effect(type_: str, inputs: Mapping[str, Any] | None = None, harmless: Collection[str] = ()) -> Effect:
    """Effect of a tool by its node type, and of a toolkit by the names of its chosen actions. `harmless`: ids of the
    custom tools whose code calls nothing.
    """
    inputs = inputs or {}
    is_harmless = inputs.get("selectedTool") in harmless and not inputs.get("customToolFunc")
    if type_ in _NONE or (type_ == CUSTOM_TOOL and is_harmless):
        return "none"
    chosen = actions_of(inputs)
    reads = type_ in _READS or (chosen and all(_READING_ACTION.match(one) for one in chosen))
    return "reads" if reads else "changes"


def actions_of(inputs: Mapping[str, Any]) -> list[str] | None:
    """Names of the actions that a toolkit or an MCP server is given; None if it has no such field.

    Flowise reads them from JSON text, and takes anything else for no action.
    """
    fields = [value for name, value in inputs.items() if name.casefold().endswith("actions") and value]
    found: list[str] = []
    for value in fields:
        with suppress(ValueError, TypeError):
            listed = json.loads(value)
            found += [str(one) for one in listed] if isinstance(listed, list) else []
    return found if fields else None


def step_effect(name: str, category: str, inputs: Mapping[str, Any], harmless: Collection[str] = ()) -> Effect:
    """Effect of a node by itself, without the tools inside it; `harmless` as for `tool_effect`."""
    if name == HTTP:
        return "reads" if str(inputs.get("method") or "").upper() in _READING_METHODS else "changes"
    if name == TOOL_STEP:
        config = inputs.get("toolAgentflowSelectedToolConfig")
        return tool_effect(
            str(inputs.get("toolAgentflowSelectedTool") or ""), config if isinstance(config, dict) else {}, harmless
        )
    if category in TOOL_CATEGORIES:
        return tool_effect(name, inputs, harmless)
    code = (value for field, value in inputs.items() if classified(field) is FieldKind.CODE and isinstance(value, str))
    return "changes" if name in _ACT or any(map(reaches_out, code)) else "none"
