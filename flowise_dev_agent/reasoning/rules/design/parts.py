"""What becomes of each stretch of what a person said: covered by nodes and values, or told as not done."""

import re
from collections.abc import Mapping, Sequence

from flowise_dev_agent.contracts.plan import Part, PlanContract, PlannedValue
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.placeholders import stands_in
from flowise_dev_agent.reasoning.rules.design.prompt import units
from flowise_dev_agent.reasoning.rules.language import words
from flowise_dev_agent.reasoning.rules.language.scan import Span
from flowise_dev_agent.reasoning.rules.language.text import quoted_spans, squeeze
from flowise_dev_agent.sanitize import shortened

#: Nodes that do what a kind of signal speaks of.
_DOERS = {
    "branch": {"multiPromptChain", "multiRetrievalQAChain"},
    "call": {"getApiChain", "postApiChain", "openApiChain"},
    "service": {"getApiChain", "postApiChain", "openApiChain", "apiLoader"},
}
_MOST = 40
_LONGEST_REASON = 120


class Account:
    """Holds what a design does against the text that it was made from."""

    def __init__(
        self,
        text: str,
        spans: Sequence[Span],
        nodes: Mapping[str, NodeSchema],
        values: Sequence[PlannedValue],
        gone: Sequence[NodeSchema] = (),
    ) -> None:
        self._text, self._spans = text, [span for span in spans if not span.task]
        self._nodes, self._values = nodes, values
        self._gone = {name for schema in gone for name in (schema.name, f"@{schema.category}")}
        self._done = [span for span in self._spans if self._effect(span) is not None]

    def parts(self, language: str, *, source: str = "requirement", prompts: Sequence[str] = ()) -> list[Part]:
        """The text in parts. `prompts` are the fields (`node.param`) that hold the words for the model."""
        found: list[Part] = []
        missed = self.missed()
        for unit in units(self._text, [*self._spans]):
            quote = squeeze(self._text[unit.start : unit.end].replace("\x00", " ")).strip(" ,;:")
            said = re.findall(r"\w+", quote.casefold())
            if all(word in words.CONNECTORS for word in said):
                continue
            inside = [span for span in self._done if span.start < unit.end and unit.start < span.end]
            effects = [effect for span in inside if (effect := self._effect(span)) is not None]
            nodes = list(dict.fromkeys(node for effect in effects for node in effect[0]))
            values = list(dict.fromkeys(value for effect in effects for value in effect[1]))
            if not unit.structure:
                values += prompts
            lost = [span for span in missed if span.start < unit.end and unit.start < span.end]
            neutral = all(word in words.EMPTY_ROLE_WORDS for word in said)
            covered = not lost and bool(unit.structure or nodes or values or neutral or not found)
            found.append(
                Part(
                    id=f"p{len(found) + 1}",
                    quote=quote,
                    source=source,
                    state="covered" if covered else "not_understood",
                    nodes=nodes,
                    values=values,
                    reason="" if covered else say("part_missed", language),
                )
            )
        return found[: _MOST - 1] + _rest(found[_MOST - 1 :])

    def missed(self) -> list[Span]:
        """Recognised stretches that the design does nothing about."""
        return [
            span
            for span in self._spans
            if self._effect(span) is None
            and not any(other.start < span.end and span.start < other.end for other in self._done)
        ]

    def signals(self) -> list[tuple[str, str]]:
        """(kind, words) of what names structure that nothing in the design does."""
        quotes = quoted_spans(self._text)
        found: list[tuple[str, str]] = []
        present = {schema.name for schema in self._nodes.values()}
        for pattern, kinds in words.SIGNALS:
            if present & _DOERS.get(kinds[0], set()):
                continue
            for match in pattern.finditer(self._text):
                done = any(span.start < match.end() and match.start() < span.end for span in self._done)
                if not done and not any(start < match.start() < end for start, end in quotes):
                    found.append((kinds[0], squeeze(match.group())))
        return found

    def refusal(self, language: str) -> str | None:
        """The sentence that names what is not done; None when everything is."""
        signals = self.signals()
        lost = [squeeze(self._text[span.start : span.end].replace("\x00", "")) for span in self.missed()]
        lost = [quote for quote in lost if not any(quote in said or said in quote for _, said in signals)]
        reasons = [say("gap", language, quote=shortened(quote, _LONGEST_REASON), why=say("gap_place", language))
                   for quote in dict.fromkeys(lost) if quote]  # fmt: skip
        reasons += [say("gap", language, quote=shortened(quote, _LONGEST_REASON), why=say(f"gap_{kind}", language))
                    for kind, quote in signals]  # fmt: skip
        return say("declined_parts", language, parts="; ".join(dict.fromkeys(reasons))) if reasons else None

    def _has_address(self, node_id: str, schema: NodeSchema) -> bool:
        """A node for requests to an address does nothing that was asked for without one."""
        asks = not schema.name.startswith("requests")
        mine = [value for value in self._values if value.node_id == node_id and "url" in value.param.casefold()]
        return asks or any(not stands_in(value.value) for value in mine)

    def _effect(self, span: Span) -> tuple[list[str], list[str]] | None:
        """The nodes and values that a stretch leads to, None when it leads to nothing."""
        nodes = [
            id_
            for id_, schema in self._nodes.items()
            if {schema.name, f"@{schema.category}"} & span.names and self._has_address(id_, schema)
        ]
        if "@placeholder" in span.params and any(stands_in(value.value) for value in self._values):
            return nodes, [f"{value.node_id}.{value.param}" for value in self._values if stands_in(value.value)]
        said = self._text[span.start : span.end]
        values = [
            f"{value.node_id}.{value.param}"
            for value in self._values
            if value.param in span.params
            or value.param.rpartition(".")[2] in span.params
            or ("@address" in span.params and isinstance(value.value, str) and value.value and (
                value.value in said or said.rstrip(".,;") in value.value))
        ]  # fmt: skip
        if nodes or values or span.keep or span.denied or span.names & self._gone:
            return nodes, values
        return None


