"""The fleet: all flows of an instance with their state, from the index, versions, checks and tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.persistence.flow_versions import EVERY_VERSION

#: A flow without any of them is healthy.
_STATES: Final[LiteralString] = """
    CASE WHEN outside THEN 'changed_outside' END,
    CASE WHEN NOT passed THEN 'failing' END,
    CASE WHEN errors <> '{}' THEN 'broken' END,
    CASE WHEN codes && ARRAY['MODEL_ENDED', 'MODEL_ENDS'] THEN 'ending_model' END,
    CASE WHEN codes && ARRAY['VERSION_DRIFT'] THEN 'outdated_nodes' END,
    CASE WHEN codes && ARRAY['CREDENTIAL_UNBOUND', 'CREDENTIAL_UNKNOWN', 'CREDENTIAL_MAY_LACK',
                             'NESTED_CREDENTIAL_UNBOUND'] THEN 'missing_credential' END,
    CASE WHEN tested_at IS NULL THEN 'never_tested' END,
    CASE WHEN checked_at IS NULL THEN 'not_checked' END
"""
_PAGE: Final[LiteralString] = f"""
    WITH known AS (
        SELECT flow.id, flow.name, flow.type, flow.updated_date, flow.deployed, flow.nodes, flow.codes, flow.errors,
            flow.checked_at, tested.at AS tested_at, tested.passed, wrote.actor AS owner,
            COALESCE(last.version > 1 AND last.reason ~ '^(before_|after_|flowise$)' AND last.first IS NOT TRUE, false)
                AS outside
        FROM instance_flows AS flow
        LEFT JOIN LATERAL (
            SELECT version, reason, first FROM {EVERY_VERSION} AS every
            WHERE instance_id = %(instance)s AND chatflow_id = flow.id ORDER BY id DESC LIMIT 1
        ) AS last ON true
        LEFT JOIN LATERAL (
            SELECT at, passed FROM (
                SELECT updated_at AS at, NOT trials @> '[{{"passed": false}}]' AS passed FROM flow_tests
                WHERE chatflow_id = flow.id AND instance_id = %(instance)s AND status = 'done'
                UNION ALL
                SELECT updated_at, (result -> 'verdict' ->> 'done')::boolean FROM sessions
                WHERE chatflow_id = flow.id AND instance_id = %(instance)s AND result -> 'verdict' ? 'done'
            ) AS held ORDER BY at DESC LIMIT 1
        ) AS tested ON true
        LEFT JOIN LATERAL (
            SELECT actor FROM audit_log
            WHERE chatflow_id = flow.id AND instance_id = %(instance)s AND action LIKE 'write.%%'
            ORDER BY id DESC LIMIT 1
        ) AS wrote ON true
        WHERE flow.instance_id = %(instance)s AND flow.endpoint = %(endpoint)s AND NOT flow.draft
        AND (%(words)s::text IS NULL OR strpos(lower(flow.name), lower(%(words)s)) > 0)
    ), told AS (
        SELECT *, array_remove(ARRAY[{_STATES}], NULL) AS states FROM known
    )
    SELECT id, name, type, updated_date, deployed, nodes, COALESCE(codes, '{{}}') AS codes, checked_at, tested_at,
        owner, CASE WHEN states = '{{}}' THEN ARRAY['healthy'] ELSE states END AS states
    FROM told
    WHERE (%(state)s::text IS NULL OR %(state)s = ANY(states) OR %(state)s = 'healthy' AND states = '{{}}')
    AND (%(owner)s::text IS NULL OR owner = %(owner)s)
    AND (%(date)s::text IS NULL OR (updated_date, id) < (%(date)s COLLATE "C", %(id)s))
    ORDER BY updated_date DESC, id DESC LIMIT %(limit)s
"""
#: Changed flows first, then those whose check is a day old: node types, credentials and announced ends change, too.
_UNCHECKED: Final = """
    SELECT id, name, type, sha256, checked_sha256, errors FROM instance_flows
    WHERE instance_id = %(instance)s AND endpoint = %(endpoint)s AND NOT draft AND sha256 <> ''
    AND (checked_sha256 IS DISTINCT FROM sha256 OR checked_at < now() - interval '1 day')
    ORDER BY checked_sha256 IS NOT DISTINCT FROM sha256, checked_at NULLS FIRST LIMIT %(limit)s
"""
_CHECKED: Final = """
    UPDATE instance_flows SET codes = %(codes)s, errors = %(errors)s, checked_sha256 = %(sha256)s, checked_at = now()
    WHERE instance_id = %(instance)s AND endpoint = %(endpoint)s AND id = %(id)s
"""


@dataclass(frozen=True)
class FleetRow:
    """A flow with its states."""

    id: str
    name: str
    type: str
    updated_date: str
    deployed: bool
    nodes: int
    codes: Sequence[str]
    checked_at: datetime | None
    tested_at: datetime | None
    #: Who wrote it last by a session; None if no session has.
    owner: str | None
    states: Sequence[str]


@dataclass(frozen=True)
class GoneFlow:
    """A flow that was deleted in Flowise."""

    id: str
    name: str
    type: str
    noticed_at: datetime


@dataclass(frozen=True)
class UncheckedFlow:
    """A flow whose text has not been checked lately, with the keys of the errors that the last check found."""

    id: str
    name: str
    type: str
    sha256: str
    checked_sha256: str | None
    errors: Sequence[str] | None


@dataclass(frozen=True)
class FleetFilter:
    """Flows in this state, of this owner, with these words in their name; None is any."""

    state: str | None = None
    owner: str | None = None
    words: str | None = None


@dataclass(frozen=True)
class FleetKey:
    """Start of a page: after this flow."""

    updated_date: str
    id: str


class Fleet:
    """The flows of one instance, as far as the watch or a search has read them."""

    def __init__(self, database: Database, instance_id: str, endpoint: str) -> None:
        self._database = database
        self._instance = {"instance": instance_id, "endpoint": endpoint}

    async def page(self, wanted: FleetFilter, *, limit: int, after: FleetKey | None) -> list[FleetRow]:
        """Flows that fit the filter, changed last first."""
        key = {"date": after and after.updated_date, "id": after and after.id}
        return await self._database.rows(FleetRow, _PAGE, {**self._instance, **key, **vars(wanted), "limit": limit})

    async def gone(self, limit: int) -> list[GoneFlow]:
        """Flows that were deleted in Flowise, the latest first."""
        return await self._database.rows(
            GoneFlow,
            "SELECT id, name, type, noticed_at FROM deleted_flows WHERE instance_id = %(instance)s"
            " AND endpoint = %(endpoint)s ORDER BY noticed_at DESC, id LIMIT %(limit)s",
            {**self._instance, "limit": limit},
        )

    async def unchecked(self, limit: int) -> list[UncheckedFlow]:
        """Flows to be checked next."""
        return await self._database.rows(UncheckedFlow, _UNCHECKED, {**self._instance, "limit": limit})

    async def checked(self, flow: UncheckedFlow, codes: Sequence[str], errors: Sequence[str]) -> None:
        """Store what a check of this text found."""
        params = {"id": flow.id, "sha256": flow.sha256, "codes": list(codes), "errors": list(errors)}
        async with self._database.connection() as connection:
            await connection.execute(_CHECKED, {**self._instance, **params})
