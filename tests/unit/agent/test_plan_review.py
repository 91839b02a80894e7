"""What code tries of a plan before the person sees it."""
# pyright: reportArgumentType=false

from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import AddNode, Connect, Finding, GraphIR, OptionEntry, compile_ops
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.details import plan_details
from flowise_dev_agent.planning.passes.feasibility import lacking_variables, reviewed
from flowise_dev_agent.planning.passes.started_tests import started_tests
from flowise_dev_agent.planning.passes.target import target
from flowise_dev_agent.planning.pipeline import OF_FORM, OF_PROPOSAL, Review
from flowise_dev_agent.planning.values import with_files_to_come
from flowise_dev_agent.schemas.plan import Criterion, Expectation, Part, Plan, PlannedNode, PlannedValue, TestCase
from tests.support.requests import UPDATE, plan_request
from tests.unit.agent.rig import BenchFlowise, plan
from tests.unit.agent.test_update import made_for

STORE = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
GONE = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c009"


class Server(BenchFlowise):
    """Lists the same options for every field."""

    def __init__(self, *names: str, variables: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.names: tuple[str, ...] | None = names
        self.variables = [{"name": one} for one in variables]
        self.lists: list[str] = []

    async def node_options(self, name: str, method: str, **sent: Any) -> list[OptionEntry]:
        self.lists.append(f"{name}.{method}")
        assert not sent
        if self.names is None:
            raise FlowiseServerError("down")
        return [{"name": one, "label": f"Title of {one}"} for one in self.names]


class Lookups:
    """The review of a plan by this server."""

    def __init__(self, server: Server, catalogue: NodeStore) -> None:
        self._server, self._schemas = server, catalogue.schemas

    async def review_plan(self, plan: Plan, base: GraphIR) -> list[Finding]:
        return await reviewed(plan, base, self._schemas, self._server)


def node(id_: str, **more: Any) -> PlannedNode:
    return PlannedNode(node_id=id_, node_name=id_.rpartition("_")[0], purpose="x", **more)


def planned(*ids: str, values: dict[str, Any] | None = None, **more: Any) -> Plan:
    found = [
        PlannedValue(node_id=place.partition(".")[0], param=place.partition(".")[2], value=value)
        for place, value in (values or {}).items()
    ]
    kind = "AGENTFLOW" if any(id_.partition("_")[0].endswith("Agentflow") for id_ in ids) else "CHATFLOW"
    whole: dict[str, Any] = {
        "goal": "x",
        "operation": "create",
        "flow_name": "x",
        "flow_kind": kind,
        "nodes": [node(id_) for id_ in ids],
    }
    return Plan(**{**whole, "values": found, **more})


async def review(
    plan: Plan, catalogue: NodeStore, *, base: GraphIR | None = None, server: Server | None = None
) -> list[Finding]:
    found = await reviewed(plan, base or GraphIR.empty(), catalogue.schemas, server or Server())
    # As the state of the session reads them again.
    assert [Finding.model_validate(one.model_dump(mode="json")) for one in found] == found
    return found


def codes(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(one.code, one.where, one.field) for one in findings]


RETRIEVAL = ("conversationalRetrievalQAChain_0", "chatOpenAI_0", "memoryVectorStore_0", "openAIEmbeddings_0")


@pytest.mark.parametrize(
    ("nodes", "values", "found"),
    [
        (("conversationChain_0", "bufferMemory_0"), {}, ("INPUT_NOT_FED", "conversationChain_0", "model")),
        (RETRIEVAL, {}, ("INPUT_NOT_FED", "memoryVectorStore_0", "document")),
        (("cheerioWebScraper_0",), {}, ("REQUIRED_PARAM_MISSING", "cheerioWebScraper_0", "url")),
        (
            (*RETRIEVAL, "plainText_0"),
            {f"{RETRIEVAL[0]}.responsePrompt": "Answer the question.", "plainText_0.text": "x"},
            ("PROMPT_VALUE_MISSING", RETRIEVAL[0], "responsePrompt"),
        ),
        (
            ("chatOpenAI_0",),
            {"chatOpenAI_0.temperature": "cold"},
            ("NOT_A_NUMBER", "chatOpenAI_0", "temperature"),
        ),
        (
            ("startAgentflow_0", "llmAgentflow_0"),
            {"startAgentflow_0.startInputType": "chatInput"},
            ("REQUIRED_PARAM_MISSING", "llmAgentflow_0", "llmModel"),
        ),
    ],
    ids=["model", "loader", "address", "variable of a prompt", "number", "model of a step"],
)
async def test_what_a_plan_lacks_is_found_before_the_approval(
    nodes: tuple[str, ...], values: dict[str, Any], found: tuple[str, str, str], catalogue: NodeStore
) -> None:
    findings = await review(planned(*nodes, values=values), catalogue)
    (finding,) = [one for one in findings if (one.code, one.where, one.field) == found]
    assert (finding.severity, finding.op_index) == ("warning", None)
    assert finding.hint


async def test_a_retriever_without_a_vector_store_is_found_before_the_approval(catalogue: NodeStore) -> None:
    lacking = planned(*RETRIEVAL[:2], "HydeRetriever_0")
    found = codes(await review(lacking, catalogue))
    assert ("INPUT_NOT_FED", "HydeRetriever_0", "vectorStore") in found
    assert not [one for one in found if one[1] == RETRIEVAL[0]]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (
            {
                "httpAgentflow_0.url": "https://api.example/notes",
                "httpAgentflow_0.method": "POST",
                "httpAgentflow_0.bodyType": "json",
                "httpAgentflow_0.body": '{"note": "{{ question }}"}',
            },
            "HTTP_BODY_BREAKS",
        ),
        (
            {
                "startAgentflow_0.startInputType": "webhookTrigger",
                "httpAgentflow_0.url": "https://api.example/{{ $webhook.body.id }}",
            },
            "WEBHOOK_FIELD_OPTIONAL",
        ),
    ],
)
async def test_p117_a_remark_on_a_planned_value_is_told_with_the_plan(
    values: dict[str, Any], code: str, catalogue: NodeStore
) -> None:
    found = await review(planned("startAgentflow_0", "httpAgentflow_0", values=values), catalogue)
    assert [one.code for one in found if one.where == "httpAgentflow_0"] == [code]


