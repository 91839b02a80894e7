"""Requests of people who had not seen the project, answered as a model would from the prompts alone, by hand.

Each still becomes the flow that was asked for. `scripts/bench/flowbench.py --cassette` plays and records them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.flowise import FlowiseClient
from scripts.bench.cassette import Cassette
from scripts.bench.flowbench import run_case
from tests.e2e.people import SharedService

BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"
CASES: list[dict[str, Any]] = yaml.safe_load((BENCH / "cases" / "recorded.yaml").read_text("utf-8"))
ANSWERS = BENCH / "cassettes"
WAIT_SECS = 120
#: A chatflow and an agentflow; the others in `make nightly`.
ALWAYS = {"se-azure-redis", "af-correction-copies"}


@pytest.fixture(scope="module")
def cassette(record_testsuite_property: Callable[[str, object], None]) -> Iterator[Cassette]:
    """Answers for the module's service. What was answered to other prompts than today's is in the test report."""
    with Cassette(ANSWERS) as player:
        yield player
    record_testsuite_property("answers to prompts that have changed", ", ".join(sorted(player.changed)))
    record_testsuite_property("answers that went back", "; ".join(player.handed_back))
    print(f"\n{len(player.handed_back)} answers went back to the model.", *player.handed_back, sep="\n")
    # These answers are right: only a check of ours that is wrong sends one back.
    assert player.handed_back == []


def test_every_case_has_its_answers() -> None:
    assert {case["id"] for case in CASES} == {file.stem for file in ANSWERS.glob("*.json")}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case["id"], marks=() if case["id"] in ALWAYS else pytest.mark.nightly) for case in CASES],
)
async def test_the_answers_of_a_model_become_the_flow_that_was_asked_for(
    case: dict[str, Any],
    cassette: Cassette,
    shared_service: SharedService,
    flowise_client: FlowiseClient,
    flowise: FlowiseAccess,
) -> None:
    service = await shared_service(
        REASONING_ENGINE="openai",
        REASONING_FALLBACK_ENABLED="false",
        OPENAI_API_KEY="cassette",
        PATTERNS_ENABLED="false",
        FLOWISE_MODEL_STAND_IN="true",
        **cassette.environment,
    )
    key = flowise.api_key.get_secret_value()
    api = httpx2.AsyncClient(base_url=f"{flowise.endpoint}/api/v1", headers={"Authorization": f"Bearer {key}"})
    missing = cassette.misses
    async with AgentClient(service.url) as agent, api:
        result = await run_case(agent, flowise_client, api, case, WAIT_SECS)
    assert result.failed_at == ""
    assert cassette.misses == missing
