"""Available domains: those of this package, and those of installed distributions (entry points)."""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from flowise_dev_agent.agent.domain import DomainCapability
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability
from flowise_dev_agent.errors import ConfigurationError

GROUP: Final = "flowise_dev_agent.domains"
#: Domain that owns the flows: always installed, and first.
FLOWISE: Final = FlowiseCapability.name


def _openapi() -> DomainCapability:
    from flowise_dev_agent.agent.domains.openapi import OpenApiCapability

    return OpenApiCapability()


def _workday() -> DomainCapability:
    from flowise_dev_agent.agent.domains.workday import WorkdayCapability

    return WorkdayCapability()


#: Domains loaded on use: a service may leave them out.
_OURS: Final[Mapping[str, Callable[[], DomainCapability]]] = {
    FLOWISE: FlowiseCapability,
    "openapi": _openapi,
    "workday": _workday,
}


def installed_domains(chosen: Sequence[str] = (), folder: Path | None = None) -> list[DomainCapability]:
    """Available domains, Flowise first: all installed ones, or the `chosen` (DOMAINS). Each may keep its knowledge in
    its own subfolder of `folder`.

    Raises:
        ConfigurationError: a chosen domain is not installed, two claim one name, or one cannot be loaded.
    """
    known = {**_OURS, **_of_distributions()}
    if missing := [name for name in chosen if name not in known]:
        raise ConfigurationError(
            f"DOMAINS names {', '.join(missing)}, which is not installed.",
            hint=f"Installed: {', '.join(known)}. Install the distribution that brings it, or correct DOMAINS.",
        )
    domains = [make() for name, make in known.items() if name == FLOWISE or not chosen or name in chosen]
    for domain in domains:
        domain.folder = (folder or Path()) / domain.name
    return domains


def _of_distributions() -> dict[str, Callable[[], DomainCapability]]:
    found: dict[str, Callable[[], DomainCapability]] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        if point.name in found or point.name in _OURS:
            raise ConfigurationError(
                f"The domain '{point.name}' of {_source(point)} is already there.",
                hint="Two domains cannot have one name: uninstall one of the distributions.",
            )
        found[point.name] = lambda point=point: _loaded(point)
    return found


def _loaded(point: EntryPoint) -> DomainCapability:
    hint = f"Correct or uninstall the distribution, or leave '{point.name}' out of DOMAINS."
    try:
        domain = point.load()()
    except Exception as error:
        raise ConfigurationError(
            f"The domain '{point.name}' of {_source(point)} cannot be loaded: {type(error).__name__}: {error}",
            hint=hint,
        ) from error
    if not isinstance(domain, DomainCapability) or domain.name != point.name:
        raise ConfigurationError(
            f"The entry point '{point.name}' of {_source(point)} does not give a DomainCapability of this name.",
            hint=hint,
        )
    return domain


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
