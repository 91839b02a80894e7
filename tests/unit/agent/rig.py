"""The graph on a bench: real nodes, compiler and validator; Flowise, the tables and the reasoner in memory."""
# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from flowise_dev_agent.agent import AgentContext, AgentState, FlowiseCapability, build_graph, initial_state
from flowise_dev_agent.agent.interrupts import check_answer
from flowise_dev_agent.errors import AgentError, InvalidInputError
from flowise_dev_agent.flowise.document_stores import DocumentStore
from flowise_dev_agent.flowise.models import ChatflowPage, HumanAnswer, Prediction
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.knowledge.drift import CatalogueChange, compare
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.pattern_library import PatternLibrary
from flowise_dev_agent.knowledge.repair import Repair, decide_repair, not_found
from flowise_dev_agent.knowledge.templates import Template, TemplateStore
from flowise_dev_agent.patch import NodeSchema, OptionEntry, PatchOp
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.planning.requests import Reasoned
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.publish import Publisher
from flowise_dev_agent.schemas.event_data import NodeEndData, NodeStartData
from flowise_dev_agent.schemas.events import NodeEvent
from flowise_dev_agent.schemas.interrupts import raised_interrupt
from flowise_dev_agent.schemas.plan import Intent, OpsAnswer, PatchAnswer, Plan, PlannedNode
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.schemas.verdict import CriterionVerdict, Evidence, Verdict
from flowise_dev_agent.settings import DriftPolicy, LimitSettings, Mode
from tests.unit.publish.fakes import FakeFlowise, FakeIntents, FakeVersions

OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c001"
OTHER_OPENAI = "0d3cf4b6-6a27-4c8e-9a0e-3f6d8ad0c002"


