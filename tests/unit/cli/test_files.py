"""`export`, `import`, `diff`, `apply`, `promote`: flows as files, over a Flowise in memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch.compile.compiler import compile_ops
from flowise_dev_agent.patch.model.graph import GraphIR
from tests.fixtures.golden_flows import NOWHERE, chat
from tests.unit.cli.conftest import Run
from tests.unit.publish.fakes import FakeServer

DEV_KEY, PROD_KEY = NOWHERE["openAIApi"], "33333333-3333-4333-8333-333333333333"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, catalogue: NodeStore) -> dict[str, FakeServer]:
    """The servers `dev` (the default) with one flow, `f1`, and `prod` with none."""
    doubles = {"dev": FakeServer(catalogue, DEV_KEY), "prod": FakeServer(catalogue, PROD_KEY)}
    made = compile_ops(GraphIR.empty(), chat(NOWHERE), catalogue.schemas)
    doubles["dev"].flows["f1"] = Chatflow(id="f1", name="Bot", type="CHATFLOW", flow_data=made.flow_data)
    listed = [{"id": id_, "endpoint": "http://127.0.0.1:1"} for id_ in doubles]
    monkeypatch.setenv("FLOWISE_INSTANCES", json.dumps(listed))
    monkeypatch.setattr(Instances, "client", lambda self, id_=None: doubles[id_ or "dev"])
    return doubles


def made_by(run: Run, *arguments: str, code: int = 0) -> str:
    ended, out, err = run(*arguments)
    assert ended == code, out + err
    assert "Traceback" not in out + err
    return out + err


def test_an_exported_flow_can_be_compared_changed_and_imported(run: Run, servers: dict[str, FakeServer]) -> None:
    made_by(run, "export", "f1", "-o", "bot.json")
    document: dict[str, Any] = json.loads(Path("bot.json").read_text())
    assert document["flowData"] == json.loads(servers["dev"].flows["f1"].flow_data)
    assert "no difference" in made_by(run, "diff", "bot.json", "f1")
    model = next(node for node in document["flowData"]["nodes"] if node["data"]["name"] == "chatOpenAI")
    model["data"]["inputs"]["modelName"] = "gpt-4-turbo"
    Path("other.json").write_text(json.dumps(document))
    assert "gpt-4-turbo" in made_by(run, "diff", "f1", "other.json", code=1)
    assert "Created" in made_by(run, "import", "other.json", "--name", "Second")
    (second,) = [row for row in servers["dev"].flows.values() if row.name == "Second"]
    assert ("gpt-4-turbo" in second.flow_data, second.tags, second.deployed) == (True, (), False)
    assert "Replaced 'Bot'" in made_by(run, "import", "other.json", "--onto", "f1")
    assert "gpt-4-turbo" in servers["dev"].flows["f1"].flow_data


def test_an_unusable_file_is_a_sentence_and_writes_nothing(run: Run, servers: dict[str, FakeServer]) -> None:
    Path("broken.json").write_text("{")
    assert "not valid JSON" in made_by(run, "import", "broken.json", code=1)
    flow = json.loads(servers["dev"].flows["f1"].flow_data)
    flow["edges"] = []
    Path("loose.json").write_text(json.dumps(flow))
    assert "The flow was not written" in made_by(run, "import", "loose.json", code=1)
    assert "cannot be read" in made_by(run, "import", "missing.json", code=1)
    assert servers["dev"].calls == []


def test_ops_of_a_flow_make_it_again(run: Run, servers: dict[str, FakeServer], catalogue: NodeStore) -> None:
    ops = json.loads(made_by(run, "export", "f1", "--ops"))
    assert {op["op_type"] for op in ops} >= {"AddNode", "Connect"}
    assert "chatOpenAI" in {op.get("node_name") for op in ops}


def test_ops_are_applied_checked_shown_and_only_then_written(run: Run, servers: dict[str, FakeServer]) -> None:
    before = servers["dev"].flows["f1"].flow_data
    ops = [{"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.3}]
    Path("ops.json").write_text(json.dumps({"ops": ops}))
    said = made_by(run, "apply", "ops.json", "f1", "--dry-run")
    assert "temperature" in said
    assert "Nothing was written" in said
    assert servers["dev"].flows["f1"].flow_data == before
    assert "Changed 'Bot'" in made_by(run, "apply", "ops.json", "f1")
    assert '"temperature":0.3' in servers["dev"].flows["f1"].flow_data.replace(" ", "")
    Path("wrong.json").write_text(json.dumps([{**ops[0], "param_name": "temprature"}]))
    assert "temperature" in made_by(run, "apply", "wrong.json", "f1", code=1)


def test_p69_a_flow_is_promoted_with_the_other_servers_credential(run: Run, servers: dict[str, FakeServer]) -> None:
    said = made_by(run, "promote", "f1", "--to", "prod", "--name", "Real bot")
    assert "openAIApi: 'main' -> 'main' (by name)" in said
    (there,) = servers["prod"].flows.values()
    assert (there.name, PROD_KEY in there.flow_data, DEV_KEY in there.flow_data) == ("Real bot", True, False)
    servers["prod"].flows[there.id] = there.model_copy(update={"flow_data": there.flow_data.replace("gpt-", "old-")})
    assert "kept in" in made_by(run, "promote", "f1", "--to", "prod", "--onto", there.id)
    assert json.loads(Path(f"{there.id}.before.json").read_text())["flowData"]
    assert servers["prod"].flows[there.id].flow_data == there.flow_data


def test_a_flow_of_another_kind_is_not_written_over(run: Run, servers: dict[str, FakeServer]) -> None:
    row = servers["dev"].flows["f1"]
    servers["prod"].flows["f2"] = row.model_copy(update={"id": "f2", "type": "AGENTFLOW"})
    assert "of type AGENTFLOW" in made_by(run, "promote", "f1", "--to", "prod", "--onto", "f2", code=1)
    assert servers["prod"].calls == []
