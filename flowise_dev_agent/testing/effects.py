"""Effect of each step and tool on the world outside Flowise: what a test may run, and what it simulates instead.

Measured on Flowise 3.1.4. A type that is not listed, and that is a tool, counts as changing the world.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

Effect = Literal["none", "reads", "changes"]

HTTP: Final = "httpAgentflow"
TOOL_STEP: Final = "toolAgentflow"
FLOW_STEP: Final = "executeFlowAgentflow"
FUNCTION_STEP: Final = "customFunctionAgentflow"
#: Functions of a chatflow: their code is theirs, and may call out.
FUNCTIONS: Final = frozenset({FUNCTION_STEP, "customFunction", "ifElseFunction"})
TOOL_CATEGORIES: Final = frozenset({"Tools", "Tools (MCP)"})
#: Chains that call an API that their documentation describes; they write whatever a model decides.
API_CHAINS: Final = frozenset({"postApiChain", "openApiChain"})
_NONE: Final = frozenset({"calculator", "currentDateTime", "jsonPathExtractor", "sequentialThinkingMCP", "chainTool"})
_READS: Final = frozenset(
    {
        *("arxiv", "braveSearchAPI", "braveSearchMCP", "exaSearch", "googleCustomSearch", "queryEngineToolLlamaIndex"),
        *("requestsGet", "retrieverTool", "searXNG", "searchAPI", "serpAPI", "serper", "tavilyAPI", "webBrowser"),
        *("webScraperTool", "wolframAlpha"),
    }
)
_READING_METHODS: Final = frozenset({"", "GET", "HEAD"})
_CALLS_OUT: Final = re.compile(
    r"\b(?:fetch|axios|XMLHttpRequest|WebSocket)\b|\brequire\s*\(|\bimport\s*\(|^\s*import\s", re.MULTILINE
)


def tool_effect(type_: str) -> Effect:
    """Effect of a tool by its node type."""
    return "none" if type_ in _NONE else "reads" if type_ in _READS else "changes"


def step_effect(name: str, category: str, inputs: Mapping[str, Any]) -> Effect:
    """Effect of a node by itself, without the tools inside it."""
    if name == HTTP:
        return "reads" if str(inputs.get("method") or "").upper() in _READING_METHODS else "changes"
    if name == TOOL_STEP:
        return tool_effect(str(inputs.get("toolAgentflowSelectedTool") or ""))
    if name == FLOW_STEP or name in API_CHAINS:
        return "changes"
    if name in FUNCTIONS:
        return "changes" if any(_CALLS_OUT.search(str(value)) for value in inputs.values() if value) else "none"
    return tool_effect(name) if category in TOOL_CATEGORIES else "none"
