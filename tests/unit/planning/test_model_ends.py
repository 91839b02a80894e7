"""A plan's models that end: replaced where nobody chose them, told where somebody did."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import pytest

from flowise_dev_agent.forms.offer import Offer
from flowise_dev_agent.forms.plan import plan_of
from flowise_dev_agent.knowledge.model_ends import UsedModel, ending, newest
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, GraphIR, PatchOp, compile_ops
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.model_ends import (
    current_models,
    default_models,
    ending_models,
    is_asked_for,
    models_after,
)
from flowise_dev_agent.planning.pipeline import Review
from flowise_dev_agent.planning.requests import ServerNames
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedNode, PlannedValue
from tests.support.requests import UPDATE, plan_request

DAY = date(2026, 11, 28)
LISTS = {
    "chatOpenAI": ["gpt-5.5", "gpt-5.4", "gpt-5.4-mini", "gpt-4o-mini", "gpt-4o"],
    "chatAnthropic": ["claude-opus-4-7", "claude-sonnet-5-5", "claude-sonnet-4-6", "claude-haiku-4-5"],
    "openAIEmbeddings": ["text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002"],
}


@dataclass
class Lookups:
    """A server with these lists of models."""

    nodes: NodeStore
    lists: dict[str, list[str]] = field(default_factory=lambda: LISTS)

    async def planned_models(self, plan: Plan, base: GraphIR, *, ending_only: bool) -> list[UsedModel]:
        found: list[UsedModel] = []
        for use in models_after(plan, base, self.nodes.schemas):
            options = self.lists.get(use.component, [])
            end = ending(use.component, use.model, DAY, options)
            if end or not ending_only:
                found.append(UsedModel(use, end, newest(use.component, use.model, options, DAY)))
        return found

    async def document_stores(self) -> list[DocumentStoreView]:
        return []

    async def names(self, with_models: Sequence[str]) -> ServerNames:
        del with_models
        return ServerNames()

    async def review_plan(self, plan: Plan, base: GraphIR) -> list[Any]:
        return []

    async def measure_stores(self, plan: Plan) -> Plan:
        return plan


def chain(*values: PlannedValue, node: str = "chatOpenAI") -> Plan:
    nodes = [PlannedNode(node_id=f"{name}_0", node_name=name, purpose="") for name in ("llmChain", node)]
    return Plan(goal="A bot", operation="create", flow_name="Bot", nodes=nodes, values=[*values])


def model(name: str, node_id: str = "chatOpenAI_0", param: str = "modelName") -> PlannedValue:
    return PlannedValue(node_id=node_id, param=param, value=name)


def context(nodes: NodeStore, plan: Plan, words: str = "A chatbot", **more: Any) -> PlanContext:
    lists = more.pop("lists", LISTS)
    by_form = more.pop("by_form", False)
    return PlanContext(
        plan=plan, request=plan_request(nodes, words, **more), lookups=Lookups(nodes, lists), by_form=by_form
    )


def told(plan: Plan) -> list[tuple[str, str, object]]:
    return [(one.code, one.where, one.params.get("replacement")) for one in plan.findings]


async def test_a_model_left_at_the_default_becomes_the_servers_newest_of_its_size(catalogue: NodeStore) -> None:
    done = (await current_models(context(catalogue, chain()))).plan
    assert [(one.node_id, one.param, one.value) for one in done.values] == [
        ("chatOpenAI_0", "modelName", "gpt-5.4-mini")
    ]
    assert done.findings == []


async def test_a_model_that_ends_and_that_nobody_asked_for_is_replaced_without_another_call(
    catalogue: NodeStore,
) -> None:
    reviewed = await Review(Lookups(catalogue, LISTS))(chain(model("gpt-4o")), plan_request(catalogue, "A chatbot"))
    assert not [one for one in reviewed.problems if "MODEL_END" in one]
    assert told(reviewed.plan) == []
    assert [one.value for one in reviewed.plan.values] == ["gpt-5.5"]


async def test_a_model_gives_way_by_itself_only_to_one_of_its_brand(catalogue: NodeStore) -> None:
    plan = chain(model("llama-3.3-70b-versatile", "groqChat_0"), node="groqChat")
    lookups = Lookups(catalogue, {"groqChat": ["openai/gpt-oss-120b"]})
    reviewed = await Review(lookups)(plan, plan_request(catalogue, "A chatbot on groq llama"))
    (problem,) = [one for one in reviewed.problems if "MODEL_END" in one]
    assert "`assumed`" in problem
    assert "openai/gpt-oss-120b" in problem
    assert [one.value for one in reviewed.plan.values] == ["llama-3.3-70b-versatile"]


async def test_a_model_that_the_flow_has_stays_in_a_new_step_too_and_is_told(catalogue: NodeStore) -> None:
    ops: list[PatchOp] = [AddNode(node_name="chatOpenAI", node_id="chatOpenAI_1", params={"modelName": "gpt-4o"})]
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    given = context(catalogue, chain(model("gpt-4o")), "One more with the same model", flow=flow)
    done = (await ending_models(await current_models(given))).plan
    assert [one.value for one in done.values] == ["gpt-4o"]
    assert told(done) == [("MODEL_ENDS", "chatOpenAI_0", "gpt-5.5")]


async def test_a_model_that_the_person_asked_for_stays_and_is_told(catalogue: NodeStore) -> None:
    words, plan = "A support bot with GPT-4o", chain(model("gpt-4o"))
    reviewed = await Review(Lookups(catalogue))(plan, plan_request(catalogue, words))
    assert not [one for one in reviewed.problems if "MODEL_END" in one]
    done = await ending_models(context(catalogue, reviewed.plan, words))
    assert [one.value for one in done.plan.values] == ["gpt-4o"]
    assert told(done.plan) == [("MODEL_ENDS", "chatOpenAI_0", "gpt-5.5")]
    (finding,) = done.plan.findings
    assert (finding.severity, finding.params["day"]) == ("warning", "2027-01-14")


SONNETS = ("claude-sonnet-4-6", "claude-sonnet-4-8-20261001", "claude-3-5-sonnet-20241022", "claude-haiku-4-5")


@pytest.mark.parametrize(
    ("words", "planned", "asked"),
    [
        ("Use claude sonnet 4.8", "claude-sonnet-4-6", True),
        ("Use claude sonnet 4.8", "claude-sonnet-4-8-20261001", False),
        ("Use Claude Sonnet", "claude-sonnet-4-6", False),
        # One that has ended works no longer.
        ("Use Claude 3.5 Sonnet", "claude-sonnet-4-6", False),
        ("Sort with Claude Haiku 4.5, write with the best Sonnet", "claude-sonnet-4-6", False),
    ],
)
async def test_another_version_than_the_named_one_goes_back(
    words: str, planned: str, *, asked: bool, catalogue: NodeStore
) -> None:
    plan = chain(model(planned, "chatAnthropic_0"), node="chatAnthropic")
    lists = ServerNames(models={"chatAnthropic": SONNETS})
    given = context(catalogue, plan, words)
    given = replace(given, request=replace(given.request, server=lists))
    problems = (await current_models(given)).problems
    assert ["claude-sonnet-4-8-20261001" in one for one in problems] == [True] * asked


async def test_what_is_told_already_is_not_told_twice(catalogue: NodeStore) -> None:
    once = await ending_models(context(catalogue, chain(model("gpt-4o"))))
    assert len((await ending_models(once)).plan.findings) == 1


@pytest.mark.parametrize(
    "values",
    [
        [model("chatOpenAI", "llmAgentflow_0", "llmModel")],
        [model("chatOpenAI", "llmAgentflow_0", "llmModel"),
         PlannedValue(node_id="llmAgentflow_0", param="llmModelConfig", value={"temperature": 0.2})],
    ],
    ids=["no settings", "other settings"],
)  # fmt: skip
async def test_the_default_of_a_model_in_a_step_is_replaced_too(
    values: list[PlannedValue], catalogue: NodeStore
) -> None:
    nodes = [
        PlannedNode(node_id=f"{name}_0", node_name=name, purpose="") for name in ("startAgentflow", "llmAgentflow")
    ]
    plan = Plan(goal="A bot", operation="create", flow_name="Bot", flow_kind="AGENTFLOW", nodes=nodes, values=values)
    done = (await current_models(context(catalogue, plan))).plan
    assert [one.model for one in models_after(done, GraphIR.empty(), catalogue.schemas)] == ["gpt-5.4-mini"]
    assert done.findings == []


async def test_a_model_that_ends_is_replaced_in_a_step_too(catalogue: NodeStore) -> None:
    value = PlannedValue(node_id="llmAgentflow_0", param="llmModelConfig", value={"modelName": "gpt-4o"})
    nodes = [PlannedNode(node_id="llmAgentflow_0", node_name="llmAgentflow", purpose="")]
    values = [model("chatOpenAI", "llmAgentflow_0", "llmModel"), value]
    plan = Plan(goal="A bot", operation="create", flow_name="Bot", flow_kind="AGENTFLOW", nodes=nodes, values=values)
    done = (await current_models(context(catalogue, plan))).plan
    assert done.values[1].value == {"modelName": "gpt-5.5"}
    assert told(done) == []


@pytest.mark.parametrize(
    ("said", "node", "expected"),
    [
        (None, "chatOpenAI", "gpt-5.4-mini"),
        ("OpenAI", "chatOpenAI", "gpt-5.4-mini"),
        ("gpt-4o", "chatOpenAI", "gpt-4o"),
        ("Claude Sonnet", "chatAnthropic", "claude-sonnet-5-5"),
        ("claude-sonnet-4-6", "chatAnthropic", "claude-sonnet-4-6"),
        ("Anthropic", "chatAnthropic", "claude-haiku-4-5"),
    ],
)
async def test_a_form_gets_the_servers_newest_model_unless_it_names_one(
    said: str | None, node: str, expected: str, catalogue: NodeStore
) -> None:
    form = DesignForm(name="Help", kind="chat", model=said)
    plan = plan_of(form, Offer(catalogue))
    done = (await current_models(context(catalogue, plan, form.as_text(), by_form=True))).plan
    (use,) = models_after(done, GraphIR.empty(), catalogue.schemas)
    assert (use.component, use.model) == (node, expected)
    assert (done.steps, done.texts) == (plan.steps, plan.texts)
    assert [*map(type, done.steps)] == [*map(type, plan.steps)]
    assert done.findings == []
    assert told((await ending_models(context(catalogue, done, by_form=True))).plan) == (
        [("MODEL_ENDS", f"{node}_0", "gpt-5.5")] if expected == "gpt-4o" else []
    )


async def test_embeddings_that_go_on_stay_as_they_are(catalogue: NodeStore) -> None:
    nodes = [PlannedNode(node_id="openAIEmbeddings_0", node_name="openAIEmbeddings", purpose="")]
    plan = Plan(goal="A bot", operation="create", flow_name="Bot", nodes=nodes)
    assert (await current_models(context(catalogue, plan, by_form=True))).plan == plan


async def test_without_a_list_the_default_that_ends_is_told(catalogue: NodeStore) -> None:
    done = (await current_models(context(catalogue, chain(), lists={}))).plan
    assert done.values == []
    assert [one.code for one in done.findings] == ["MODEL_ENDS"]


async def test_a_node_that_the_plan_leaves_alone_is_not_told(catalogue: NodeStore) -> None:
    ops = [AddNode(node_name=name, node_id=f"{name}_0") for name in ("llmChain", "chatOpenAI")]
    flow = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    nodes = [PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="", existing=True)]
    warmer = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.7)
    plan = Plan(goal="A bot", operation="update", flow_name="Bot", nodes=nodes, values=[warmer])
    more: Any = {"intent": UPDATE, "flow": GraphView(flow)}
    assert (await ending_models(context(catalogue, plan, **more))).plan == plan
    changed = plan.model_copy(update={"values": [warmer, model("gpt-4.1")]})
    assert told((await ending_models(context(catalogue, changed, **more))).plan) == [
        ("MODEL_ENDS", "chatOpenAI_0", "gpt-5.5")
    ]


async def test_a_model_that_is_gone_is_told_also_of_a_node_that_the_plan_leaves_alone(catalogue: NodeStore) -> None:
    ops: list[PatchOp] = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="chatAnthropic", node_id="chatAnthropic_0", params={"modelName": "claude-3-haiku-20240307"}),
    ]
    nodes = [PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="", existing=True)]
    warmer = PlannedValue(node_id="chatOpenAI_0", param="temperature", value=0.7)
    plan = Plan(goal="A bot", operation="update", flow_name="Bot", nodes=nodes, values=[warmer])
    flow = GraphView(compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph)
    given = context(catalogue, plan, intent=UPDATE, flow=flow)
    assert [one[:2] for one in told((await ending_models(given)).plan)] == [("MODEL_ENDED", "chatAnthropic_0")]


async def test_the_words_of_the_plan_name_the_model_that_takes_the_place_of_another(catalogue: NodeStore) -> None:
    said = {
        "steps": ["The model is set as GPT 4o; gpt-4o-mini is not."],
        "parts": [Part(id="p1", quote="a good model", state="assumed", reason="gpt-4o, as none is named")],
    }
    done = (await current_models(context(catalogue, chain(model("gpt-4o")).model_copy(update=said)))).plan
    assert [one.value for one in done.values] == ["gpt-5.5"]
    assert done.steps == ["The model is set as gpt-5.5; gpt-4o-mini is not."]
    assert [one.reason for one in done.parts] == ["gpt-5.5, as none is named"]
    assert told(done) == []


@pytest.mark.parametrize(
    ("words", "lists", "expected"),
    [
        ("with gemini flash", ["gemini-3-pro", "gemini-3-flash-preview", "gemini-2.5-flash"], "gemini-3-flash-preview"),
        ("with gemini flash", ["gemini-3-pro", "gemini-2.5-flash"], None),
        ("with gemini", ["gemini-3-pro", "gemini-2.5-flash"], "gemini-3-pro"),
        ("with gemini 2.5 flash", ["gemini-3-flash-preview", "gemini-2.5-flash"], "gemini-2.5-flash"),
    ],
    ids=["newest of the name", "none of the name", "a brand alone", "a version"],
)
async def test_a_model_named_without_a_version_is_the_newest_of_its_name(
    words: str, lists: list[str], expected: str | None, catalogue: NodeStore
) -> None:
    node = "chatGoogleGenerativeAI"
    plan = chain(model("gemini-2.5-flash", f"{node}_0"), node=node)
    plan = plan.model_copy(update={"steps": ["Gemini Flash is set as gemini-2.5-flash."]})
    done = (await current_models(context(catalogue, plan, words, lists={node: lists}))).plan
    assert [one.value for one in done.values] == [expected or "gemini-2.5-flash"]
    assert done.steps == [f"Gemini Flash is set as {expected or 'gemini-2.5-flash'}."]
    assert bool(told(done)) is (expected is None)


async def test_a_plan_that_builds_nothing_is_left_alone(catalogue: NodeStore) -> None:
    declined = chain().model_copy(update={"declined": "No."})
    assert (await current_models(context(catalogue, declined))).plan == declined


@pytest.mark.parametrize(
    ("id_", "words", "asked"),
    [
        ("gpt-4o", "Build it with GPT-4o, please", True),
        ("gpt-4o", "use gpt 4o.", True),
        ("gpt-4o", "use gpt-4o-mini", False),
        ("gpt-4o", "use GPT-4o mini", False),
        ("gpt-4o", "the snapshot gpt-4o-2024-08-06", False),
        ("gpt-4o-mini", "GPT4o-mini", True),
        ("gpt-4", "GPT-4.1", False),
        ("gpt-4", "GPT-4", True),
        ("claude-sonnet-4-5", "Claude 4.5 Sonnet", True),
        ("claude-sonnet-4-5", "sonnet 4.5", True),
        ("claude-sonnet-4-5", "Claude Sonnet", False),
        ("claude-3-5-haiku-latest", "claude 3.5 haiku", True),
        ("openai/gpt-oss-120b", "gpt-oss-120b on Groq", True),
        ("gpt-4o", "", False),
    ],
)
def test_a_model_is_asked_for_by_its_own_name_only(id_: str, words: str, *, asked: bool) -> None:
    assert is_asked_for(id_, [words]) is asked


def test_a_default_model_is_written_into_the_plan_of_a_new_node(catalogue: NodeStore) -> None:
    default = catalogue.schemas["chatOpenAI"].defaults["modelName"]
    done = default_models(context(catalogue, chain())).plan
    assert [(one.node_id, one.param, one.value) for one in done.values] == [("chatOpenAI_0", "modelName", default)]
    chosen = chain(model("gpt-5.4"))
    assert default_models(context(catalogue, chosen)).plan == chosen
