"""Flows of strangers, counted: what the check says of each, and what a real Flowise does with it.

All flows of Flowise's marketplace, the cases of `tests/fixtures/cases`, and flows made as the editor makes them. What
is refused must not run, and what fails must have a finding, but for what is listed with its reason.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise import ChatflowCreate, FlowiseClient
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.flow_check import check_flow
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, Schemas, UpgradeNode, compile_ops, decompile, errors
from tests.fixtures.fresh_flows import FRESH, Editor
from tests.integration.patch.test_templates_live import AT_ONCE, QUESTION, Flow, bindings, last_scenario, runnable

__all__ = ["bindings"]

pytestmark = pytest.mark.nightly

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
FOLDERS = {"chatflows": "CHATFLOW", "agentflowsv2": "AGENTFLOW", "agentflows": "MULTIAGENT"}
#: Findings that say nothing about the run.
NO_REASON = {"NOT_CHECKED", "MODEL_ENDS", "MODEL_ENDED", "VERSION_DRIFT", "UNKNOWN_PARAM"}
SQLITE = "the memory of agents needs the package sqlite3, which this installation lacks"
#: Valid, and fails for what no flow shows.
NOT_SEEN = {
    "agentflows: Agentic RAG": SQLITE,
    "agentflows: Essay Writing & Grading": SQLITE,
    "agentflows: Human In Loop RAG": SQLITE,
    "agentflows: Multi Agents": SQLITE,
    "agentflowsv2: Workplace Chat": "the values of its credential are made up",
    "chatflows: Github Docs QnA": "the network",
    "chatflows: Simple Chat Engine": "the values of its credential are made up",
    "fresh: an agent of a sequence with tools": SQLITE,
}


def marketplace(flowise_installed: Path) -> dict[str, Flow]:
    """The flows of the package; the server lists no sequential ones."""
    folder = flowise_installed / "node_modules" / "flowise" / "marketplaces"
    return {
        f"{sub}: {file.stem}": (kind, file.read_text(encoding="utf-8"))
        for sub, kind in FOLDERS.items()
        for file in sorted((folder / sub).glob("*.json"))
    }


async def test_what_is_refused_fails_and_what_fails_has_a_finding(
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
    flowise_installed: Path,
    standin: ModelStandIn,
    bindings: dict[str, str],
) -> None:
    standin.script(lambda request: '"scenarios": [' in request.last_user, last_scenario)
    schemas = (await NodeStore.from_server(flowise_client)).schemas
    flows = {
        name: (kind, runnable(GraphIR.from_flow_data(text), kind, schemas, bindings).to_flow_data())
        for name, (kind, text) in marketplace(flowise_installed).items()
    }
    for file in sorted(CASES.glob("*.json")):
        tried: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if tried.get("flow_data", {}).get("nodes"):
            flows[f"case: {file.stem}"] = tried["type"], json.dumps(tried["flow_data"])
    headers = {"Authorization": f"Bearer {flowise.api_key.get_secret_value()}"}
    async with httpx2.AsyncClient(base_url=f"{flowise.endpoint}/api/v1", headers=headers, trust_env=False) as http:
        types = {entry["name"]: entry for entry in (await http.get("/nodes")).json()}
    for name, (kind, draw) in FRESH.items():
        canvas = Editor(types, bindings)
        draw(canvas)
        flows[f"fresh: {name}"] = kind, canvas.text()
    known = CredentialStore.from_rows(await flowise_client.list_credentials()).types()
    gate = asyncio.Semaphore(AT_ONCE)
    told: dict[str, tuple[bool, bool, str, list[str]]] = {}

    async def one(name: str, kind: str, text: str) -> None:
        async with gate:
            found = await check_flow(flowise_client, text, kind=kind, schemas=schemas, credentials=known)
            said = await _asked(flowise_client, kind, text)
            codes = [finding.code for finding in found if finding.code not in NO_REASON]
            told[name] = not errors(found), not said.startswith("Error"), said, codes

    await asyncio.gather(*(one(name, *flow) for name, flow in flows.items()))

    count = Counter(("valid" if valid else "refused", "runs" if runs else "fails") for valid, runs, *_ in told.values())
    print(f"\n{len(told)} flows: {dict(count)}")
    for name, (valid, runs, said, codes) in sorted(told.items()):
        if valid != runs:
            print(f"  {'valid' if valid else 'refused'}, {'runs' if runs else 'fails'}: {name} {codes} {said[-160:]!r}")
    assert [name for name, (valid, runs, *_) in told.items() if not valid and runs] == []
    assert {
        name for name, (valid, runs, _, codes) in told.items() if valid and not runs and not codes
    } == NOT_SEEN.keys()


async def test_sequential_flows_answer_the_same_after_a_round_trip_and_an_upgrade(
    flowise_client: FlowiseClient, flowise_installed: Path, standin: ModelStandIn, bindings: dict[str, str]
) -> None:
    schemas = (await NodeStore.from_server(flowise_client)).schemas
    flows = {name: flow for name, flow in marketplace(flowise_installed).items() if flow[0] == "MULTIAGENT"}
    assert len(flows) == 14
    changed: dict[str, tuple[str, str, str]] = {}
    for name, (kind, text) in flows.items():
        graph = runnable(GraphIR.from_flow_data(text), kind, schemas, bindings)
        again = compile_ops(GraphIR.empty(), decompile(graph, schemas), schemas)
        old = [node.id for node in graph.nodes if _is_old(node.name, node.version, schemas)]
        newer = compile_ops(graph, [UpgradeNode(node_id=id_) for id_ in old], schemas)
        for result in (again.graph, newer.graph):
            assert _ends(result) == _ends(graph), name
        said = [
            await _asked(flowise_client, kind, one) for one in (graph.to_flow_data(), again.flow_data, newer.flow_data)
        ]
        changed[name] = (said[0], said[1], said[2])
    assert {name: said for name, said in changed.items() if len({*said}) > 1} == {}


def _is_old(name: str, version: Any, schemas: Schemas) -> bool:
    schema = schemas.get(name)
    return schema is not None and (not isinstance(version, (int, float)) or float(version) < schema.version)


def _ends(graph: GraphIR) -> set[tuple[str, str, str, str]]:
    return {(edge.source, edge.output_name, edge.target, edge.input_name) for edge in graph.edges}


async def _asked(client: FlowiseClient, kind: str, text: str) -> str:
    """The answer, or the failure; a flow that only fills a store is asked to do that."""
    flow = await client.create_chatflow(ChatflowCreate(name="counted", flow_data=text, type=kind))
    try:
        return (await client.predict(flow.id, QUESTION, session_id=f"counted-{flow.id}")).answer
    except FlowiseError as failure:
        return f"Error: {failure.message.replace(flow.id, 'ID')}"
    finally:
        await client.delete_chatflow(flow.id)
