"""Routes for versions of flows: list, compare, restore."""

from typing import Annotated

from fastapi import Query, Request

from flowise_dev_agent.api.deps import FlowId, IfMatch, SessionId, engine, part_of
from flowise_dev_agent.api.once import ONCE, OnceRoute
from flowise_dev_agent.api.responses import FLOWISE, REPEATED, declared
from flowise_dev_agent.api.routes.flows import Version
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.certificates import CertificateKeys, SignedCertificate
from flowise_dev_agent.schemas.versions import (
    Bookmark,
    NumberedVersions,
    RolledBack,
    TakenBack,
    VersionDiff,
    VersionList,
)
from flowise_dev_agent.sessions.version_history import FlowVersions

router = Routes(tags=["versions"], route_class=OnceRoute)


FlowVersionsDep = Annotated[FlowVersions, part_of("versions")]
#: Of a chatflow; the column is an integer.
MAX_VERSION = 2**31 - 1
Label = Annotated[str | None, Query(max_length=20, description="A label such as `v1.0`.")]


@router.get("/sessions/{session_id}/versions", responses=declared("session_not_found"))
async def list_session_versions(session_id: SessionId, versions: FlowVersionsDep) -> VersionList:
    """The versions of the session's flow before and after each of its writes, oldest first."""
    return await versions.of_session(session_id)


@router.get(
    "/sessions/{session_id}/certificate",
    responses=declared("session_not_found", "no_certificate", "certificate_not_signable"),
)
async def get_certificate(request: Request, session_id: SessionId) -> SignedCertificate:
    """The certificate of the version that was accepted: its hash, its tests with level and result, models, server, who
    accepted it, and the rows of the audit log; signed. `flowise-dev-agent verify` checks it without a service."""
    return await engine(request).certificates.of_session(session_id)


@router.get("/certificates/keys", responses=declared())
async def list_certificate_keys(request: Request) -> CertificateKeys:
    """The public keys that certificates are checked with: the one that signs, earlier ones, and revoked ones."""
    return engine(request).certificates.keys()


@router.get("/sessions/{session_id}/diff", responses=declared("session_not_found", "version_not_found"))
async def diff_session_versions(
    session_id: SessionId,
    versions: FlowVersionsDep,
    from_: Annotated[str | None, Query(alias="from", max_length=20, description="Label; the first version.")] = None,
    to: Annotated[str | None, Query(max_length=20, description="Label; the last version.")] = None,
) -> VersionDiff:
    """The differences between two versions, in words and as data."""
    return await versions.diff(session_id, from_, to)


@router.post(
    "/sessions/{session_id}/rollback",
    dependencies=[ONCE],
    responses=declared(
        "session_not_found",
        "version_not_found",
        "flowise_not_found",
        "session_conflict",
        "server_changed",
        "stale_base",
        "write_failed",
        *REPEATED,
        *FLOWISE,
    ),
)
async def rollback_session(
    session_id: SessionId,
    versions: FlowVersionsDep,
    if_match: IfMatch,
    version: Label = None,
    created: Annotated[
        TakenBack | None, Query(description="For a session that made its flow: delete it, or undeploy it.")
    ] = None,
) -> RolledBack:
    """Write a version back to the flow, the first one when none is named; read back before it answers.

    Works for sessions that ended long ago. What the flow holds now is kept as a version first. A flow that the session
    made is deleted or undeployed with `created`, unless somebody has changed it since.
    """
    return await versions.rollback(session_id, version, created=created, expected=if_match)


@router.get("/flows/{chatflow_id}/history", responses=declared())
async def list_flow_versions(
    chatflow_id: FlowId,
    versions: FlowVersionsDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> VersionList:
    """Versions of a chatflow across all sessions, newest first."""
    return await versions.of_chatflow(str(chatflow_id), limit=limit)


@router.get("/flows/{chatflow_id}/versions", responses=declared())
async def list_numbered_versions(
    chatflow_id: FlowId,
    versions: FlowVersionsDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[int | None, Query(ge=1, le=MAX_VERSION, description="`next_before` of the page before.")] = None,
) -> NumberedVersions:
    """The versions of a chatflow as people count them: v1, v2, ... over all sessions, newest first, with the
    requirement that led to each."""
    return await versions.numbered(str(chatflow_id), limit=limit, before=before)


@router.put(
    "/flows/{chatflow_id}/versions/{version}/bookmark",
    status_code=204,
    responses=declared("version_not_found", "secret_in_text"),
)
async def put_bookmark(chatflow_id: FlowId, version: Version, body: Bookmark, versions: FlowVersionsDep) -> None:
    """Mark a version to be found again, with a note if wanted; another note replaces the one before."""
    await versions.bookmark(str(chatflow_id), int(version.removeprefix("v")), body.note)


@router.delete(
    "/flows/{chatflow_id}/versions/{version}/bookmark", status_code=204, responses=declared("version_not_found")
)
async def delete_bookmark(chatflow_id: FlowId, version: Version, versions: FlowVersionsDep) -> None:
    """Take the mark of a version away."""
    await versions.bookmark(str(chatflow_id), int(version.removeprefix("v")), None)
