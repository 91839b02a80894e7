"""Scopes that each route needs, and the door of a request."""

from collections.abc import Mapping
from typing import Final, get_args

from fastapi import Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from flowise_dev_agent.caller import Door, Right, Scope, require

READ: Final[tuple[Scope, ...]] = ("read",)
BUILD: Final[tuple[Scope, ...]] = ("build",)
APPROVE: Final[tuple[Scope, ...]] = ("approve",)
ADMIN: Final[tuple[Scope, ...]] = ("admin",)
#: Whoever takes part. An answer that lets something be written needs `approve`, which the session service checks.
TAKE_PART: Final[tuple[Scope, ...]] = ("build", "approve")

#: Whoever holds a share link, and nobody else: what it shows follows from the link.
SHARED: Final[tuple[Right, ...]] = ("share",)

#: One of the rights opens the route; without any it is open to all. What is missing here is for `admin` alone.
ROUTES: Final[Mapping[str, tuple[Right, ...]]] = {
    "POST /sessions": BUILD,
    "POST /sessions/stream": BUILD,
    # A message that starts a session needs `build`, an answer that decides `approve`.
    "POST /process-conversation": TAKE_PART,
    "GET /sessions": READ,
    "GET /sessions/expected-cost": READ,
    "GET /sessions/{session_id}": READ,
    "DELETE /sessions/{session_id}": BUILD,
    "PATCH /sessions/{session_id}/name": BUILD,
    "GET /sessions/{session_id}/summary": READ,
    "POST /sessions/{session_id}/resume": TAKE_PART,
    "POST /sessions/{session_id}/stream": TAKE_PART,
    "POST /sessions/{session_id}/cancel": TAKE_PART,
    "POST /sessions/{session_id}/retry": BUILD,
    "GET /sessions/{session_id}/stream": READ,
    "GET /sessions/{session_id}/events": READ,
    "GET /sessions/{session_id}/decisions": READ,
    "GET /sessions/{session_id}/artifacts": READ,
    "GET /sessions/{session_id}/artifacts/{artifact_id}": READ,
    "GET /plans/{plan_id}/artifacts": READ,
    "GET /plans/{plan_id}/artifacts/{artifact_id}": READ,
    "GET /memories/{memory_id}/artifacts": READ,
    "GET /memories/{memory_id}/artifacts/{artifact_id}": READ,
    "GET /milestones/{milestone_id}/artifacts": READ,
    "GET /milestones/{milestone_id}/artifacts/{artifact_id}": READ,
    "GET /flowcharts/{flowchart_id}/nodes/{flowchart_node_id}/decision-artifacts": READ,
    "GET /flowcharts/{flowchart_id}/nodes/{flowchart_node_id}/decision-artifacts/{artifact_id}": READ,
    "GET /sessions/{session_id}/design": READ,
    "GET /sessions/{session_id}/preview": READ,
    "GET /sessions/{session_id}/turns": READ,
    "GET /sessions/{session_id}/traces/{sha256}": READ,
    "GET /sessions/{session_id}/change": READ,
    "GET /sessions/{session_id}/versions": READ,
    "GET /sessions/{session_id}/versions/{label}/graph": READ,
    "GET /sessions/{session_id}/certificate": READ,
    "POST /sessions/{session_id}/tests/{number}/verdict": TAKE_PART,
    "GET /flows/{chatflow_id}/guard": READ,
    "PUT /flows/{chatflow_id}/guard": BUILD,
    "DELETE /flows/{chatflow_id}/guard": BUILD,
    "GET /flows/{chatflow_id}/tests": READ,
    "PUT /flows/{chatflow_id}/tests": BUILD,
    "GET /certificates/keys": READ,
    "GET /sessions/{session_id}/diff": READ,
    "POST /sessions/{session_id}/rollback": APPROVE,
    "GET /sessions/{session_id}/deliveries": READ,
    "POST /sessions/{session_id}/deliveries/{delivery_id}/replay": BUILD,
    "POST /attachments": BUILD,
    "GET /attachments": READ,
    "GET /attachments/{attachment_id}": READ,
    "DELETE /attachments/{attachment_id}": BUILD,
    "GET /deliveries": READ,
    "GET /designs/schema": READ,
    "GET /fleet": READ,
    "GET /fleet/export": READ,
    "GET /flows": READ,
    "GET /flows/{chatflow_id}/graph": READ,
    "GET /flows/{chatflow_id}/summary": READ,
    "GET /flows/{chatflow_id}/reach": READ,
    "GET /flows/{chatflow_id}/conversation": READ,
    "GET /flows/{chatflow_id}/history": READ,
    "GET /flows/{chatflow_id}/compare": READ,
    "GET /flows/{chatflow_id}/versions": READ,
    "PUT /flows/{chatflow_id}/versions/{version}/bookmark": BUILD,
    "DELETE /flows/{chatflow_id}/versions/{version}/bookmark": BUILD,
    # These leave nothing out, secrets that stand in a flow included.
    "GET /flows/{chatflow_id}/export": BUILD,
    "GET /flows/{chatflow_id}/versions/{version}/export": BUILD,
    "GET /flows/{chatflow_id}/ops": BUILD,
    # Writes without a plan that somebody else approves.
    "POST /flows/import": APPROVE,
    "POST /flows/import/read": BUILD,
    "POST /flows/{chatflow_id}/apply": APPROVE,
    "POST /flows/{chatflow_id}/promote": APPROVE,
    "POST /flows/{chatflow_id}/versions/{version}/restore": APPROVE,
    "POST /flows/preview": READ,
    "POST /flows/validate": BUILD,
    "POST /flows/{chatflow_id}/test": BUILD,
    "POST /flows/test": BUILD,
    "GET /tests/{test_id}": READ,
    "GET /tests/{test_id}/traces/{sha256}": READ,
    "POST /flows/{chatflow_id}/chat": BUILD,
    "DELETE /flows/{chatflow_id}/chat/{chat_id}": BUILD,
    "GET /shares": READ,
    "POST /shares": BUILD,
    "DELETE /shares/{share_id}": BUILD,
    "GET /shared": SHARED,
    "GET /shared/versions/{version}": SHARED,
    "GET /instances": READ,
    "GET /connections": READ,
    "PUT /connections/flowise": ADMIN,
    "PUT /connections/model": ADMIN,
    "DELETE /connections/flowise": ADMIN,
    "DELETE /connections/model": ADMIN,
    "GET /knowledge": READ,
    "GET /knowledge/search": READ,
    "POST /knowledge/{instance_id}/refresh": BUILD,
    "GET /nodes": READ,
    "GET /nodes/icons": READ,
    "GET /nodes/{name}": READ,
    "POST /nodes/{name}/options": READ,
    "GET /document-stores": READ,
    "GET /variables": READ,
    "POST /document-stores/{store_id}/refresh": APPROVE,
    "GET /credentials": READ,
    "GET /credentials/types": READ,
    "POST /credentials": APPROVE,
    "GET /memories": READ,
    "POST /memories": BUILD,
    "DELETE /memories/{memory_id}": BUILD,
    "GET /patterns": READ,
    "GET /patterns/export": READ,
    "POST /patterns/import": BUILD,
    "DELETE /patterns/{pattern_id}": BUILD,
    "GET /audit": READ,
    "GET /audit/export": READ,
    "GET /audit/verify": READ,
    "DELETE /audit/words": ADMIN,
    "GET /keys": ADMIN,
    "GET /owners": ADMIN,
    "POST /keys": ADMIN,
    "GET /keys/current": READ,
    "POST /keys/{key_id}/rotate": ADMIN,
    "DELETE /keys/{key_id}": ADMIN,
    "GET /settings": READ,
    "GET /health": READ,
    "GET /info": READ,
    "GET /ready": (),
    "GET /metrics": READ,
    "GET /auth/sign-in": (),
    "GET /auth/callback": (),
    "POST /auth/sign-out": (),
    "GET /.well-known/oauth-protected-resource": (),
    "GET /.well-known/oauth-protected-resource/mcp": (),
    "GET /live": (),
    "GET /": (),
    "GET /docs": (),
}