@pytest.mark.parametrize(
    ("nodes", "values"),
    [
        (
            (*RETRIEVAL, "cheerioWebScraper_0"),
            {"cheerioWebScraper_0.url": "https://example.org", "chatOpenAI_0.modelName": "gpt-4o-mini"},
        ),
        (("pdfFile_0",), {}),
        (
            ("startAgentflow_0", "llmAgentflow_0"),
            {"llmAgentflow_0.llmModel": "chatOpenAI", "llmAgentflow_0.llmEnableMemory": False},
        ),
    ],
    ids=["complete", "a file that the person gives", "instructions that are written later"],
)
async def test_a_plan_that_lacks_nothing_has_no_findings(
    nodes: tuple[str, ...], values: dict[str, Any], catalogue: NodeStore
) -> None:
    assert await review(planned(*nodes, values=values), catalogue) == []


def chain_with_model(catalogue: NodeStore) -> GraphIR:
    ops = [
        AddNode(node_name="chatOpenAI", node_id="chatOpenAI_0"),
        AddNode(node_name="conversationChain", node_id="conversationChain_0"),
        Connect(source_node_id="chatOpenAI_0", target_node_id="conversationChain_0", target_anchor="model"),
    ]
    return compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph


async def test_a_source_that_is_removed_without_a_replacement_is_found(catalogue: NodeStore) -> None:
    base = chain_with_model(catalogue)
    gone = planned(removals=["chatOpenAI_0"], operation="update")
    assert codes(await review(gone, catalogue, base=base)) == [("INPUT_NOT_FED", "conversationChain_0", "model")]
    replaced = planned("chatAnthropic_0", removals=["chatOpenAI_0"], operation="update")
    assert await review(replaced, catalogue, base=base) == []


async def test_what_the_flow_lacked_before_is_not_the_plan_s_task(catalogue: NodeStore) -> None:
    ops = [AddNode(node_name="conversationChain", node_id="conversationChain_0")]
    base = compile_ops(GraphIR.empty(), ops, catalogue.schemas).graph
    assert await review(planned("bufferMemory_0", operation="update"), catalogue, base=base) == []


