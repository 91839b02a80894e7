"""A corpus of bad model answers, each through the real SDK and the real graph: a right flow or a clear question.

`-s` prints the recovery rate: how many of them still end in the flow that was asked for.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn, Reply
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest
from flowise_dev_agent.knowledge.credential_store import CredentialStore, KnownCredential
from flowise_dev_agent.patch import errors, validate_flow
from flowise_dev_agent.planning.phased import make_reasoner
from flowise_dev_agent.settings import ReasoningSettings
from tests.unit.agent.rig import OPENAI, Bench

FOLDER = Path(__file__).resolve().parents[2] / "support" / "bad_answers"
NAMES = sorted(file.stem for file in FOLDER.glob("*.txt"))
#: Every fifth, which is some of each phase; all of them in `make nightly`.
CORPUS = [
    name if number % 5 == 0 else pytest.param(name, marks=pytest.mark.nightly) for number, name in enumerate(NAMES)
]
REQUIREMENT = "A customer support chatbot with GPT-4o and memory"
NODES = {"chatOpenAI", "bufferMemory", "conversationChain"}
INTENT = {
    "operation": "create",
    "ambiguity": 1,
    "questions": [],
    "title": "Support bot",
    "target_hint": None,
    "language": "en",
}
PLAN = {
    "goal": "A support chatbot that remembers.",
    "operation": "create",
    "flow_name": "Support bot",
    "nodes": [{"node_id": f"{name}_0", "node_name": name, "purpose": "a part"} for name in sorted(NODES)],
    "steps": ["Add and connect them."],
    "success_criteria": ["It answers."],
    "test_questions": ["What can you do?"],
    "parts": [{"id": "p1", "state": "covered", "nodes": ["chatOpenAI_0"]}],
}
OPS = {
    "ops": [
        *({"op_type": "AddNode", "node_name": name, "node_id": f"{name}_0"} for name in sorted(NODES)),
        *(
            {
                "op_type": "Connect",
                "source_node_id": f"{source}_0",
                "target_node_id": "conversationChain_0",
                "target_anchor": anchor,
            }
            for source, anchor in (("chatOpenAI", "model"), ("bufferMemory", "memory"))
        ),
    ]
}
VERDICT = {"done": True, "category": None, "reason": "", "fix": "", "notes": ["fine"], "failed_trials": []}
#: Phase -> (a property by which its schema is known, a good answer).
PHASES: dict[str, tuple[str, dict[str, Any]]] = {
    "classify": ("ambiguity", INTENT),
    "plan": ("flow_name", PLAN),
    "patch": ("ops", OPS),
    "judge": ("failed_trials", VERDICT),
}


def script(standin: ModelStandIn, name: str, times: int | None) -> None:
    """Good answers for every phase, and in front of them the bad one, `times` times."""
    for phase, (key, good) in PHASES.items():

        def asks(request: RecordedRequest, key: str = key) -> bool:
            return key in (request.json_schema or {}).get("properties", {})

        if name.startswith(phase):
            standin.script(asks, Reply((FOLDER / f"{name}.txt").read_text("utf-8").strip() or " "), times=times)
        standin.script(asks, Reply(json.dumps(good)))


async def run(standin: ModelStandIn, name: str, times: int | None) -> str:
    """Play a session; "recovered" for the right flow, "asked" for a question with nothing written."""
    script(standin, name, times)
    settings: dict[str, Any] = {
        "REASONING_ENGINE": "openai",
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": standin.base_url_openai,
    }
    reasoner = make_reasoner(ReasoningSettings(**settings))
    bench = Bench([], CredentialStore([KnownCredential(id=OPENAI, name="key", type="openAIApi")]), reasoner=reasoner)
    try:
        question = await bench.start(REQUIREMENT)
        while question and question["type"] in ("clarification", "plan_approval"):
            action = "go_on" if question["type"] == "clarification" else "approve"
            question = await bench.answer(action=action)
    finally:
        await reasoner.aclose()
    written = list(bench.flowise.flows.values())
    if question and question["type"] == "result_review":
        (flow,) = written
        names = {node["data"]["name"] for node in json.loads(flow.flow_data)["nodes"]}
        assert names == NODES
        schemas = (await bench.knowledge.nodes()).schemas
        assert errors(validate_flow(flow.flow_data, schemas=schemas, credentials={OPENAI: "openAIApi"})) == []
        assert "evil.example" not in flow.flow_data
        assert "sk-live" not in flow.flow_data
        return "recovered"
    assert question, "the session ended without a word"
    assert question["message"]
    assert question["options"]
    assert written == []
    return "asked"


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, list[str]]]:
    found: dict[str, list[str]] = {"once": [], "always": []}
    yield found
    for how, ends in found.items():
        print(f"\nbad answer {how}: {ends.count('recovered')} of {len(ends)} recovered, {ends.count('asked')} asked")


@pytest.mark.parametrize("name", CORPUS)
async def test_p05_p22_p25_a_bad_answer_is_made_good_at_the_next_try(
    name: str, standin: ModelStandIn, outcomes: dict[str, list[str]]
) -> None:
    outcomes["once"].append(await run(standin, name, times=1))
    assert outcomes["once"][-1] == "recovered"


@pytest.mark.parametrize("name", CORPUS)
async def test_p05_p21_p22_a_model_that_stays_bad_ends_in_a_flow_or_a_question(
    name: str, standin: ModelStandIn, outcomes: dict[str, list[str]]
) -> None:
    outcomes["always"].append(await run(standin, name, times=None))
