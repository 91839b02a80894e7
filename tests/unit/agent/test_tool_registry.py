"""The registry of tools, the way to call one, and what may be seen of its result."""

import importlib
from typing import Any

import pytest
from langgraph.channels import BinaryOperatorAggregate

from flowise_dev_agent.agent import (
    AgentState,
    DomainCapability,
    DomainDiscoveryResult,
    DomainTools,
    FlowiseCapability,
    ToolRegistry,
    ToolResult,
    Verdict,
    execute_tool,
    result_to_str,
)
from flowise_dev_agent.agent.domain import DiscoverRequest
from flowise_dev_agent.agent.tools import ToolFunction, _wrap_result
from flowise_dev_agent.errors import ConfigurationError, FlowiseUnreachableError
from flowise_dev_agent.models.messages import ToolDef
from flowise_dev_agent.schemas.plan import Intent
from tests.unit.agent.rig import OPENAI, Bench
from tests.unit.agent.test_graph import credentials, ops


def tool(name: str, **values: Any) -> ToolDef:
    return ToolDef(name=name, description=f"About {name}.", parameters={"type": "object"}, **values)


def says(text: Any) -> ToolFunction:
    async def function(**_: Any) -> Any:
        return text

    return function


def domain(name: str = "flowise", **values: Any) -> DomainTools:
    given: dict[str, Any] = {
        "discover": [tool("get_node"), tool("search_nodes")],
        "patch": [tool("get_node")],
        "executor": {"get_node": says(f"node of {name}"), "search_nodes": says([1, 2])},
        "discover_context": f"Look things up in {name}.",
    }
    return DomainTools(name, **{**given, **values})


def registry(*domains: DomainTools) -> ToolRegistry:
    made = ToolRegistry()
    for one in domains:
        made.register_domain(one)
    return made


@pytest.mark.parametrize(
    "name", ["ToolResult", "ToolRegistry", "DomainDiscoveryResult", "DomainPatchResult", "ValidationReport", "Verdict"]
)
def test_ac1_the_agent_package_exports_the_interfaces_of_tools_and_domains(name: str) -> None:
    assert getattr(importlib.import_module("flowise_dev_agent.agent"), name)


def test_ac2_tools_have_full_names_and_are_found_by_both_names() -> None:
    tools = registry(domain())

    assert [one.name for one in tools.tool_defs("discover")] == ["flowise.get_node", "flowise.search_nodes"]
    executor = tools.executor("discover")
    assert set(executor) == {"flowise.get_node", "get_node", "flowise.search_nodes", "search_nodes"}
    assert executor["get_node"] is executor["flowise.get_node"]
    assert tools.context("discover") == "Look things up in flowise."


def test_ac2_a_phase_has_only_the_tools_that_are_registered_for_it() -> None:
    tools = registry(domain())

    assert [one.name for one in tools.tool_defs("patch")] == ["flowise.get_node"]
    assert set(tools.executor("patch")) == {"flowise.get_node", "get_node"}
    assert tools.tool_defs("test") == []
    assert tools.context("patch") == ""


async def test_ac2_a_bare_name_of_two_domains_is_an_error_that_names_both() -> None:
    tools = registry(domain(), domain("workday"))

    assert "get_node" not in tools.executor("discover")
    assert (await tools.call("workday.get_node", {})).summary == "node of workday"
    refused = await tools.call("get_node", {})
    assert not refused.ok
    assert "flowise.get_node or workday.get_node" in refused.summary


def test_ac2_two_domains_cannot_have_one_namespace() -> None:
    tools = registry(domain())

    with pytest.raises(ConfigurationError, match="Two domains claim the namespace 'flowise'"):
        tools.register_domain(domain())
    with pytest.raises(ConfigurationError, match=r"'flowise\.get_node' is registered twice"):
        tools.register("flowise", tool("flowise.get_node"), {"test"}, says(""))


def test_ac2_a_tool_without_a_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no function"):
        registry(domain(executor={}))


async def test_ac2_an_unknown_tool_is_an_error_that_lists_the_known_ones() -> None:
    result = await registry(domain()).call("get_nodes", {})

    assert (result.ok, result.error and result.error["code"]) == (False, "unknown_tool")
    assert "get_node, search_nodes" in result.summary


def test_ac3_a_domain_must_implement_the_whole_interface() -> None:
    with pytest.raises(TypeError):
        DomainCapability()  # type: ignore[abstract]


