"""More files for the document store that a flow answers from already: the store grows, the flow stays as it is."""

import re
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.agent.document_stores import ADDS, documents_of, grown, named_in
from flowise_dev_agent.contracts.attachments import AttachmentFacts
from flowise_dev_agent.contracts.document_stores import DocumentStoreView
from flowise_dev_agent.contracts.plan import Part, PlanContract
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.attached_files import STORE_FIELD, STORE_NODES, more_for
from flowise_dev_agent.reasoning.phrases import say

#: What people call it, after a word for "into".
_INTO_STORE: Final = re.compile(
    r"(?<!\w)(?:to|in|into|zu|zum|zur|den|der|dem|die|das|au|aux|à|dans|al|a|en)\s[^,;:.!?]*"
    r"(?:stores?\b|knowledge|dokumentenspeicher|wissen|magasin|connaissances|almac[ée]n|conocimientos?)",
    re.IGNORECASE,
)
#: What they call it, in a reason that says that nothing takes it.
_STORE: Final = re.compile(r"«[^»]*(?:store|speicher|magasin|almac[ée]n)[^»]*»", re.IGNORECASE)
_PLEASE: Final = re.compile(r",?\s*(?<!\w)(?:please|bitte|s['’]il (?:te|vous) pla[iî]t|por favor)(?!\w)", re.IGNORECASE)
#: A second wish beside it, which rules would leave out.
_MORE_WISHES: Final = re.compile(r"[,;:]|[.!?]\s+\S|(?<!\w)(?:and|und|et|y|also|außerdem|then)(?!\w)", re.IGNORECASE)


def stores_of(base: GraphIR) -> dict[str, str]:
    """The nodes of a flow that answer from a store -> what they hold: its id."""
    held = {node.id: node.inputs.get(STORE_FIELD) for node in base.nodes if node.name in STORE_NODES}
    # A loader holds `<id>` or `<id>:<name>`.
    return {node_id: value.partition(":")[0] for node_id, value in held.items() if isinstance(value, str) and value}


def only_adds(said: str) -> bool:
    """Whether these words ask for nothing but files in a store."""
    return _adds(said) and not _MORE_WISHES.search(_PLEASE.sub("", said).strip())


def _adds(said: str) -> bool:
    return bool(ADDS.search(said) and _INTO_STORE.search(said))


def with_additions(
    plan: PlanContract,
    base: GraphIR,
    attachments: Sequence[AttachmentFacts],
    stores: Sequence[DocumentStoreView],
    said: str,
    *,
    wish: str,
    by_rules: bool,
    language: str = "en",
) -> PlanContract:
    """The plan with the person's files in the store of an existing node, where the plan says so by a mark; of rules,
    which decline such a wish, where it asks for nothing else. `said`: all words of the person, which may name it;
    `language`: theirs."""
    held = {node_id: one for node_id, id_ in stores_of(base).items() for one in stores if one.id == id_}
    documents = documents_of(attachments)
    if not held or not documents:
        return plan
    if by_rules:
        choices = list({one.id: one for one in held.values()}.values())
        if plan.declined and only_adds(wish):
            return _by_words(plan, choices, documents, said, language)
        if plan.declined and _adds(wish) and _STORE.search(plan.declined):
            return plan.model_copy(update={"declined": say("declined_files_apart", language)})
        parts = [_apart(part, language) if part in plan.not_done and _adds(part.quote) else part for part in plan.parts]
        return plan.model_copy(update={"parts": parts})
    for value in plan.values:
        wanted = more_for(value.value) if value.node_id in held and value.param == STORE_FIELD else None
        known = next((one for one in stores if wanted in (one.id, one.name)), None)
        if known is None:
            continue
        same = known.id == held[value.node_id].id
        others = [one for one in plan.values if one is not value]
        chosen = [] if same else [value.model_copy(update={"value": known.id})]
        more = [*plan.document_stores, grown(known, documents)]
        plan = plan.model_copy(update={"values": [*others, *chosen], "document_stores": more})
    return plan


def _apart(part: Part, language: str) -> Part:
    return part.model_copy(update={"reason": say("declined_files_apart", language)})


def _by_words(
    plan: PlanContract,
    choices: Sequence[DocumentStoreView],
    documents: Sequence[AttachmentFacts],
    said: str,
    language: str,
) -> PlanContract:
    known = choices[0] if len(choices) == 1 else named_in(said, choices)
    if known is None:
        names = ", ".join(one.name for one in choices)
        return plan.model_copy(update={"declined": say("question_store_of_flow", language, names=names)})
    return plan.model_copy(
        update={
            "declined": None,
            "parts": [part.model_copy(update={"state": "covered", "reason": ""}) for part in plan.parts],
            "document_stores": [grown(known, documents)],
        }
    )
