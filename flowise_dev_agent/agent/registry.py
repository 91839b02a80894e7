"""Registry of all domains' tools: unique names, filtered by phase."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from flowise_dev_agent.agent.tools import (
    SUMMARY_LIMIT,
    DomainTools,
    ToolFunction,
    ToolPhase,
    ToolResult,
    execute_tool,
    shorten,
)
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.models.messages import ToolDef
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonMapping

PHASES: Final[tuple[ToolPhase, ...]] = get_args(ToolPhase)


@dataclass(frozen=True)
class _Tool:
    """Registered tool. `definition.name` is the full name, such as `flowise.get_node`."""

    definition: ToolDef
    bare_name: str
    phases: frozenset[ToolPhase]
    function: ToolFunction


class ToolRegistry:
    """Tools by `namespace.name`. Only engines use other names for them on the wire."""

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}
        self._domains: dict[str, DomainTools] = {}

    def register(self, namespace: str, tool_def: ToolDef, phases: Iterable[ToolPhase], fn: ToolFunction) -> None:
        """Add one tool. `tool_def.name` may have the namespace already.

        Raises:
            ConfigurationError: the namespace has a tool of this name.
        """
        bare = tool_def.name.removeprefix(f"{namespace}.")
        name = f"{namespace}.{bare}"
        if name in self._tools:
            raise ConfigurationError(f"The tool '{name}' is registered twice.")
        definition = tool_def.model_copy(update={"name": name})
        self._tools[name] = _Tool(definition, bare, frozenset(phases), _limited(definition, fn))

    def register_domain(self, domain: DomainTools) -> None:
        """Add all tools of a domain, each for the phases that list it.

        Raises:
            ConfigurationError: another domain has this name, or a tool has no function.
        """
        if domain.name in self._domains or any(name.startswith(f"{domain.name}.") for name in self._tools):
            raise ConfigurationError(f"Two domains claim the namespace '{domain.name}'.")
        phases: dict[str, set[ToolPhase]] = {}
        definitions: dict[str, ToolDef] = {}
        for phase in PHASES:
            for definition in domain.defs(phase):
                definitions[definition.name] = definition
                phases.setdefault(definition.name, set()).add(phase)
        for name, definition in definitions.items():
            function = domain.executor.get(name) or domain.executor.get(name.removeprefix(f"{domain.name}."))
            if function is None:
                raise ConfigurationError(f"The tool '{name}' of the domain '{domain.name}' has no function.")
            self.register(domain.name, definition, phases[name], function)
        self._domains[domain.name] = domain

    def tool_defs(self, phase: ToolPhase) -> list[ToolDef]:
        """Tool definitions that a model is offered in a phase, with full names."""
        return [tool.definition for tool in self._tools.values() if phase in tool.phases]

    def executor(self, phase: ToolPhase | None = None) -> dict[str, ToolFunction]:
        """Functions of a phase, or all of them, by full and by bare name.

        A bare name that two domains claim is absent.
        """
        tools = {name: tool for name, tool in self._tools.items() if phase is None or phase in tool.phases}
        claims = [tool.bare_name for tool in tools.values()]
        bare = {tool.bare_name: tool.function for tool in tools.values() if claims.count(tool.bare_name) == 1}
        return {**bare, **{name: tool.function for name, tool in tools.items()}}

    def context(self, phase: ToolPhase) -> str:
        """Instructions of the domains for using their tools in a phase."""
        return "\n\n".join(text for domain in self._domains.values() if (text := domain.context(phase)))

    async def call(self, tool_name: str, arguments: JsonMapping) -> ToolResult:
        """Call a tool of any phase, see `execute_tool`."""
        return await execute_tool(tool_name, arguments, self.executor())


def _limited(definition: ToolDef, function: ToolFunction) -> ToolFunction:
    """Wrap a tool function: cut its summary to the declared limit."""
    limit = definition.summary_limit

    async def call(**arguments: Any) -> Any:
        result = await function(**arguments)
        if not isinstance(result, ToolResult):
            return result
        short = shorten(result.summary) if limit <= SUMMARY_LIMIT else shortened(result.summary, limit)
        return replace(result, summary=short)

    return call