async def test_a_document_store_that_the_server_lacks_is_found_with_those_that_it_has(catalogue: NodeStore) -> None:
    server = Server(STORE)
    wanted = planned("documentStoreVS_0", values={"documentStoreVS_0.selectedStore": GONE})
    (finding,) = await review(wanted, catalogue, server=server)
    assert codes([finding]) == [("NOT_ON_THE_SERVER", "documentStoreVS_0", "selectedStore")]
    assert f"{STORE} (Title of {STORE})" in finding.hint
    # A placeholder stands for what the person will make and choose.
    for chosen in (STORE, "[PLACEHOLDER: the store of the manuals]"):
        there = planned("documentStoreVS_0", values={"documentStoreVS_0.selectedStore": chosen})
        assert await review(there, catalogue, server=server) == []


@pytest.mark.parametrize(("stores", "asks"), [((STORE,), True), ((), False)])
async def test_a_store_that_the_plan_leaves_open_gets_a_placeholder_or_a_question_with_the_names(
    stores: tuple[str, ...], catalogue: NodeStore, *, asks: bool
) -> None:
    (finding,) = await review(planned("documentStoreVS_0"), catalogue, server=Server(*stores))
    assert finding.code == "NOT_ON_THE_SERVER"
    assert "a placeholder" in finding.hint
    assert ((STORE in finding.hint), ("`declined`" in finding.hint)) == (asks, asks)


@pytest.mark.parametrize(
    ("id_", "values", "field", "listed"),
    [
        ("executeFlowAgentflow_0", {"executeFlowSelectedFlow": GONE}, "executeFlowSelectedFlow", "listFlows"),
        (
            "agentAgentflow_0",
            {
                "agentModel": "chatOpenAI",
                "agentKnowledgeDocumentStores": [{"documentStore": f"{GONE}:x", "docStoreDescription": "x"}],
            },
            "agentKnowledgeDocumentStores[0].documentStore",
            "listStores",
        ),
        (
            "toolAgentflow_0",
            {"toolAgentflowSelectedTool": "customTool", "toolAgentflowSelectedToolConfig.selectedTool": GONE},
            "toolAgentflowSelectedToolConfig.selectedTool",
            "listTools",
        ),
        ("customTool_0", {"selectedTool": GONE}, "selectedTool", "listTools"),
        ("ChatflowTool_0", {"selectedChatflow": GONE, "name": "x"}, "selectedChatflow", "listChatflows"),
    ],
    ids=["flow of a step", "store of an agent", "tool of a step", "custom tool", "flow as a tool"],
)
async def test_what_the_plan_takes_from_the_server_is_looked_up(
    id_: str, values: dict[str, Any], field: str, listed: str, catalogue: NodeStore
) -> None:
    server = Server(STORE)
    wanted = planned(id_, values={f"{id_}.{name}": value for name, value in values.items()})
    found = await review(wanted, catalogue, server=server)
    assert ("NOT_ON_THE_SERVER", id_, field) in codes(found)
    assert [one.rpartition(".")[2] for one in server.lists] == [listed]


def reading_variables(**more: Any) -> Plan:
    reply = "directReplyAgentflow_0"
    values = {f"{reply}.directReplyMessage": "{{ $vars.region }} and {{ $vars.country }}"}
    asked = Part(id="p1", quote="the country", state="covered", nodes=[reply], values=[*values])
    return planned("startAgentflow_0", reply, values=values, parts=[asked], **more)


async def test_a_variable_that_the_server_lacks_is_for_the_person_to_create(catalogue: NodeStore) -> None:
    server = Server(variables=("region",))
    (finding,) = await review(reading_variables(), catalogue, server=server)
    assert (finding.code, finding.params["name"]) == ("VARIABLE_TO_CREATE", "country")
    found = reading_variables(findings=[finding])
    result = await Review()(found, plan_request(catalogue))
    # A plan of a form names it, too.
    asked = PlanContext(plan=reading_variables(), request=plan_request(catalogue), lookups=Lookups(server, catalogue))
    assert codes((await lacking_variables(asked)).plan.findings) == codes([finding])
    # Neither another answer of the model nor a part less.
    assert result.problems == ()
    assert [part.state for part in result.plan.parts] == ["covered"]


