"""Which credential goes where: ids only, and never a guess."""

from collections.abc import Mapping, Sequence

from flowise_dev_agent.agent.context import AgentContext
from flowise_dev_agent.agent.state import CredentialState
from flowise_dev_agent.contracts.interrupts import CredentialCandidate, MissingCredential

#: Credential type -> those of the instance.
Available = Mapping[str, Sequence[CredentialCandidate]]


async def available_credentials(context: AgentContext, *, refresh: bool = False) -> Available:
    """The instance's credentials by type; `refresh` reads them again."""
    store = await context.knowledge.credentials(refresh=refresh)
    by_type: dict[str, list[CredentialCandidate]] = {}
    for item in store.all():
        by_type.setdefault(item.type, []).append(CredentialCandidate(id=item.id, name=item.name))
    return by_type


def match_credentials(required: Sequence[str], available: Available, chosen: Mapping[str, str]) -> CredentialState:
    """What is bound for each type (`chosen`), and what needs the person (`missing`).

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
