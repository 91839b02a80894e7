"""Agentflows from a text: whether it speaks of steps, and their design. A skeleton that does not fit is declined."""

import re
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import Design, PlannedValue, TestCase
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.credential_requirements import nested_types
from flowise_dev_agent.reasoning.rules.design.around import start_of, take_settings
from flowise_dev_agent.reasoning.rules.design.clauses import clauses, leaves, stepwise, unmet
from flowise_dev_agent.reasoning.rules.design.kinds import found, is_again, kind_of, short, unwanted
from flowise_dev_agent.reasoning.rules.design.parts import Account
from flowise_dev_agent.reasoning.rules.design.prompt import prompt_of
from flowise_dev_agent.reasoning.rules.design.reading import DOCUMENTS, Reading
from flowise_dev_agent.reasoning.rules.design.skeleton import Skeleton, Step, all_steps
from flowise_dev_agent.reasoning.rules.design.step_nodes import Builder
from flowise_dev_agent.reasoning.rules.design.values import Said
from flowise_dev_agent.reasoning.rules.design.world import DeclinedError, World
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words
from flowise_dev_agent.reasoning.rules.language.senses import HALF
from flowise_dev_agent.reasoning.rules.language.text import URL, signals, squeeze
from flowise_dev_agent.reasoning.rules.render import telling

#: Kinds of signals that make a flow one of steps, and what the steps themselves are read for.
_STEPWISE = frozenset({"team", "approval", "branch", "loop", "schedule", "sequence"})
_NAMED = frozenset({"team", "approval", "sequence", "form", "schedule", "call"})
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
    signs = {"team"} if named else _STEPWISE if used else _STEPWISE | {"call"}
    heard = {kind for match, kind in signals(text) if kind != "call" or "://" in match.group()}
    ways = found("sorts", text) and len(pattern("steps", "arrow").findall(text)) > 1
    if heard & signs or (not named and (ways or found("form", text))):
        return True
    if named or reading.chat or reading.knowledge or not text:
        return False
    made = Skeleton(text)
    kinds = [kind_of(one.said) for one in made.pieces] or [""]
    # The items of a list are steps where no bot is to follow them as rules.
    listed = not words("any_bot").search(text) and made.items and sum(kind not in ("", "given") for kind in kinds) > 1
    order = len(kinds) > 1 and any(one.border in ("next", "then") for one in made.pieces)
    several = listed or order or kinds.count("who") > 1 or {"sort", "case", "each", "approve"}.intersection(kinds)
    begins = kinds[0] in ("each", "call", "who") or (kinds[0] == "sort" and not made.odd)
    flow = begins or listed or any(found(one, text) for one in ("a_flow", "each_of_list"))
    return bool(flow and (several or found("unread", text)))


def speaks_of_steps(reading: Reading) -> bool:
    """Whether the text names steps, and does not merely read like some."""
    said = {kind for match, kind in signals(reading.text) if kind != "call" or "://" in match[0]}
    return bool(said & _NAMED or any(found(one, reading.text) for one in ("a_flow", "approve", "each_of_list")))


def design_steps(request: PlanRequest, reading: Reading, said: Any, world: World) -> Design:
    """The design of a new agentflow. Raises DeclinedError with what it does not understand."""
    # Documents are what both readers find.
    heard = [*clauses(reading.text, change=False)]
    if reading.knowledge and not reading.urls and any(_SOURCES & {*one.asks()} for one in leaves(heard)):
        raise world.decline("declined_agentflow_documents")
    start = start_of(reading.text, said.details, request.intent.title, world)
    text, settings = take_settings(start.text, world)
    listed = request.design is not None
    steps = listed or bool(start.params or stepwise(heard, reading.spans)) or is_stepwise(reading)
    # What was read leaves no marks.
    plain = re.sub(r"(?<!\w)(?:\d+[.)])?[\s,]*\x00[\x00\s,]*", lambda one: "\n" if "\n" in one[0] else " ", text)
    made = Skeleton(plain.lstrip(" .,") if steps else "", listed=listed)
    made.steps += [] if steps else [Step("task", squeeze(text))]
    builder = Builder(made, replace(reading, text=text), start, settings, world)
    # That an answer goes out once a person agrees is what an approval does; what is sent somewhere goes to the address
    # that was given.
    sent = [_REQUEST.split(step.text, maxsplit=1)[0].strip() if "://" in step.text else step.text
            for step in all_steps(made.steps) if step.kind in ("call", "end")]  # fmt: skip
    sent += [URL.split(step.text)[-1].strip() for step in all_steps(made.steps) if step.kind == "call"]
    done = [one for one in made.sent if is_again(one) or not any(kind == "send" for _, kind in signals(one))]
    # What happens at some time is a fact that a model is told, where nobody asks for a schedule.
    facts = [one for one in leaves(heard) if one.sense.told > HALF and "schedule" not in one.asks()]
    done += [match[0] for match, kind in signals(text) if kind == "schedule"
             and any(one.start <= match.start() < one.end for one in facts)]  # fmt: skip
    checked = text
    for clause in sorted(filter(None, sent + done), key=len, reverse=True):
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
             if name in _NEEDED and not (found("arrow", one.said) or unwanted(one.said))]  # fmt: skip
    # Who only talks and uses a tool sends nothing.
    lacks += [] if steps else [one.said for one in leaves(heard) if one.sense.concepts.get("send_out", 0) > HALF]
    if lacks:
        raise world.decline("declined_parts", parts="; ".join(f"«{one}»" for one in dict.fromkeys(lacks)))
    if start.question:
        raise DeclinedError(start.question)
    design = Design(
        goal=telling.short(said.text), operation=request.intent.operation, flow_name=request.intent.title,
        flow_kind="AGENTFLOW", values=values, connections=builder.links,
        nodes=telling.planned(schemas, world, labels={op.node_id: op.label or "" for op in builder.nodes}),
        credential_requirements=nested_types(builder.nodes, world.store.schemas, world.available),
        parts=builder.account(),
    )  # fmt: skip
    told = telling.told(design, schemas, Said(reading, prompt_of(reading.text, reading.spans)), world)
    forks: list[Any] = [node.params.get("conditionAgentScenarios", []) for node in builder.nodes]
    names = [short(row["scenario"]) for rows in forks for row in rows][:10]
    tests = [TestCase(id=f"t{n}", turns=[f"{name}?"]) for n, name in enumerate(names, 1)] or told.tests
    criteria = [one.model_copy(update={"tests": [test.id for test in tests]}) for one in told.criteria]
    return told.model_copy(update={"tests": tests, "criteria": criteria})
