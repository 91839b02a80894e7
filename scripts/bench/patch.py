"""How long it takes to compile, check, take apart and describe flows.

    python scripts/bench/patch.py [--json]

On the committed catalogue, in processor time (see `clock.py`). Caches are warm, as they are in a server that has built
its first flow.

"compile" and "change a field" go from ops to graph, text and hash; "graph alone" leaves out text and hash. "validate"
begins with the text. "decompile" and "summarize" begin with a graph; with the text in the rows that say "read and".

The target beside a ratio is the most yardsticks that it may take: a session compiles a few times in minutes. That the
work grows in proportion to the flow is counted in tests/unit/patch/test_patch_growth.py.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import (
    AddNode,
    BindCredential,
    Connect,
    GraphIR,
    PatchOp,
    Schemas,
    SetParam,
    compile_ops,
    decompile,
    diff,
    summarize,
    validate_flow,
)
from scripts.bench.clock import Measured, heading, line, measure

#: Yardsticks, by the name of a row.
TARGETS = {"compile 12 ops": 2.5, "compile 60 ops": 11, "compile 960 ops (400 nodes)": 150}

CREDENTIAL = "11111111-1111-4111-8111-111111111111"


def team(number: int) -> list[PatchOp]:
    """Twelve ops, five nodes: an agent with model, memory and two tools."""
    agent, model, memory = f"toolAgent_{number}", f"chatOpenAI_{number}", f"bufferMemory_{number}"
    clock, sums = f"currentDateTime_{number}", f"calculator_{number}"
    return [
        AddNode(node_name="toolAgent", node_id=agent, params={"systemMessage": "You are brief."}),
        AddNode(node_name="chatOpenAI", node_id=model, params={"modelName": "gpt-4o"}),
        AddNode(node_name="bufferMemory", node_id=memory),
        AddNode(node_name="calculator", node_id=sums),
        AddNode(node_name="currentDateTime", node_id=clock),
        SetParam(node_id=model, param_name="temperature", value=0.2),
        SetParam(node_id=model, param_name="streaming", value=False),
        BindCredential(node_id=model, credential_id=CREDENTIAL, credential_type="openAIApi"),
        Connect(source_node_id=model, target_node_id=agent, target_anchor="model"),
        Connect(source_node_id=memory, target_node_id=agent, target_anchor="memory"),
        Connect(source_node_id=sums, target_node_id=agent, target_anchor="tools"),
        Connect(source_node_id=clock, target_node_id=agent, target_anchor="tools"),
    ]


def teams(count: int) -> list[PatchOp]:
    return [op for number in range(count) for op in team(number)]


def cases(schemas: Schemas) -> dict[str, Callable[[], object]]:
    """Name to what is timed."""
    found: dict[str, Callable[[], object]] = {}
    for name, ops in (("12 ops", teams(1)), ("60 ops", teams(5)), ("960 ops (400 nodes)", teams(80))):
        found[f"compile {name}"] = lambda ops=ops: compile_ops(GraphIR.empty(), ops, schemas).sha256
        found[f"graph alone of {name}"] = lambda ops=ops: compile_ops(GraphIR.empty(), ops, schemas)
    for count in (3, 10, 24):
        text = compile_ops(GraphIR.empty(), teams(count), schemas).flow_data
        graph = GraphIR.from_flow_data(text)
        change: list[PatchOp] = [SetParam(node_id="chatOpenAI_0", param_name="temperature", value=0.7)]
        other = compile_ops(graph, change, schemas).graph
        size = f"{len(graph.nodes)} nodes ({len(graph.edges)} edges, {len(text) // 1000} kB)"
        found[f"read {size}"] = lambda text=text: GraphIR.from_flow_data(text)
        found[f"change a field of {size}"] = lambda graph=graph, change=change: (
            compile_ops(graph, change, schemas).sha256
        )
        found[f"graph alone of that change, {len(graph.nodes)} nodes"] = lambda graph=graph, change=change: compile_ops(
            graph, change, schemas
        )
        found[f"validate {size}"] = lambda text=text: validate_flow(
            text, schemas=schemas, credentials={CREDENTIAL: "openAIApi"}
        )
        found[f"decompile {size}"] = lambda graph=graph: decompile(graph, schemas)
        found[f"read and decompile {size}"] = lambda text=text: decompile(text, schemas)
        found[f"diff {size}"] = lambda graph=graph, other=other: diff(graph, other).text
        found[f"summarize {size}"] = lambda graph=graph: summarize(graph)
        found[f"read and summarize {size}"] = lambda text=text: summarize(GraphIR.from_flow_data(text))
    return found


def _row(name: str, measured: Measured) -> str:
    target = TARGETS.get(name)
    return f"{line(name, measured)} {target:8.1f}" if target else line(name, measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    schemas = NodeStore.from_snapshot().schemas
    results = {name: measure(run) for name, run in cases(schemas).items()}
    if as_json:
        print(json.dumps({name: asdict(result) for name, result in results.items()}))
        return
    print(f"{heading()} {'target':>8}")
    for name, result in results.items():
        print(_row(name, result))


if __name__ == "__main__":
    main()