async def test_what_only_the_server_s_operator_can_allow_is_told_with_the_plan(catalogue: NodeStore) -> None:
    wanted = planned("faiss_0", values={"faiss_0.basePath": "/data/guide"})
    told = [one for one in await review(wanted, catalogue) if one.code == "SERVER_SETTING_NEEDED"]
    assert [(one.where, one.field, one.params["setting"]) for one in told] == [
        ("faiss_0", "basePath", "BLOB_STORAGE_PATH")
    ]
    result = await Review()(wanted.model_copy(update={"findings": told}), plan_request(catalogue))
    assert (result.problems, result.plan.findings) == ((), told)


async def test_a_store_that_the_server_may_not_run_is_told_unless_the_flow_has_it(catalogue: NodeStore) -> None:
    wanted = planned("faiss_0", values={"faiss_0.basePath": "guide"})
    (told,) = [one for one in await review(wanted, catalogue) if one.code == "SERVER_PACKAGE_NEEDED"]
    assert (told.severity, told.where, told.params["package"]) == ("warning", "faiss_0", "faiss-node")
    result = await Review()(wanted.model_copy(update={"findings": [told]}), plan_request(catalogue))
    assert (result.problems, result.plan.findings) == ((), [told])
    base = compile_ops(GraphIR.empty(), [AddNode(node_name="faiss", node_id="faiss_1")], catalogue.schemas).graph
    assert "SERVER_PACKAGE_NEEDED" not in [one.code for one in await review(wanted, catalogue, base=base)]
    other = planned("memoryVectorStore_0")
    assert "SERVER_PACKAGE_NEEDED" not in [one.code for one in await review(other, catalogue)]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("The app passes the country in overrideConfig.vars.", "not_possible"),
        ('The app sends {"overrideConfig": {"vars": {"country": "x"}}}.', "not_possible"),
        ("The app passes overrideConfig.sessionId.", "covered"),
    ],
)
async def test_a_variable_cannot_be_filled_by_callers(words: str, state: str, catalogue: NodeStore) -> None:
    result = await Review()(reading_variables(), plan_request(catalogue, requirement=words))
    assert {one.code for one in result.plan.findings} == (set() if state == "covered" else {"VARIABLE_NOT_BY_CALLER"})
    assert [part.state for part in result.plan.parts] == [state]
    assert bool(result.problems) == (state == "not_possible")


async def test_a_plain_plan_asks_the_server_nothing(catalogue: NodeStore) -> None:
    server = Server()
    await review(planned("conversationChain_0", "chatOpenAI_0", "bufferMemory_0"), catalogue, server=server)
    assert server.lists == []


async def test_a_server_that_cannot_tell_is_no_reason_for_a_finding(catalogue: NodeStore) -> None:
    server = Server()
    server.names = None
    wanted = planned("documentStoreVS_0", values={"documentStoreVS_0.selectedStore": GONE})
    assert await review(wanted, catalogue, server=server) == []


async def test_the_reasoner_gets_the_review_with_its_request() -> None:
    bench = made_for("create")
    await bench.start()
    (request,) = bench.reasoner.seen["plan"]
    chain = plan(nodes=[node("conversationChain_0")])
    reviewed = await request.review(chain, request)
    assert ("INPUT_NOT_FED", "conversationChain_0", "model") in codes(reviewed.plan.findings)


async def test_what_the_prompt_tells_to_write_is_no_finding(catalogue: NodeStore) -> None:
    values = {
        "promptTemplate_0.template": "Make a title of {x}",
        "promptTemplate_0.promptValues": {"x": "{{llmChain_0.data.instance}}"},
    }
    chained = planned("llmChain_0", "chatOpenAI_0", "promptTemplate_0", values=values)
    assert "REF_WITHOUT_EDGE" not in [one.code for one in await review(chained, catalogue)]
    page = planned("cheerioWebScraper_0")
    assert ("REQUIRED_PARAM_MISSING", "cheerioWebScraper_0", "url") in codes(await review(page, catalogue))
    promised = page.model_copy(update={"placeholders": ["the address of the page"]})
    assert await review(promised, catalogue) == []
    (stand_in,) = with_files_to_come(promised, catalogue.schemas).values
    assert (stand_in.param, stand_in.value) == ("url", "[PLACEHOLDER: the address of the page]")


