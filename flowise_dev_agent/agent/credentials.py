"""Credentials by type, ids only: matched if there is one choice, else asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.interrupts import option
from flowise_dev_agent.agent.state import AgentState, CredentialState, Update
from flowise_dev_agent.approval import manual_edits
from flowise_dev_agent.knowledge.credential_store import CredentialStore
from flowise_dev_agent.patch import GraphIR, PatchOp
from flowise_dev_agent.patch.model.labels import credential_name
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.interrupts import (
    CredentialCandidate,
    CredentialCheckData,
    CredentialCheckInterrupt,
    MissingCredential,
)
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.texts import sentences, text

#: Credential type -> credentials of the instance.
Available = Mapping[str, Sequence[CredentialCandidate]]


async def available_credentials(context: AgentContext, *, refresh: bool = False) -> Available:
    """The instance's credentials by type; `refresh` reads them again."""
    return by_type(await context.knowledge.credentials(refresh=refresh))


def by_type(store: CredentialStore) -> Available:
    """Group credentials by type."""
    found: dict[str, list[CredentialCandidate]] = {}
    for item in store.all():
        found.setdefault(item.type, []).append(CredentialCandidate(id=item.id, name=masked(item.name)))
    return found


def match_credentials(required: Sequence[str], available: Available, chosen: Mapping[str, str]) -> CredentialState:
    """Match required credential types: `chosen` holds the id of each matched type, `missing` the types to ask for.

    A credential is filled in by itself only when exactly one of its type exists; an earlier choice holds as long as the
    instance still has it.
    """
    choices: dict[str, str] = {}
    missing: list[MissingCredential] = []
    for type_ in dict.fromkeys(required):
        candidates = list(available.get(type_, ()))
        ids = [candidate.id for candidate in candidates]
        if chosen.get(type_) in ids:
            choices[type_] = chosen[type_]
        elif len(ids) == 1:
            choices[type_] = ids[0]
        else:
            missing.append(MissingCredential(type=type_, candidates=candidates))
    return CredentialState(chosen=choices, missing=missing)


async def with_edits(
    state: AgentState, context: AgentContext, ops: Sequence[PatchOp], base: GraphIR
) -> tuple[Plan, CredentialState]:
    """Plan with the person's ops for the flow `base`, and the credentials that it then needs."""
    schemas = (await context.knowledge.nodes()).schemas
    plan = state.plan.current
    wider = manual_edits.with_ops(plan, ops, base, schemas)
    if wider.credential_requirements == plan.credential_requirements:
        return wider, state.credentials
    available = await available_credentials(context)
    return wider, match_credentials(wider.credential_requirements, available, state.credentials.chosen)


def credential_question(missing: list[MissingCredential]) -> CredentialCheckInterrupt:
    """Interrupt that asks for the missing credentials."""
    absent = [credential_name(item.type) for item in missing if not item.candidates]
    several = [credential_name(item.type) for item in missing if item.candidates]
    parts: list[str] = []
    if absent:
        parts.append(text("interrupt.credential_missing", types=absent))
    if several:
        parts.append(text("interrupt.credential_ambiguous", types=several))
    options = [option("retry")]
    if several:
        options.append(option("choose"))
    options += [
        option("skip"),
        option("cancel"),
    ]
    return CredentialCheckInterrupt(
        reason="credential_missing" if absent else "credential_ambiguous",
        message=sentences(*parts),
        options=options,
        data=CredentialCheckData(credentials=missing),
    )


async def settle_credentials(state: AgentState, context: AgentContext, answer: dict[str, Any]) -> Update:
    """State update for an answer to the credential question."""
    credentials = state.credentials
    match answer["action"]:
        case "cancel":
            return {"answer": answer, "outcome": "cancelled"}
        case "skip":
            skipped = [item.type for item in credentials.missing]
            return {"answer": answer, "credentials": CredentialState(missing=[], skipped=skipped)}
        case "choose":
            chosen: dict[str, str] = answer["choose"]
            left = [item for item in credentials.missing if item.type not in chosen]
            settled = CredentialState(missing=left, chosen={**credentials.chosen, **chosen})
            return {"answer": answer, "credentials": settled}
        case _:
            available = await available_credentials(context, refresh=True)
            required = state.plan.current.credential_requirements
            return {"answer": answer, "credentials": match_credentials(required, available, credentials.chosen)}
