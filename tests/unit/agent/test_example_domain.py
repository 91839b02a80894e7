"""A domain is one distribution: built as a wheel, installed, and used without a change elsewhere."""

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flowise_dev_agent.agent.domain import Domains, ToolScope
from flowise_dev_agent.agent.domains.installed import installed_domains
from flowise_dev_agent.agent.graph import build_graph
from flowise_dev_agent.cli.main import app
from flowise_dev_agent.patch import GraphIR
from tests.unit.agent.rig import Bench
from tests.unit.agent.test_graph import credentials
from tests.unit.agent.test_ready_tools import agent_plan, model_ops

SOURCE = Path(__file__).parents[2] / "support" / "example_domain"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution as pip would get it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def installed(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """It is on the path, and what it keeps goes into a folder of the test."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("DOMAINS_DIR", str(tmp_path / "domains"))
    yield tmp_path / "domains"
    sys.modules.pop("acme_tickets", None)


async def test_the_tool_of_an_installed_domain_is_in_the_plan_and_in_the_written_flow(installed: Path) -> None:
    bench = Bench(model_ops(), credentials("0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"))
    bench.graph = build_graph(installed_domains(("tickets",), installed), bench.graph.checkpointer)
    bench.reasoner.plans = [agent_plan()]

    question = await bench.start("An assistant that tells the status of tickets")
    contract = question["data"]["contract"]
    assert contract["domain_targets"] == ["flowise", "tickets"]
    assert "https://tickets.acme.example" in question["data"]["capability"]["hosts"]
    assert "## Personal data\n- `ticket.reporter`" in question["data"]["plan"]
    assert contract["tests"][-1]["expect"]["tools"] == ["tickets__status"]
    await bench.answer(action="approve")

    (flow,) = bench.flowise.flows.values()
    node = GraphIR.from_flow_data(flow.flow_data).node("tickets__status")
    assert node is not None
    assert node.inputs["requestsGetUrl"] == "https://tickets.acme.example/:number"
    assert bench.reasoner.seen["plan"][0].skills == (
        "Tickets are looked up by their number: the agent asks for it when it is not said.",
    )


async def test_its_refresh_fills_the_store_that_its_tool_for_planning_reads(installed: Path) -> None:
    runner = CliRunner()
    # The command runs an event loop of its own.
    done = await asyncio.to_thread(runner.invoke, app, ["domains", "--refresh", "tickets"])
    listed = await asyncio.to_thread(runner.invoke, app, ["domains"])

    assert (done.exit_code, done.output) == (0, "tickets: 2 queues.\n")
    assert "tickets: Tickets of Acme." in listed.output
    bench = Bench([], credentials("1"))
    context = bench.context()
    registry = Domains(installed_domains((), installed)).registry(
        ToolScope(flowise=context.flowise, knowledge=context.knowledge)
    )
    assert (await registry.call("tickets.list_queues", {})).summary == "support, billing"
    assert "tickets.list_queues" in {one.name for one in registry.tool_defs("discover")}
