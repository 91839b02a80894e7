"""The agent: a LangGraph graph of 18 nodes that plans, patches, writes, tests and asks."""

from flowise_dev_agent.agent.context import AgentContext, chatflow_url
from flowise_dev_agent.agent.domain import (
    DomainCapability,
    DomainDiscoveryResult,
    DomainPatchResult,
    TestSuite,
    ValidationReport,
)
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.graph import AgentGraph, build_graph, can_wait
from flowise_dev_agent.agent.projection import approved_plan, project, result_of
from flowise_dev_agent.agent.registry import ToolRegistry
from flowise_dev_agent.agent.state import AgentState, initial_state
from flowise_dev_agent.agent.state_upgrade import upgrade_state
from flowise_dev_agent.agent.tools import DomainTools, ToolResult, execute_tool, result_to_str
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.testing.flow_tests import hold_tests

__all__ = [
    "NODE_PHASES",
    "AgentContext",
    "AgentGraph",
    "AgentState",
    "DomainCapability",
    "DomainDiscoveryResult",
    "DomainPatchResult",
    "DomainTools",
    "FlowiseCapability",
    "TestSuite",
    "ToolRegistry",
    "ToolResult",
    "ValidationReport",
    "Verdict",
    "approved_plan",
    "build_graph",
    "can_wait",
    "chatflow_url",
    "execute_tool",
    "hold_tests",
    "initial_state",
    "project",
    "result_of",
    "result_to_str",
    "upgrade_state",
]