def _rest(parts: Sequence[Part]) -> list[Part]:
    """The parts behind the most that a plan lists, as one."""
    if len(parts) < 2:
        return list(parts)
    worst = next((part for part in parts if part.state != "covered"), parts[0])
    nodes = list(dict.fromkeys(node for part in parts for node in part.nodes))
    values = list(dict.fromkeys(value for part in parts for value in part.values))
    return [worst.model_copy(update={"id": parts[0].id, "quote": " ".join(part.quote for part in parts),
                                     "nodes": nodes, "values": values})]  # fmt: skip


def for_request(plan: PlanContract, request: PlanRequest) -> PlanContract:
    """The plan with an answer to each part of the request, from what was read of the text in smaller stretches."""
    if not request.parts:
        return plan
    if plan.declined or plan.answer is not None:
        state, reason = ("not_possible", plan.declined) if plan.declined else ("covered", "")
        answered = [part.model_copy(update={"state": state, "reason": reason}) for part in request.parts]
        return plan.model_copy(update={"parts": answered})
    former = {part.quote: part for part in request.previous.parts} if request.previous else {}
    return plan.model_copy(update={"parts": [_answered(part, plan, former) for part in request.parts]})


def _answered(part: Part, plan: PlanContract, former: Mapping[str, Part]) -> Part:
    quote = squeeze(part.quote)
    mine = [own for own in plan.parts if own.quote in quote or quote in own.quote]
    if not mine and part.quote in former:
        return former[part.quote].model_copy(update={"id": part.id, "source": part.source})
    lost = next((own for own in mine if own.state != "covered"), None)
    return part.model_copy(
        update={
            "state": lost.state if lost else "covered",
            "reason": lost.reason if lost else "",
            "nodes": list(dict.fromkeys(node for own in mine for node in own.nodes)),
            "values": list(dict.fromkeys(value for own in mine for value in own.values)),
        }
    )