class BenchFlowise(FakeFlowise):
    """Adds what the graph reads; `answers` maps a question to a text or an error, `in_turn` come first, whatever is
    asked."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoint = "http://flowise.test"
        self.answers: dict[str, str | AgentError | Prediction] = {}
        self.in_turn: list[str | AgentError | Prediction] = []
        #: Plays a flow with a person in it: (question, session, decision) to a reply, or None.
        self.waits: Callable[[str | None, str, HumanAnswer | None], Prediction | None] | None = None
        #: What came with each question: form, webhook, decision.
        self.given: list[dict[str, Any]] = []
        #: Of the run that failed.
        self.failed_steps: list[dict[str, Any]] = []
        #: Custom tools of the instance, or why they may not be listed.
        self.tools: list[dict[str, Any]] | AgentError = []
        self.stores: list[DocumentStore] = []
        self.variables: list[dict[str, Any]] = []
        self.tool_lists = 0
        #: Options that the server lists, and what it was asked for.
        self.options: list[OptionEntry] = []
        self.option_calls: list[dict[str, Any]] = []
        #: What a custom function returns, and those that were run.
        self.function_result: Any = None
        self.functions: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[str, str]] = []
        self.asked_of: list[str] = []
        self.forgotten: list[tuple[str, str]] = []

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        rows = list(self.flows.values())
        return ChatflowPage(data=rows[(page - 1) * limit : page * limit], total=len(rows))

    async def delete_messages(self, chatflow_id: str, session_id: str) -> None:
        self.forgotten.append((chatflow_id, session_id))

    async def node_options(self, name: str, method: str, **sent: Any) -> list[OptionEntry]:
        self.option_calls.append({"name": name, "method": method, **sent})
        return self.options

    async def run_function(self, code: str, variables: Mapping[str, Any]) -> Any:
        self.functions.append((code, dict(variables)))
        if isinstance(self.function_result, AgentError):
            raise self.function_result
        return self.function_result

    async def predict(self, chatflow_id: str, question: str | None = None, *, session_id: str, **given: Any) -> Any:
        self.asked.append((question or "", session_id))
        self.asked_of.append(chatflow_id)
        self.given.append(given)
        if self.waits is not None and (reply := self.waits(question, session_id, given.get("human"))):
            return reply
        answer = self.in_turn.pop(0) if self.in_turn else self.answers.get(question or "", f"Answer to: {question}")
        if isinstance(answer, AgentError):
            raise answer
        return Prediction(text=answer) if isinstance(answer, str) else answer

    async def call_webhook(self, chatflow_id: str, payload: Any, *, session_id: str, **given: Any) -> Any:
        return await self.predict(chatflow_id, None, session_id=session_id, webhook=payload, **given)

    async def executed_steps(self, chatflow_id: str, session_id: str) -> list[Any]:
        return self.failed_steps

    async def list_document_stores(self) -> list[DocumentStore]:
        return self.stores

    async def list_variables(self) -> list[dict[str, Any]]:
        return self.variables

    async def list_tools(self) -> list[dict[str, Any]]:
        self.tool_lists += 1
        if isinstance(self.tools, AgentError):
            raise self.tools
        return self.tools


class Script(Reasoner):
    """A reasoner that plays what a test put into its lists; the last entry is repeated."""

    def __init__(self) -> None:
        self.intents = [Intent(operation="create", ambiguity=0, title="Support bot")]
        self.plans = [plan()]
        self.patches: list[list[PatchOp] | PatchAnswer | Exception] = []
        self.verdicts = [Verdict(done=True)]
        self.usage = Usage(model_calls=1, input_tokens=10, output_tokens=5)
        self.mode: Mode = "llm_guided"
        self.seen: dict[str, list[Any]] = {"classify": [], "plan": [], "patch": [], "judge": []}

    def _next(self, phase: str, request: Any, items: list[Any]) -> Reasoned[Any]:
        self.seen[phase].append(request)
        value = items.pop(0) if len(items) > 1 else items[0]
        if isinstance(value, Exception):
            raise value
        return Reasoned(value=value, mode=self.mode, usage=self.usage)

    async def classify(self, request: Any) -> Reasoned[Intent]:
        return self._next("classify", request, self.intents)

    async def plan(self, request: Any) -> Reasoned[Plan]:
        result = self._next("plan", request, self.plans)
        if request.review is None or result.mode == "deterministic":
            return result
        return replace(result, value=(await request.review(result.value, request)).plan)

    async def patch(self, request: Any) -> Reasoned[PatchAnswer]:
        result = self._next("patch", request, self.patches)
        return replace(result, value=OpsAnswer(ops=result.value)) if isinstance(result.value, list) else result

    async def judge(self, request: Any) -> Reasoned[Verdict]:
        """A verdict without votes shows every criterion by the first answer, as far as it is done."""
        given = self._next("judge", request, self.verdicts)
        if given.value.criteria or not given.value.done:
            return given
        proof = [Evidence(trial=1, quote=request.trials[0].answer)]
        votes = [CriterionVerdict(id=one.id, state="shown", evidence=proof) for one in request.plan.criteria]
        return replace(given, value=given.value.model_copy(update={"criteria": votes}))


#: Parsed once: the store is immutable.
_snapshot = cache(NodeStore.from_snapshot)


class BenchKnowledge:
    """The committed snapshot, credentials as given, and node types that only the server knows."""

    def __init__(self, credentials: CredentialStore) -> None:
        self.store = _snapshot()
        self.credential_store = credentials
        self.server_only: dict[str, NodeSchema] = {}
        self.on_refresh: Callable[[], CredentialStore] | None = None
        self.repairs: list[str] = []
        #: The marketplace's flows by name.
        self.template_flows: dict[str, str] = {}
        #: What the server offers by now; read at the first refresh.
        self.upgraded: NodeStore | None = None
        self.former = {self.store.fingerprint: self.store}

    async def nodes(self, *, refresh: bool = False) -> NodeStore:
        if refresh and self.upgraded:
            self.store = self.upgraded
        return self.store

    async def changes_since(self, fingerprint: str, store: NodeStore) -> CatalogueChange:
        return compare(self.former[fingerprint], store)

    async def credentials(self, *, refresh: bool = False) -> CredentialStore:
        if refresh and self.on_refresh:
            self.credential_store = self.on_refresh()
        return self.credential_store

    async def templates(self) -> TemplateStore:
        return TemplateStore.from_snapshot()

    async def template_flow(self, template: Template) -> str:
        if template.name not in self.template_flows:
            raise InvalidInputError(f"There is no template called {template.name!r}.")
        return self.template_flows[template.name]

    async def repair(self, name: str) -> Repair:
        self.repairs.append(name)
        schema = self.server_only.get(name)
        if schema is None:
            return not_found(name)
        repair = Repair(schema, decide_repair(self.store.schemas.get(name), schema))
        self.store = self.store.with_repaired({name: schema})
        return repair


class BenchBlobs:
    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    async def put(self, text: str, *, at_once: bool = False) -> str:
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.rows[sha256] = text
        return sha256

    async def get(self, sha256: str) -> str:
        return self.rows[sha256]


def plan(**values: Any) -> Plan:
    base: dict[str, Any] = {
        "goal": "A support bot",
        "operation": "create",
        "flow_name": "Support bot",
        "nodes": [
            PlannedNode(node_id="chatOpenAI_0", node_name="chatOpenAI", purpose="the model"),
            PlannedNode(node_id="conversationChain_0", node_name="conversationChain", purpose="the chain"),
            PlannedNode(node_id="bufferMemory_0", node_name="bufferMemory", purpose="the memory"),
        ],
        "credential_requirements": ["openAIApi"],
        "success_criteria": ["It answers"],
        "test_questions": ["Hello", "Who are you?"],
    }
    return Plan(**{**base, **values})


def _fields(raised: str | dict[str, Any]) -> dict[str, Any]:
    """Of a question; earlier versions raised the object."""
    return json.loads(raised) if isinstance(raised, str) else raised


class Bench:
    """One session, driven run by run as the runtime does it. `reasoner` is the script unless another one is given,
    which then thinks in its place."""

    def __init__(
        self,
        ops: list[PatchOp],
        credentials: CredentialStore,
        *,
        reasoner: Reasoner | None = None,
        patterns: PatternLibrary | None = None,
        flowise: BenchFlowise | None = None,
        drift_policy: DriftPolicy = "warn",
        **limits: Any,
    ) -> None:
        self.flowise = flowise or BenchFlowise()
        self.reasoner = Script()
        self.reasoner.patches = [ops]
        self.thinks = reasoner or self.reasoner
        self.knowledge = BenchKnowledge(credentials)
        self.blobs = BenchBlobs()
        self.intents = FakeIntents()
        self.versions = FakeVersions()
        self.session_id = uuid4()
        self.limits = LimitSettings(_env_file=None, **limits)
        self.drift_policy = drift_policy
        self.capability = FlowiseCapability()
        self.graph = build_graph([self.capability], InMemorySaver())
        self.config: Any = {"configurable": {"thread_id": str(self.session_id)}}
        self.patterns = patterns
        #: The files that go with the requirement.
        self.files: SessionFiles | None = None
        self.events: list[dict[str, Any]] = []
        self.nodes_run: list[str] = []
        #: The nodes that LangGraph knows of.
        self.steps_run: list[str] = []

    def context(self) -> AgentContext:
        fakes: Any = self.flowise, self.knowledge, self.blobs, self.intents, self.versions
        return AgentContext(
            session_id=str(self.session_id),
            instance_id="default",
            endpoint="http://flowise.test",
            flowise=fakes[0],
            knowledge=fakes[1],
            reasoner=self.thinks,
            blobs=fakes[2],
            publisher=Publisher(
                session_id=UUID(str(self.session_id)),
                instance_id="default",
                client=fakes[0],
                intents=fakes[3],
                lease=None,
                versions=fakes[4],
            ),
            limits=self.limits,
            drift_policy=self.drift_policy,
            patterns=self.patterns,
            files=self.files,
        )

    async def start(self, requirement: str = "A support bot", **request: Any) -> dict[str, Any]:
        """Run to the first interrupt (returned) or to the end ({})."""
        return await self.run(
            initial_state(
                {"thread_id": str(self.session_id), "requirement": requirement, "operation": "auto", **request}
            )
        )

    async def answer(self, **answer: Any) -> dict[str, Any]:
        """Answer the open interrupt and run on."""
        open_ = await self.open_interrupt()
        normal = check_answer(raised_interrupt(open_.value, open_.id), answer=answer, response=None)
        return await self.run(Command(resume={open_.id: normal}))

    async def open_interrupt(self) -> Any:
        snapshot = await self.graph.aget_state(self.config)
        (interrupt,) = snapshot.interrupts
        return replace(interrupt, value=_fields(interrupt.value))

    async def values(self) -> dict[str, Any]:
        """The channels as the checkpoint holds them."""
        return (await self.graph.aget_state(self.config)).values

    async def state(self) -> AgentState:
        return AgentState.model_validate(await self.values())

    async def run(self, given: Any) -> dict[str, Any]:
        """To the next interrupt (returned) or to the end ({}); None goes on from the last checkpoint."""
        async for part in self.graph.astream(
            given, self.config, context=self.context(), stream_mode=["tasks", "custom"], version="v2", durability="sync"
        ):
            if part["type"] == "custom":
                event: NodeEvent = part["data"]
                if isinstance(event.data, NodeStartData):
                    self.nodes_run.append(str(event.node))
                if isinstance(event.data, NodeStartData | NodeEndData):
                    continue
                self.events.append(
                    {
                        "type": event.data.event_type,
                        "node": event.node,
                        "phase": event.phase,
                        "summary": event.summary,
                        "data": event.data.model_dump(mode="json"),
                    }
                )
            elif "input" in part["data"]:
                task: Any = part["data"]
                self.steps_run.append(task["name"])
                if self.nodes_run[-1:] != [task["name"]]:  # not begun in the step before
                    self.nodes_run.append(task["name"])
        snapshot = await self.graph.aget_state(self.config)
        return _fields(snapshot.interrupts[0].value) if snapshot.interrupts else {}