def _by_path() -> dict[str, frozenset[str]]:
    paths: dict[str, set[str]] = {}
    for route in ROUTES:
        method, _, path = route.partition(" ")
        paths.setdefault(path, set()).add(method)
    return {path: frozenset(methods) for path, methods in paths.items()}


_WHOLE: Final = {path: methods for path, methods in _by_path().items() if "{" not in path}
_PATTERNS: Final = tuple(
    (method, compile_path(path)[0]) for path, methods in _by_path().items() if "{" in path for method in methods
)

#: Sent by our own clients; a statement for the record, which opens nothing.
DOOR_HEADER: Final = "x-door"
#: For which owner a key with the scope `admin` acts; its own without it.
OWNER_HEADER: Final = "x-owner"
_DOORS: Final[Mapping[str, Door]] = {door: door for door in get_args(Door) if door in {"cli", "mcp", "webhook"}}


def methods_of(path: str) -> frozenset[str]:
    """The methods of a path, of its own route if that names it whole, else of the routes that match.

    Empty for an unknown path.
    """
    return _WHOLE.get(path) or frozenset(method for method, fits in _PATTERNS if fits.match(path))


async def authorize(request: Request) -> None:
    """Check the caller's scope for the route; a dependency of every route.

    Raises ScopeMissingError, and a 405 if the path matches only other routes (`DELETE /keys/current` names no key).
    """
    allowed = methods_of(request.url.path)
    if allowed and request.method.replace("HEAD", "GET") not in allowed:
        raise HTTPException(405)
    path = getattr(request.scope.get("route"), "path", "")
    require(*ROUTES.get(f"{request.method.replace('HEAD', 'GET')} {path}", ADMIN))


def door_of(headers: Headers) -> Door:
    """The door of a request: named by our clients, else the page if a browser sends it, else REST."""
    if named := _DOORS.get(headers.get(DOOR_HEADER, "")):
        return named
    # Browsers add these by themselves; the first one only where the address is https or this machine.
    from_page = headers.get("sec-fetch-site") == "same-origin" or "origin" in headers
    return "page" if from_page else "rest"
