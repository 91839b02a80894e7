"""The steps of an AgentFlow that is there: which a wish takes out, puts in front of others, or has say another text."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flowise_dev_agent.contracts.plan import DesignConnection, PlannedValue
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.rules.design import build, wording
from flowise_dev_agent.reasoning.rules.design.sources import Made
from flowise_dev_agent.reasoning.rules.language.lexicon import pattern, words
from flowise_dev_agent.reasoning.rules.language.text import DONE, Span, quoted

_BEFORE, _OUT, _CALLS = (pattern("change", name) for name in ("before", "out", "calls"))
_AGREES, _LAST, _ANSWER, _NO = (pattern("rewiring", name) for name in ("agrees", "last", "answer", "no"))
_IF, _BRANCH = pattern("prompt", "if"), pattern("rewiring", "branch")
_REPLY, _HUMAN, _CALL, _START = "directReplyAgentflow", "humanInputAgentflow", "httpAgentflow", "startAgentflow"
_SORTER, _ROWS, _TEXT, _FEW = "conditionAgentAgentflow", "conditionAgentScenarios", "directReplyMessage", 5
_WORD, _PROCEEDS = re.compile(r"[^\W\d_]{3,}"), ("proceed", "0")
_PLAIN = frozenset({"Start", "Agent", "LLM", "Reply", "Direct Reply", "Human Input", "HTTP request", "HTTP", "Model"})


def titled(request: PlanRequest, said: str) -> list[str]:
    """The steps whose titles a stretch names: as they are, else by their words in other forms, "the step that writes
    the reply" for the Reply writer."""
    # What everybody calls such a node names none of several.
    titles = {id_: name for id_ in request.existing if (name := request.labels.get(id_, "")) and name not in _PLAIN}
    own = {id_: {word[:5] for word in _WORD.findall(name.casefold())} for id_, name in titles.items()}
    whole = [id_ for id_, name in titles.items() if wording.whole(name).search(said)]
    spoken = {word[:5] for word in _WORD.findall(said.casefold())}
    return whole or [id_ for id_, name in own.items() if name and name <= spoken]


def find_steps(request: PlanRequest, made: Made) -> Made:
    """What is understood of `made.text`, with the connections that come and go."""
    if request.base is None or _START not in request.existing.values():
        return made
    kinds = {kind: [id_ for id_, name in request.existing.items() if name == kind] for kind in (_REPLY, _HUMAN, _CALL)}
    human, last, way, opened, spoken = "", "", "", Span(0, 0), list[Span]()
    sorter = next((one for one in request.base.nodes if one.name == _SORTER), None)
    for start, end in wording.clauses(made.text):
        said, quotes = made.text[start:end], quoted(made.text[start:end])
        plain = wording.unquoted(said)
        named, before, agrees = titled(request, plain), _BEFORE.search(plain), _AGREES.search(plain)
        out = words("remove").search(plain) or _OUT.search(plain)
        going = kinds[_HUMAN] if agrees else named
        found, done = made, (*made.spans, Span(start, end, frozenset({DONE})))
        final = _ANSWER.search(plain) and (_LAST.search(plain) or (named and named == kinds[_REPLY]))
        if out and len(going) == 1 and going[0] not in made.removed and not quotes:
            found, last = _without(request, made, going[0]), "out"
        elif last and not quotes and (final or (out and wording.refers(plain))):
            found = replace(made)
        elif sorter and not way and (branch := _BRANCH.search(plain)):
            short = [*(one for one in quotes if len(one.split()) < _FEW), branch["name"] or ""]
            way, opened, rest = short[0], done[-1], [one for one in quotes if one not in short]
            found = _with_branch(request, made, sorter, way, rest[0]) if way and rest else made
        elif sorter and way and len(quotes) == 1 and not made.added:
            found, done = _with_branch(request, made, sorter, way, quotes[0]), (*done, opened)
        elif agrees and before and not (human or kinds[_HUMAN]):
            behind = plain[before.end() :]
            near = titled(request, behind) or kinds[_CALL] * bool(_CALLS.search(behind))
            near = near or kinds[_REPLY] * bool(_ANSWER.search(behind))
            if len(near) == 1:
                (human,) = build.fresh_ids((_HUMAN,), request.existing)
                found = _in_front(request, made, near[0], human, quotes)
        elif human and _NO.search(plain) and len(quotes) == 1:
            found = _with_reply(request, made, human, "reject", quotes[0])
        elif final and len(quotes) == 1 and len(kinds[_REPLY]) == 1 and not _IF.match(plain.strip()):
            value = PlannedValue(node_id=kinds[_REPLY][0], param=_TEXT, value=quotes[0])
            found = replace(made, values=(*made.values, value))
        # "Somebody has to approve it!": where, is said before or behind it.
        spoken += [done[-1]] if agrees and found is made and not quotes else []
        made = replace(found, spans=done) if found is not made else made
    return replace(made, spans=(*made.spans, *spoken)) if human else made


def _with_reply(request: PlanRequest, made: Made, source: str, output: str, text: str) -> Made:
    """With a fixed reply behind an output of a step."""
    (reply,) = build.fresh_ids((_REPLY,), {**request.existing, **made.added})
    link = DesignConnection(source=source, output=output, target=reply)
    value = PlannedValue(node_id=reply, param=_TEXT, value=text)
    added = {**made.added, reply: _REPLY}
    return replace(made, added=added, values=(*made.values, value), links=(*made.links, link))


def _with_branch(request: PlanRequest, made: Made, sorter: FlowNode, name: str, text: str) -> Made:
    """With one more branch behind the others, which ends in a fixed reply."""
    rows: Any = sorter.inputs.get(_ROWS) or []
    value = PlannedValue(node_id=sorter.id, param=_ROWS, value=[*rows, {"scenario": name}])
    return _with_reply(request, replace(made, values=(*made.values, value)), sorter.id, f"{len(rows)}", text)


def _without(request: PlanRequest, made: Made, gone: str) -> Made:
    """Without a step: what was in front of it goes on to what was behind it, and what a refusal led to alone goes."""
    edges = request.base.edges if request.base else ()
    asks = request.existing[gone] == _HUMAN
    behind = [one.target for one in edges if one.source == gone and not (asks and one.output_name not in _PROCEEDS)]
    refused = [one.target for one in edges if one.source == gone and one.target not in behind]
    alone = [id_ for id_ in refused if [one.source for one in edges if one.target == id_] == [gone]]
    links = [DesignConnection(source=one.source, output=one.output_name, target=to)
             for one in edges if one.target == gone for to in behind]  # fmt: skip
    return replace(made, removed=(*made.removed, gone, *alone), links=(*made.links, *links))


def _in_front(request: PlanRequest, made: Made, step: str, human: str, quotes: Sequence[str]) -> Made:
    """With a person's step in front of another one."""
    edges = [one for one in (request.base.edges if request.base else ()) if one.target == step]
    links = [DesignConnection(source=one.source, output=one.output_name, target=human) for one in edges]
    links.append(DesignConnection(source=human, output="proceed", target=step))
    cuts = [DesignConnection(source=one.source, target=one.target, input=one.input_name) for one in edges]
    values = [PlannedValue(node_id=human, param="humanInputDescription", value=quote) for quote in quotes[:1]]
    made = replace(made, added={**made.added, human: _HUMAN}, cuts=(*made.cuts, *cuts))
    return replace(made, values=(*made.values, *values), links=(*made.links, *links))
