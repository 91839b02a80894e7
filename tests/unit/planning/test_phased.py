"""One mode per phase, one try in the other one, and never silently."""

from typing import Any

import pytest

from flowise_dev_agent.errors import ModelAuthError, ModelOutputError, ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.planning.phased import PhasedReasoner
from flowise_dev_agent.planning.requests import ClassifyRequest, PatchRequest, PlanRequest
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.plan import Intent, OpsAnswer, Plan
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings
from tests.support.requests import flow_of
from tests.unit.agent.rig import Script

REQUEST = ClassifyRequest(requirement="a bot")


def intent(title: str) -> Intent:
    return Intent(operation="create", ambiguity=0, title=title)


def reasoner(model: Any, code: Any, **settings: Any) -> tuple[PhasedReasoner, Script, Script]:
    sides = Script(), Script()
    for side, answer in zip(sides, (model, code), strict=True):
        side.intents = [answer]
    chosen = ReasoningSettings(_env_file=None, OPENAI_API_KEY="k", **settings)  # type: ignore[call-arg]
    return PhasedReasoner(*sides, chosen), *sides


async def test_a_phase_runs_in_the_mode_of_the_settings() -> None:
    phased, _, code = reasoner(intent("model"), intent("code"))
    assert (await phased.classify(REQUEST)).value.title == "model"
    assert code.seen["classify"] == []
    phased, model, _ = reasoner(intent("model"), intent("code"), REASONING_MODE_CLASSIFY="deterministic")
    assert (await phased.classify(REQUEST)).value.title == "code"
    assert model.seen["classify"] == []


@pytest.mark.parametrize("error", [ModelUnavailableError("The provider is down."), ModelOutputError("Prose.")])
async def test_when_the_model_gives_up_code_answers_once_and_the_result_says_so(error: Exception) -> None:
    phased, _, code = reasoner(error, intent("code"))
    result = await phased.classify(REQUEST)
    assert result.value.title == "code"
    assert result.degraded is not None
    assert (result.degraded.failed_mode, result.degraded.fallback_mode) == ("llm_guided", "deterministic")
    assert result.degraded.reason == str(error)
    assert len(code.seen["classify"]) == 1


async def test_what_the_failed_tries_cost_is_counted() -> None:
    spent = Usage(model_calls=2, input_tokens=100)
    phased, _, code = reasoner(ModelOutputError("Prose.", details={"usage": spent.model_dump()}), intent("code"))
    code.usage = Usage()
    assert (await phased.classify(REQUEST)).usage == spent


async def test_when_both_fail_the_first_error_stands_and_there_is_no_second_hop() -> None:
    phased, model, code = reasoner(ModelUnavailableError("Down."), ModelOutputError("No rule."))
    with pytest.raises(ModelUnavailableError, match="Down"):
        await phased.classify(REQUEST)
    assert (len(model.seen["classify"]), len(code.seen["classify"])) == (1, 1)


async def test_without_fallback_the_failure_stands() -> None:
    phased, _, code = reasoner(ModelOutputError("Prose."), intent("code"), REASONING_FALLBACK_ENABLED="false")
    with pytest.raises(ModelOutputError):
        await phased.classify(REQUEST)
    assert code.seen["classify"] == []


async def test_a_refused_key_is_not_covered_up() -> None:
    phased, _, code = reasoner(ModelAuthError("The key is refused."), intent("code"))
    with pytest.raises(ModelAuthError):
        await phased.classify(REQUEST)
    assert code.seen["classify"] == []


def planning(catalogue: NodeStore, **more: Any) -> PlanRequest:
    return PlanRequest(requirement="a bot", intent=intent("x"), nodes=catalogue, **more)


def made(title: str) -> Plan:
    return Plan(goal=title, operation="create", flow_name=title)


async def test_the_plan_of_a_change_has_no_fallback(catalogue: NodeStore) -> None:
    for more in ({"flow": flow_of({"a_0": "a"})}, {"previous": made("former"), "feedback": "shorter"}):
        phased, model, code = reasoner(intent("model"), intent("code"))
        model.plans, code.plans = [ModelOutputError("Prose.")], [made("code")]
        with pytest.raises(ModelOutputError):
            await phased.plan(planning(catalogue, **more))
        assert code.seen["plan"] == []


async def test_the_plan_of_a_new_flow_gives_way_to_what_code_has(catalogue: NodeStore) -> None:
    phased, model, code = reasoner(intent("model"), intent("code"))
    model.plans, code.plans = [ModelOutputError("Prose.")], [made("code")]
    result = await phased.plan(planning(catalogue))
    assert result.value.goal == "code"
    assert result.degraded is not None


@pytest.mark.parametrize("more", [{"design": DesignForm(name="Desk")}, {"new_name": "Desk"}])
async def test_what_says_everything_needs_no_model(more: dict[str, Any], catalogue: NodeStore) -> None:
    phased, model, code = reasoner(intent("model"), intent("code"))
    code.plans = [made("code")]
    result = await phased.plan(planning(catalogue, **more))
    assert (result.value.goal, result.degraded) == ("code", None)
    assert model.seen["plan"] == []


def patching(catalogue: NodeStore, **more: Any) -> PatchRequest:
    return PatchRequest(requirement="a bot", plan=made("x"), nodes=catalogue, by_form=True, **more)


async def test_the_ops_of_a_form_need_no_model(catalogue: NodeStore) -> None:
    phased, model, code = reasoner(intent("model"), intent("code"))
    code.patches = [OpsAnswer()]
    result = await phased.patch(patching(catalogue))
    assert (result.value, result.degraded) == (OpsAnswer(), None)
    assert model.seen["patch"] == []


OPEN = ModelOutputError("The plan does not say how 'a' is connected.")
WRONG = Finding(code="UNKNOWN_PARAM", severity="error", detail="There is no such field.")


@pytest.mark.parametrize(("by_code", "more"), [(OPEN, {}), (OpsAnswer(), {"findings": (WRONG,)})])
async def test_a_model_says_what_a_form_leaves_open(by_code: Any, more: dict[str, Any], catalogue: NodeStore) -> None:
    phased, model, code = reasoner(intent("model"), intent("code"), REASONING_FALLBACK_ENABLED="false")
    model.patches, code.patches = [OpsAnswer()], [by_code]
    assert (await phased.patch(patching(catalogue, **more))).degraded is None
    assert len(model.seen["patch"]) == 1
