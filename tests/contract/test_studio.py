"""`langgraph.json`: the graph opens in LangGraph's own tools."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

ROOT = Path(__file__).resolve().parents[2]
NODES = 18


def test_langgraph_json_names_the_graph_without_a_saver() -> None:
    file, _, name = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["agent"].partition(":")
    spec = importlib.util.spec_from_file_location("studio", ROOT / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph: Any = getattr(module, name)
    assert graph.checkpointer is None
    assert len(set(graph.get_graph().nodes) - {"__start__", "__end__"}) == NODES


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_the_graph_opens_in_the_in_memory_server_of_langgraph() -> None:
    """`LANGGRAPH` names the command of an environment with langgraph-cli[inmem], which the lock does not have."""
    command = os.environ.get("LANGGRAPH") or shutil.which("langgraph")
    if command is None:
        pytest.skip("langgraph-cli[inmem] is not installed")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    packages = next(one for one in sys.path if one.endswith("site-packages"))
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{packages}", "LANGSMITH_TRACING": "false"}
    server = subprocess.Popen(
        [command, "dev", "--no-browser", "--no-reload", "--port", str(port)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=20) as http:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and server.poll() is None:
                with suppress(httpx2.TransportError):
                    if http.get("/ok").is_success:
                        break
                time.sleep(0.5)
            (assistant,) = http.post("/assistants/search", json={"graph_id": "agent"}).raise_for_status().json()
            drawn = http.get(f"/assistants/{assistant['assistant_id']}/graph").raise_for_status().json()
    finally:
        server.terminate()
        server.wait(20)
    assert len({node["id"] for node in drawn["nodes"]} - {"__start__", "__end__"}) == NODES
