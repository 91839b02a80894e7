"""One mode per phase, one try in the other one, and never silently."""

from typing import Any

import pytest

from flowise_dev_agent.errors import ModelAuthError, ModelOutputError, ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning import PhasedReasoner, ReasoningSettings
from flowise_dev_agent.reasoning.contracts import ClassifyRequest, Intent, Usage
from tests.unit.agent.rig import Script

REQUEST = ClassifyRequest(requirement="a bot")


def intent(title: str) -> Intent:
    return Intent(operation="create", ambiguity=0, title=title)


def reasoner(model: Any, rules: Any, **settings: Any) -> tuple[PhasedReasoner, Script, Script]:
    sides = Script(), Script()
    for side, answer in zip(sides, (model, rules), strict=True):
        side.intents = [answer]
    chosen = ReasoningSettings(_env_file=None, OPENAI_API_KEY="k", **settings)  # type: ignore[call-arg]
    return PhasedReasoner(*sides, chosen), *sides


async def test_a_phase_runs_in_the_mode_of_the_settings() -> None:
    phased, _, rules = reasoner(intent("model"), intent("rules"))
    assert (await phased.classify(REQUEST)).value.title == "model"
    assert rules.seen["classify"] == []
    phased, model, _ = reasoner(intent("model"), intent("rules"), REASONING_MODE_CLASSIFY="deterministic")
    assert (await phased.classify(REQUEST)).value.title == "rules"
    assert model.seen["classify"] == []


@pytest.mark.parametrize("error", [ModelUnavailableError("The provider is down."), ModelOutputError("Prose.")])
async def test_when_the_model_gives_up_the_rules_answer_once_and_the_result_says_so(error: Exception) -> None:
    phased, _, rules = reasoner(error, intent("rules"))
    result = await phased.classify(REQUEST)
    assert result.value.title == "rules"
    assert result.degraded is not None
    assert (result.degraded.failed_mode, result.degraded.fallback_mode) == ("llm_guided", "deterministic")
    assert result.degraded.reason == str(error)
    assert len(rules.seen["classify"]) == 1


async def test_what_the_failed_tries_cost_is_counted() -> None:
    spent = Usage(model_calls=2, input_tokens=100)
    phased, _, rules = reasoner(ModelOutputError("Prose.", details={"usage": spent.model_dump()}), intent("rules"))
    rules.usage = Usage()
    assert (await phased.classify(REQUEST)).usage == spent


async def test_when_both_fail_the_first_error_stands_and_there_is_no_second_hop() -> None:
    phased, model, rules = reasoner(ModelUnavailableError("Down."), ModelOutputError("No rule."))
    with pytest.raises(ModelUnavailableError, match="Down"):
        await phased.classify(REQUEST)
    assert (len(model.seen["classify"]), len(rules.seen["classify"])) == (1, 1)


async def test_without_fallback_the_failure_stands() -> None:
    phased, _, rules = reasoner(ModelOutputError("Prose."), intent("rules"), REASONING_FALLBACK_ENABLED="false")
    with pytest.raises(ModelOutputError):
        await phased.classify(REQUEST)
    assert rules.seen["classify"] == []


async def test_a_refused_key_is_not_covered_up() -> None:
    phased, _, rules = reasoner(ModelAuthError("The key is refused."), intent("rules"))
    with pytest.raises(ModelAuthError):
        await phased.classify(REQUEST)
    assert rules.seen["classify"] == []


def test_node_types_are_suggested_by_the_rules_whatever_the_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    phased, _, rules = reasoner(intent("model"), intent("rules"))
    monkeypatch.setattr(rules, "suggest_node_types", lambda *given: [given[0]])
    assert phased.suggest_node_types("pinecone", NodeStore.from_snapshot(), {}) == ["pinecone"]
