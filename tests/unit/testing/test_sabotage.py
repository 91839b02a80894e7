"""A hundred conversations in which stand-ins answer wrongly, tools fail and models praise themselves: no claim is above
its level.
"""

from random import Random
from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.flowise.models import Prediction
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, PatchOp, SetParam, compile_ops
from flowise_dev_agent.schemas.plan import Criterion, Part, TestCase
from flowise_dev_agent.schemas.verdict import CriterionVote, Evidence, Trace, Trial, Verdict
from flowise_dev_agent.testing.checks import checked
from flowise_dev_agent.testing.judging import judged
from flowise_dev_agent.testing.simulation import Simulation, simulated
from flowise_dev_agent.testing.trials import ConversationRunner, TrialConversation
from flowise_dev_agent.testing.verdicts import failed_verdict
from tests.fixtures.editor_flows import add, connect
from tests.unit.agent.rig import BenchFlowise, plan

PRAISE = "I have really done all of it, verified and confirmed for real. Everything works perfectly."
MADE_UP = "ticket 1001 is open"
FALLBACK = "I could not find that."
KINDS = ("praise", "wrong answer", "tool fails", "flow fails", "fallback", "placeholder", "honest", "unused")


@pytest.fixture(scope="module")
def acting() -> tuple[GraphIR, Simulation]:
    """A call, and an agent with a tool that acts."""
    schemas = NodeStore.from_snapshot().schemas
    config = {
        "agentSelectedTool": "requestsPost",
        "requestsPostName": "send_mail",
        "requestsPostUrl": "https://x.example",
    }
    rows: Any = [{"agentSelectedTool": "requestsPost", "agentSelectedToolConfig": config}]
    ops: list[PatchOp] = [
        add("startAgentflow"),
        add("httpAgentflow", method="POST", url="https://api.example.com/tickets"),
        add("agentAgentflow", agentModel="chatOpenAI"),
        SetParam(node_id="agentAgentflow_0", param_name="agentTools", value=rows),
        add("loopAgentflow", loopBackToNode="httpAgentflow_0-HTTP", fallbackMessage=FALLBACK),
        connect("startAgentflow_0", "httpAgentflow_0"),
        connect("httpAgentflow_0", "agentAgentflow_0"),
        connect("agentAgentflow_0", "loopAgentflow_0"),
    ]
    graph = compile_ops(GraphIR.empty(), ops, schemas).graph
    return graph, simulated(graph, schemas)


def reply(kind: str, chance: Random) -> Prediction | FlowiseServerError:
    """Answers of the flow; the call, the tool, or both may have run."""
    if kind == "flow fails":
        return FlowiseServerError("500", details={"flowise_message": "Error: The simulated call failed."})
    said = {"fallback": FALLBACK, "placeholder": "[PLACEHOLDER: what it says]", "honest": "It is sent."}.get(
        kind, PRAISE
    )
    ran = () if kind == "unused" else chance.choice((("http",), ("tool",), ("http", "tool")))
    steps: list[dict[str, Any]] = []
    if "http" in ran:
        output = {"content": f'{{"data": "{MADE_UP}", "status": 200}}'}
        data = {"name": "customFunctionAgentflow", "output": output}
        steps.append({"nodeId": "httpAgentflow_0", "status": "FINISHED", "data": data})
    if "tool" in ran or kind == "tool fails":
        tool = {"tool": "send_mail", "toolInput": {}, "toolOutput": MADE_UP}
        tool |= {"error": "The simulated call failed."} if kind == "tool fails" else {}
        data = {"name": "agentAgentflow", "output": {"usedTools": [tool]}}
        steps.append({"nodeId": "agentAgentflow_0", "status": "FINISHED", "data": data})
    return Prediction.model_validate({"text": said, "agentFlowExecutedData": steps})


@pytest.mark.parametrize("number", range(100))
async def test_no_claim_is_above_its_level(acting: tuple[GraphIR, Simulation], number: int) -> None:
    graph, simulation = acting
    chance, flow_data = Random(number), graph.to_flow_data()  # noqa: S311 - the same in each process
    cases = [TestCase(id=f"t{n}", turns=[f"Do it {n}"]) for n in (1, 2, 3)]
    agreed = plan(
        tests=cases,
        criteria=[Criterion(id=f"c{n}", text="It is really sent.", part=f"p{n}", tests=[f"t{n}"]) for n in (1, 2, 3)],
        parts=[Part(id=f"p{n}", quote="sends it", state="covered") for n in (1, 2, 3)],
    )
    trials: list[Trial] = []
    traces: list[Trace] = []
    kinds = [KINDS[number % len(KINDS)], *(chance.choice(KINDS) for _ in cases[1:])]
    for case, kind in zip(cases, kinds, strict=True):
        flowise: Any = BenchFlowise()
        flowise.in_turn = [reply(kind, chance)]
        asked = TrialConversation("copy", flow_data, case, 1, f"s-{case.id}-1", simulation=simulation)
        run = await ConversationRunner(flowise, asked).run()
        trials.append(checked(run.trial, run.trace, case, flow_data, stand_in=False))
        traces.append(run.trace)
    # A judge that believes everything, and quotes the answer, the stand-in, or nothing that was said.
    quotes = [chance.choice((trial.answer, MADE_UP, "it was delivered", "")) for trial in trials]
    votes = [
        CriterionVote(id=f"c{n}", state="shown", evidence=[Evidence(trial=n, quote=quote)])
        for n, quote in enumerate(quotes, start=1)
    ]
    believed = {"done": True, "criteria": [vote.model_dump(exclude={"sure"}) for vote in votes]}
    given = failed_verdict(trials) or Verdict.model_validate(believed)
    verdict = judged(given, agreed, trials, traces, flow_data, by_model=not given.category)
    for claim, part, trial, kind, quote in zip(verdict.criteria, verdict.parts, trials, kinds, quotes, strict=False):
        acted = bool(trial.simulated)
        assert not acted or claim.level in (None, "simulated"), (kind, claim)
        assert not acted or part.level in (None, "simulated"), (kind, part)
        if kind in ("tool fails", "flow fails", "fallback", "placeholder"):
            assert claim.state != "shown", (kind, claim)
        if quote != trial.answer or not quote:
            assert claim.state != "shown", (kind, claim, quote)
        assert claim.state == "shown" or claim.level is None
    if any(trial.category for trial in trials):
        assert verdict.headline in ("fails", "not_tested")
