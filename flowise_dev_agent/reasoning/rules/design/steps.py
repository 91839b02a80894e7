"""Agentflows from a text: whether it speaks of steps, and their design. A skeleton that does not fit is declined."""

import re
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, PlannedValue, TestCase
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves, stepwise, unmet
from flowise_dev_agent.reasoning.rules.design.kinds import found, kind_of, short, unwanted
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import DOCUMENTS, Reading
from flowise_dev_agent.reasoning.rules.design.settings import take_settings
from flowise_dev_agent.reasoning.rules.design.skeleton import WAY, Skeleton
from flowise_dev_agent.reasoning.rules.design.starts import start_of
from flowise_dev_agent.reasoning.rules.design.step_nodes import Builder
from flowise_dev_agent.reasoning.rules.design.values import Said
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.text import signals
from flowise_dev_agent.reasoning.rules.render import telling

#: Kinds of signals that make a flow one of steps, and what the steps themselves are read for.
_STEPWISE = frozenset({"team", "approval", "branch", "loop", "schedule", "sequence"})
_NAMED = frozenset({"team", "approval", "sequence", "form", "schedule"})
_READ = frozenset({"team", "sequence", "call", "service", "output"})
#: Concepts of the second reader: without which a flow is another one, and of texts to answer from.
_NEEDED = {"approval", "schedule", "web_search"}
_SOURCES = {"csv", "embeddings", "file_upload", "other_source", "pdf", "text_source", "vector_store", "webpage", "word"}
_REQUEST = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE)\b|\S+://")


def is_stepwise(reading: Reading) -> bool:
    """Whether the text speaks of steps that a chatflow does not have."""
    text = reading.text[:2_000]
    # A node type asked for by name is a part of a chatflow.
    named = reading.requested or reading.prompt_text or reading.system_text
    # A request to an address is a step, where no tool and no chain makes it.
    used = reading.tools or reading.requests or reading.loaders or reading.agent or (reading.chat and reading.knowledge)
    kinds = {"team"} if named else _STEPWISE if used else _STEPWISE | {"call"}
    sorts = len(WAY.findall(text)) > 1 and found("sorts", text)
    signs = {kind for match, kind in signals(text) if kind != "call" or "://" in match.group()}
    if signs & kinds or (not named and (sorts or found("form", text) or found("webhook", text))):
        return True
    if named or reading.chat or reading.knowledge or not text:
        return False
    made = Skeleton(text)
    kinds = [kind_of(clause) for clause, _ in made.clauses] or [""]
    order = len(kinds) > 1 and (made.listed or any(border == "then" for _, border in made.clauses))
    begins = kinds[0] in ("each", "call", "who") or (kinds[0] == "sort" and not made.odd)
    flow = begins or made.listed or found("a_flow", text) or found("each_of_list", text)
    several = order or kinds.count("who") > 1 or {"sort", "case", "each", "approve"}.intersection(kinds)
    return bool(flow and several)


def speaks_of_steps(reading: Reading) -> bool:
    """Whether the text names steps, and does not merely read like some."""
    said = {kind for _, kind in signals(reading.text)}
    # A repetition that is known by its words is told as not done.
    each = "loop" not in said and found("each_of_list", reading.text)
    return bool(said & _NAMED or each or found("a_flow", reading.text) or found("approve", reading.text))


def design_steps(request: PlanRequest, reading: Reading, said: Any, world: World) -> Design:
    """The design of a new agentflow. Raises DeclinedError with what it does not understand."""
    # Documents are what both readers find.
    heard = [*clauses(reading.text, change=False)]
    if reading.knowledge and not reading.urls and any(_SOURCES & {*one.asks()} for one in leaves(heard)):
        raise world.decline("declined_agentflow_documents")
    start = start_of(reading.text, said.details, request.intent.title, world)
    text, settings = take_settings(start.text, world.store)
    own, listed = replace(reading, text=text), request.design is not None
    steps = listed or bool(start.params or stepwise(heard, reading.spans)) or is_stepwise(reading)
    builder = Builder(own, world, start, request.intent.title, settings, listed=listed, steps=steps)
    # That an answer goes out once a person agrees is what an approval does; what is sent somewhere goes to the address
    # that was given.
    sent = [_REQUEST.split(step.text, maxsplit=1)[0].strip() for step in builder.made.steps if step.kind == "call"]
    done = [one for one in builder.made.sent if not any(kind == "send" for _, kind in signals(one))]
    checked = builder.text
    for clause in filter(None, sent + done):
        checked = checked.replace(clause, "\x00" * len(clause))
    builder.build()
    schemas = {op.node_id: world.schema(op.node_name) for op in builder.nodes}
    values = [PlannedValue(node_id=op.node_id, param=name, value=value)
              for op in builder.nodes for name, value in op.params.items()]  # fmt: skip
    # Words about documents are words of a step where no document is asked for; each model has a memory.
    spans = [span for span in reading.spans if not span.names & (DOCUMENTS | {"@Memory"})]
    Account(checked, spans, schemas, values).check(world, _READ if "://" in checked else _READ - {"service"})
    # What the second reader alone finds is not built; of whom a branch is for is no wish.
    lacks = [one.said for one, name in unmet(heard, schemas, values)
             if name in _NEEDED and not (WAY.search(one.said) or unwanted(one.said))]  # fmt: skip
    if lacks:
        raise world.decline("declined_parts", parts="; ".join(f"«{one}»" for one in dict.fromkeys(lacks)))
    if start.question:
        raise DeclinedError(start.question)
    design = Design(
        goal=telling.short(said.text), operation=request.intent.operation, flow_name=request.intent.title,
        flow_kind="AGENTFLOW", values=values, connections=builder.links,
        nodes=telling.planned(schemas, world, labels={op.node_id: op.label or "" for op in builder.nodes}),
        steps=[world.say("step_variable", name=name) for name in builder.variables],
        credential_requirements=nested_types(builder.nodes, world.store.schemas, world.available),
        parts=builder.account(),
    )  # fmt: skip
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), world)
    forks: list[Any] = [node.params.get("conditionAgentScenarios", []) for node in builder.nodes]
    names = [short(row["scenario"]) for rows in forks for row in rows][:10]
    tests = [TestCase(id=f"t{n}", turns=[f"{name}?"]) for n, name in enumerate(names, 1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests, "criteria": criteria})
