"""Which credential goes where: ids only, and never a guess."""

from flowise_dev_agent.agent.context import AgentContext

#: Credential type -> [{id, name}] of the instance.
Available = dict[str, list[dict[str, str]]]


async def available_credentials(context: AgentContext, *, refresh: bool = False) -> Available:
    """The instance's credentials by type; `refresh` reads them anew."""
    store = await context.knowledge.credentials(refresh=refresh)
    by_type: Available = {}
    for item in store.all():
        by_type.setdefault(item.type, []).append({"id": item.id, "name": item.name})
    return by_type


def match_credentials(
    required: list[str], available: Available, chosen: dict[str, str]
) -> tuple[dict[str, str], list[dict[str, object]]]:
    """(type -> id to bind, types the person must see to: `{type, candidates}`).

    A credential is filled in by itself only when exactly one of its type exists; an earlier choice holds as long as the
    instance still has it.
    """
    choices: dict[str, str] = {}
    missing: list[dict[str, object]] = []
    for type_ in dict.fromkeys(required):
        candidates = available.get(type_, [])
        ids = [item["id"] for item in candidates]
        if chosen.get(type_) in ids:
            choices[type_] = chosen[type_]
        elif len(ids) == 1:
            choices[type_] = ids[0]
        else:
            missing.append({"type": type_, "candidates": candidates})
    return choices, missing