def test_p119_the_kind_of_a_flow_that_is_changed_is_known_before_any_check(catalogue: NodeStore) -> None:
    assert OF_PROPOSAL[0] is target
    assert OF_FORM[0] is target
    given = planned("llmAgentflow_0").model_copy(update={"flow_kind": "CHATFLOW"})
    request = plan_request(catalogue, intent=UPDATE, target="Bot", target_kind="AGENTFLOW")
    assert target(PlanContext(plan=given, request=request)).plan.flow_kind == "AGENTFLOW"


@pytest.mark.parametrize(
    ("words", "name", "new_name"),
    [
        ('Rename it to "Social Post Writer", and 5 hashtags', "Social Post Writer", "Social Post Writer"),
        ("5 hashtags instead of 3", "Post writer with 5 hashtags", None),
        ("Make Post Writer answer in German", "post writer", None),
    ],
)
def test_a_change_takes_the_name_that_the_person_wrote_and_no_other(
    catalogue: NodeStore, words: str, name: str, new_name: str | None
) -> None:
    given = planned("llmChain_0").model_copy(update={"flow_name": name})
    request = plan_request(catalogue, words, intent=UPDATE, target="Post Writer", target_kind="CHATFLOW")
    plan = target(PlanContext(plan=given, request=request)).plan
    assert (plan.flow_name, plan.new_name) == ("Post Writer", new_name)
    allowed = plan_details(plan, GraphIR.empty(), schemas=catalogue.schemas).allows
    assert [one for one in allowed if "Social Post Writer" in one] == allowed[: 1 if new_name else 0]


def test_tests_are_shown_as_the_flow_starts_them(catalogue: NodeStore) -> None:
    """A schedule gives its own text, and a form its fields, whatever the plan says."""
    rows = [{"type": "string", "label": "Name", "name": "name"}]
    for start, turns, payload in (
        ({"startInputType": "scheduleInput", "scheduleDefaultInput": "Write it."}, ["Write it."], None),
        ({"startInputType": "formInput", "formInputTypes": rows}, ["Ada"], {"name": "Ada"}),
        ({"startInputType": "chatInput"}, ["Ada"], None),
    ):
        values = {f"startAgentflow_0.{name}": one for name, one in start.items()}
        given = planned("startAgentflow_0", values=values, tests=[TestCase(id="t1", turns=["Ada"])])
        (case,) = started_tests(PlanContext(plan=given, request=plan_request(catalogue))).plan.tests
        assert (case.turns, case.payload) == (turns, payload)


@pytest.mark.parametrize(("start", "held"), [("scheduleInput", ["t1", "t4"]), ("chatInput", ["t1", "t2", "t4"])])
def test_tests_that_ask_the_same_are_one_that_expects_what_each_does(
    catalogue: NodeStore, start: str, held: list[str]
) -> None:
    values = {"startAgentflow_0.startInputType": start, "startAgentflow_0.scheduleDefaultInput": "Write it."}
    tests = [
        TestCase(id="t1", turns=["Ada"]),
        TestCase(id="t2", turns=["Bob"]),
        TestCase(id="t3", turns=["Ada"], expect=Expectation(contains=["Ada"])),
        TestCase(id="t4", turns=["Ada"], human=["reject"]),
    ]
    criteria = [Criterion(id="c1", text="x", tests=["t3", "t2"]), Criterion(id="c2", text="y", tests=["t4"])]
    given = planned("startAgentflow_0", values=values, tests=tests, criteria=criteria)
    plan = started_tests(PlanContext(plan=given, request=plan_request(catalogue))).plan
    assert [one.id for one in plan.tests] == held
    assert plan.tests[0].expect.contains == ["Ada"]
    assert [one.tests for one in plan.criteria] == [held[:-1], ["t4"]]