async def test_ac4_discovery_of_flowise_gives_a_discovery_result() -> None:
    bench = Bench(ops(), credentials(OPENAI))
    intent = Intent(operation="create", ambiguity=0, title="Bot")

    found = await FlowiseCapability().discover(bench.context(), DiscoverRequest("a support bot", intent))

    assert isinstance(found, DomainDiscoveryResult)
    assert "candidate node types" in found.summary
    assert found.facts == {"credentials": {"openAIApi": 1}}
    assert all(isinstance(result, ToolResult) and result.ok for result in found.tool_results)


def test_ac6_a_prompt_sees_the_summary_and_not_the_data() -> None:
    result = _wrap_result("list_nodes", [{"name": "secret blob"}] * 300)

    assert result_to_str(result) == "list_nodes returned 300 item(s)."


def test_ac7_values_of_domains_are_merged_and_others_stay() -> None:
    for name in ("artifacts", "facts", "debug"):
        channel = BinaryOperatorAggregate(dict, AgentState.model_fields[name].metadata[0])
        channel.update([{"flowise": {"a": 1, "b": 1}}, {"workday": {"a": 1}}])
        channel.update([{"flowise": {"b": 2}}])
        assert channel.get() == {"flowise": {"a": 1, "b": 2}, "workday": {"a": 1}}


async def test_ac9_a_tool_that_gives_a_chatflow_says_its_id_in_summary_and_artifacts() -> None:
    tools = registry(domain(executor={"get_node": says({"id": "abc", "name": "Bot"}), "search_nodes": says("")}))

    result = await tools.call("get_node", {})

    assert result.summary == "Chatflow 'Bot' (id=abc)."
    assert result.artifacts == {"chatflow_ids": ["abc"]}


@pytest.mark.parametrize(
    ("raw", "ok", "summary"),
    [
        ({"error": "no key", "valid": True}, False, "t failed: no key"),
        ({"valid": True, "id": "x"}, True, "The flow is valid."),
        ({"valid": False, "errors": ["A", "B"]}, True, "The flow is not valid: 2 errors. A B"),
        ({"id": "x", "name": "Bot", "snapshotted": True}, True, "Chatflow 'Bot' (id=x)."),
        ({"snapshotted": True, "version_label": "v2", "snapshot_count": 3}, True, "Snapshot saved as v2 (total: 3)."),
        ([1, 2, 3], True, "t returned 3 item(s)."),
        ({"other": "x" * 400}, True, '{"other": "' + "x" * 189),
        ("y" * 400, True, "y" * 300),
        (7, True, "7"),
    ],
)
def test_the_first_rule_that_fits_makes_the_summary(raw: Any, ok: bool, summary: str) -> None:
    result = _wrap_result("t", raw)

    assert (result.ok, result.summary) == (ok, summary)
    assert result.data == raw


@pytest.mark.parametrize(("limit", "shown"), [(300, 300), (1_000, 1_000), (6_000, 6_000)])
async def test_a_summary_is_cut_to_what_the_tool_declares(limit: int, shown: int) -> None:
    tools = ToolRegistry()
    tools.register("flowise", tool("long", summary_limit=limit), {"patch"}, says(ToolResult(True, "x" * 9_000)))

    assert len((await tools.call("long", {})).summary) == shown


def test_no_tool_may_declare_more_than_six_thousand_characters() -> None:
    with pytest.raises(ValueError, match="6000"):
        tool("long", summary_limit=6_001)


async def test_a_failure_that_a_person_may_read_is_a_result_and_a_bug_raises() -> None:
    async def unreachable() -> str:
        raise FlowiseUnreachableError("Flowise does not answer.", hint="Start it.")

    async def broken() -> str:
        raise RuntimeError("bug")

    result = await execute_tool("unreachable", {}, {"unreachable": unreachable})
    assert (result.ok, result.summary) == (False, "unreachable failed: Flowise does not answer. Start it.")
    assert isinstance(result.data, FlowiseUnreachableError)
    with pytest.raises(RuntimeError):
        await execute_tool("broken", {}, {"broken": broken})


@pytest.mark.parametrize(
    "verdict",
    [Verdict(done=True), Verdict(done=False, category="LOGIC", reason="It is silent.", fix="Set the prompt.")],
)
def test_a_verdict_keeps_its_meaning_in_the_short_form(verdict: Verdict) -> None:
    short = verdict.to_dict()

    assert short["verdict"] == ("DONE" if verdict.done else "ITERATE")
    assert Verdict.from_dict(short) == verdict
