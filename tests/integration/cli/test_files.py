"""`export`, `import`, `diff`, `apply`, `promote`: flows as files, by a service."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.patch import AddNode, Connect, GraphIR, Schemas, SetParam, compile_ops
from tests.fixtures.golden_flows import GOLDEN, NOWHERE
from tests.unit.cli.conftest import Run
from tests.unit.patch.test_cases import case
from tests.writing_world import BOT, DEV_KEY, PROD_KEY, Servers

COLDER = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.3}


def made_by(run: Run, *arguments: str, code: int = 0) -> str:
    ended, out, err = run(*arguments)
    assert ended == code, out + err
    assert "Traceback" not in out + err
    return out + err


def test_an_exported_flow_can_be_compared_changed_and_imported(run: Run, servers: Servers) -> None:
    made_by(run, "export", BOT, "-o", "bot.json")
    document: dict[str, Any] = json.loads(Path("bot.json").read_text())
    assert document["flowData"] == json.loads(servers.dev.flows[BOT].flow_data)
    assert "no difference" in made_by(run, "diff", "bot.json", BOT)
    model = next(node for node in document["flowData"]["nodes"] if node["data"]["name"] == "chatOpenAI")
    model["data"]["inputs"]["modelName"] = "gpt-4-turbo"
    Path("other.json").write_text(json.dumps(document))
    assert "gpt-4-turbo" in made_by(run, "diff", BOT, "other.json", code=3)
    assert "Created 'Second'" in made_by(run, "import", "other.json", "--name", "Second")
    (second,) = [row for row in servers.dev.flows.values() if row.name == "Second"]
    assert ("gpt-4-turbo" in second.flow_data, second.tags, second.deployed) == (True, (), False)
    said = made_by(run, "import", "other.json", "--onto", BOT, "--yes")
    assert f"Replaced 'Bot' ({BOT})" in said
    assert "version v1.0 is the former flow" in said
    assert "gpt-4-turbo" in servers.dev.flows[BOT].flow_data


def test_a_flow_is_named_by_its_name_or_the_beginning_of_its_id(run: Run, servers: Servers) -> None:
    for named in ("bot", BOT[:8].upper()):
        assert "no difference" in made_by(run, "diff", BOT, named)
    for unknown in (BOT[:3], "nobody", "../x", "\N{SNOWMAN}", "*"):
        assert "neither a file nor a flow" in made_by(run, "flows", "show", unknown, code=1)


def test_a_name_of_two_flows_lists_both(run: Run, servers: Servers) -> None:
    twin = "3a010001-0000-4000-8000-000000000000"
    servers.dev.flows[twin] = servers.dev.flows[BOT].model_copy(update={"id": twin})
    said = made_by(run, "export", "Bot", code=1)
    assert twin in said
    assert BOT in said


def test_an_unusable_flow_is_a_sentence_and_writes_nothing(run: Run, servers: Servers) -> None:
    flow = json.loads(servers.dev.flows[BOT].flow_data)
    flow["edges"] = []
    Path("loose.json").write_text(json.dumps(flow))
    assert "The flow was not written" in made_by(run, "import", "loose.json", code=1)
    Path("good.json").write_text(servers.dev.flows[BOT].flow_data)
    said = made_by(run, "import", "good.json", "--instance", "staging", code=1)
    assert "staging" in said
    assert servers.dev.calls == []


def test_a_replaced_or_changed_flow_is_asked_about_by_its_name_and_written_as_it_was_then(
    run: Run, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = servers.dev.flows[BOT]
    Path("bot.json").write_text(before.flow_data)
    Path("ops.json").write_text(json.dumps([COLDER]))
    commands = {"Replace 'Bot'": ("import", "bot.json", "--onto", BOT), "Change 'Bot'": ("apply", "ops.json", BOT)}
    for question, command in commands.items():
        said = made_by(run, *command, code=Exit.NEEDS_ANSWER)
        assert (question in said, "Use --yes." in said) == (True, True)

    def meanwhile(_: str, *, abort: bool) -> None:
        assert abort
        servers.dev.flows[BOT] = before.model_copy(update={"name": "Support", "updated_date": "2027-01-01T00:00:00Z"})

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", meanwhile)
    for command in commands.values():
        servers.dev.flows[BOT] = before
        said = made_by(run, *command, code=1)
        assert "This has changed since you read it" in said
        assert "repeat the command" in said
    assert servers.dev.calls == []


def test_ops_of_a_flow_make_it_again(run: Run, servers: Servers) -> None:
    code, out, _ = run("export", BOT, "--ops")  # the service in this process may log to stderr
    assert code == 0
    ops = json.loads(out)
    assert {op["op_type"] for op in ops} >= {"AddNode", "Connect"}
    assert "chatOpenAI" in {op.get("node_name") for op in ops}


def test_ops_are_applied_checked_shown_and_only_then_written(run: Run, servers: Servers) -> None:
    before = servers.dev.flows[BOT].flow_data
    Path("ops.json").write_text(json.dumps({"ops": [COLDER]}))
    said = made_by(run, "apply", "ops.json", BOT, "--dry-run")
    assert "temperature" in said
    assert "Nothing was written" in said
    assert servers.dev.flows[BOT].flow_data == before
    said = made_by(run, "apply", "ops.json", BOT, "--yes")
    assert "temperature" in said
    assert "Changed 'Bot'" in said
    assert '"temperature":0.3' in servers.dev.flows[BOT].flow_data.replace(" ", "")
    Path("wrong.json").write_text(json.dumps([{**COLDER, "param_name": "temprature"}]))
    assert "temperature" in made_by(run, "apply", "wrong.json", BOT, "--yes", code=1)


def test_a_dry_run_of_a_change_that_would_be_refused_shows_why(run: Run, servers: Servers) -> None:
    cut = {"op_type": "Disconnect", "source_node_id": "chatOpenAI_0", "target_node_id": "conversationChain_0"}
    Path("ops.json").write_text(json.dumps([cut]))
    said = made_by(run, "apply", "ops.json", BOT, "--dry-run", code=1)
    assert "error: " in said
    assert "would be refused" in said
    assert servers.dev.calls == []


def test_p69_a_flow_is_promoted_with_the_other_servers_credential(run: Run, servers: Servers) -> None:
    said = made_by(run, "promote", BOT, "--to", "prod", "--name", "Real bot")
    assert "openAIApi: 'main' -> 'main' (by name)" in said
    assert "Created 'Real bot'" in said
    (there,) = servers.prod.flows.values()
    assert (there.name, PROD_KEY in there.flow_data, DEV_KEY in there.flow_data) == ("Real bot", True, False)
    servers.prod.flows[there.id] = there.model_copy(update={"flow_data": there.flow_data.replace("gpt-", "old-")})
    said = made_by(run, "promote", BOT, "--to", "prod", "--onto", there.id, "--yes")
    assert "Replaced 'Real bot'" in said
    assert "version v1.0 is the former flow" in said
    assert servers.prod.flows[there.id].flow_data == there.flow_data


def test_a_flow_of_another_kind_is_not_written_over(run: Run, servers: Servers) -> None:
    row, there = servers.dev.flows[BOT], str(uuid4())
    servers.prod.flows[there] = row.model_copy(update={"id": there, "type": "AGENTFLOW"})
    assert "of type AGENTFLOW" in made_by(run, "promote", BOT, "--to", "prod", "--onto", there, "--yes", code=1)
    assert servers.prod.calls == []


def test_the_shipped_agentflow_is_made_with_the_credential_that_is_given(run: Run, servers: Servers) -> None:
    assert "needs a credential" in made_by(run, "import", "build_flows", code=1)
    assert servers.dev.calls == []
    made_by(run, "import", "build_flows", "--credential", DEV_KEY, "--name", "Builder")
    (builder,) = [row for row in servers.dev.flows.values() if row.name == "Builder"]
    assert (builder.type, "{{$vars.flowiseDevAgentUrl}}/mcp" in builder.flow_data) == ("AGENTFLOW", True)
    assert DEV_KEY in builder.flow_data


def test_a_workspace_of_flowise_is_imported_flow_by_flow(run: Run, servers: Servers) -> None:
    """As Flowise exports it: several kinds, credentials taken out, settings beside the flows."""
    bot = json.loads(servers.dev.flows[BOT].flow_data)
    for node in bot["nodes"]:
        node["data"].pop("credential", None)
    sequential = case("I4-sequential-flow-read-as-chatflow")["flow_data"]
    rows = {
        "ChatFlow": [
            {
                "id": str(uuid4()),
                "name": "Sales",
                "flowData": json.dumps(bot),
                "category": "sales;new",
                "chatbotConfig": '{"starterPrompts":{}}',
                "followUpPrompts": '{"status":false}',
                "deployed": True,
            }
        ],
        "AgentFlow": [{"id": str(uuid4()), "name": "Steps", "flowData": json.dumps(sequential)}],
        "DocumentStore": [{"id": str(uuid4()), "name": "Handbook"}],
    }
    Path("ExportData.json").write_text(json.dumps(rows))

    said = made_by(run, "import", "ExportData.json", "--dry-run")
    assert said.count("valid") == 2
    assert servers.dev.calls == []
    said = made_by(run, "import", "ExportData.json", "--yes")
    assert "credential 'main' (by type)" in " ".join(said.split())
    assert "not imported: 1 DocumentStore" in said
    made = {row.name: row for row in servers.dev.flows.values() if row.id != BOT}
    assert {name: row.type for name, row in made.items()} == {"Sales": "CHATFLOW", "Steps": "MULTIAGENT"}
    sales = made["Sales"]
    assert (sales.category, sales.chatbot_config, sales.deployed) == ("sales;new", '{"starterPrompts":{}}', False)
    assert sales.follow_up_prompts == '{"status":false}'
    assert all(DEV_KEY in row.flow_data for row in made.values())
    assert "No flow is called 'Help'" in made_by(run, "import", "ExportData.json", "--flow", "Help", code=1)
    one = made_by(run, "import", "ExportData.json", "--flow", "Sales", "--credential", f"openAIApi={DEV_KEY}")
    assert "left out: deployed" in one
    assert "left out: category, chatbotConfig, followUpPrompts" in " ".join(
        made_by(run, "import", "ExportData.json", "--flow", "Sales", "--onto", BOT, "--yes").split()
    )
    assert "(by request)" in one
    made_by(run, "export", sales.id, "-o", "sales.json")
    document = json.loads(Path("sales.json").read_text())
    assert (document["category"], document["chatbotConfig"]) == ("sales;new", '{"starterPrompts":{}}')


def test_custom_tools_and_variables_of_an_export_are_made_where_the_server_lacks_them(
    run: Run, servers: Servers, schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a question, and once: a second import finds them by name."""
    tools: dict[str, str] = {}
    variables: dict[str, str] = {}

    async def create_tool(name: str, columns: Mapping[str, str]) -> str:
        assert columns == {"func": "return 'sunny'", "schema": "[]"}
        tools[(id_ := str(uuid4()))] = name
        return id_

    async def create_variable(name: str, columns: Mapping[str, str]) -> str:
        variables[name] = columns["value"]
        return str(uuid4())

    async def list_tools() -> list[dict[str, str]]:
        return [{"id": id_, "name": name} for id_, name in tools.items()]

    async def list_variables() -> list[dict[str, str]]:
        return [{"name": name, "type": "static"} for name in variables]

    for made in (create_tool, create_variable, list_tools, list_variables):
        monkeypatch.setattr(servers.dev, made.__name__, made, raising=False)
    there = str(uuid4())
    ops = [
        *GOLDEN["tool_agent"]({**NOWHERE, "openAIApi": DEV_KEY}),
        AddNode(node_name="customTool", node_id="weather", params={"selectedTool": there}),
        Connect(source_node_id="weather", target_node_id="toolAgent_0", target_anchor="tools"),
        SetParam(node_id="toolAgent_0", param_name="systemMessage", value="Be {{$vars.tone}}."),
    ]
    flow = compile_ops(GraphIR.empty(), ops, schemas).flow_data
    rows = {
        "ChatFlow": [{"id": str(uuid4()), "name": "Weather", "flowData": flow}],
        "Tool": [{"id": there, "name": "weather", "func": "return 'sunny'", "schema": "[]"}],
        "Variable": [{"id": str(uuid4()), "name": "tone", "value": "kind", "type": "static"}],
    }
    Path("ExportData.json").write_text(json.dumps(rows))

    said = " ".join(made_by(run, "import", "ExportData.json", "--dry-run").split())
    assert "custom tool 'weather': is made; variable 'tone': is made" in said
    made_by(run, "import", "ExportData.json", code=4)  # nobody is there to agree
    assert (tools, variables, servers.dev.calls) == ({}, {}, [])
    made_by(run, "import", "ExportData.json", "--yes")
    assert (list(tools.values()), variables) == (["weather"], {"tone": "kind"})
    (row,) = [row for row in servers.dev.flows.values() if row.name == "Weather"]
    assert there not in row.flow_data
    assert next(iter(tools)) in row.flow_data
    made_by(run, "import", "ExportData.json", "--yes")
    assert len(tools) == 1
