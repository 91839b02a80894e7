"""Search index of the flows on each Flowise instance, shared by all processes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, LiteralString

from pydantic import TypeAdapter

from flowise_dev_agent.patch.views.picture import FlowPicture
from flowise_dev_agent.persistence.database import Database, DictRow, jsonb

#: Place of a word: the name, types and titles of nodes, or other texts.
Place = Literal["name", "nodes", "texts"]
#: Words of a text, in lower case.
WORD: Final = re.compile(r"\w+")
#: Maximum length of an indexed word, and of the prefix by which `Wanted` looks for a word.
_LONGEST_WORD: Final = 100
STEM: Final = 5
#: Maximum hits of one word; a more frequent word says little about the flow.
_MOST_HITS: Final = 1_000
#: Number of candidates by words, by name, and by date.
_LIKELY: Final = 50
_NAMED: Final = 100
_NEWEST: Final = 50


@dataclass(frozen=True)
class FlowRow:
    """A flow in short. `tags` are the user's own; secrets in texts are masked."""

    id: str
    updated_date: str
    name: str
    type: str
    tags: Sequence[str]
    draft: bool
    deployed: bool
    public: bool
    nodes: int
    node_types: Sequence[str]
    about: str


@dataclass(frozen=True)
class IndexedFlow:
    """A flow with its words, each with its best place. `sha256`: its text, once the watch has recorded it."""

    row: FlowRow
    words: Mapping[str, Place]
    picture: FlowPicture
    sha256: str | None = None


@dataclass(frozen=True)
class Wanted:
    """Search terms for a flow of one of these kinds.

    `ids`; `phrases` that may be its name (words joined by blanks); `stems`: words of less than `STEM` characters, or
    the prefixes of longer ones.
    """

    kinds: Sequence[str]
    ids: Sequence[str]
    phrases: Sequence[str]
    stems: Sequence[str]


@dataclass(frozen=True)
class FoundFlow:
    """A flow, and the place of each wanted stem in it."""

    row: FlowRow
    places: Mapping[str, Place]


@dataclass(frozen=True)
class Candidates:
    """Possible flows, last changed first; the number of all; and the number of flows with each stem, at most 1,000."""

    flows: Sequence[FoundFlow]
    total: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class PageKey:
    """Start of a page of found flows: after this one."""

    score: int
    updated_date: str
    id: str


@dataclass(frozen=True)
class FlowRows:
    """A page of flows, the number of matches and of all flows, and the key of the next page."""

    rows: Sequence[FlowRow]
    total: int
    searched: int
    next: PageKey | None


def words_of(text: str) -> list[str]:
    """The words of a text in the form in which they are compared."""
    return [word[:_LONGEST_WORD] for word in WORD.findall(text.casefold())]


_PICTURE: Final = TypeAdapter(FlowPicture)
_COLUMNS: Final[LiteralString] = "id, updated_date, name, type, tags, draft, deployed, public, nodes, node_types, about"
_OF_INSTANCE: Final[LiteralString] = "instance_id = %(instance)s AND endpoint = %(endpoint)s"
_USABLE: Final[LiteralString] = f"{_OF_INSTANCE} AND NOT draft AND type = ANY(%(kinds)s)"
_KEEP: Final = f"""
    INSERT INTO instance_flows AS kept (instance_id, endpoint, {_COLUMNS}, name_words, heading, words, picture, sha256,
        settings_seen)
    SELECT %(instance)s, %(endpoint)s, {_COLUMNS}, name_words, heading::tsvector, words::tsvector, picture, sha256,
        sha256 IS NOT NULL
    FROM jsonb_to_recordset(%(flows)s) AS given (
        id text, updated_date text, name text, type text, tags text[], draft boolean, deployed boolean, public boolean,
        nodes integer, node_types text[], about text, name_words text, heading text, words text, picture jsonb,
        sha256 text)
    ON CONFLICT (instance_id, endpoint, id) DO UPDATE SET
        updated_date = excluded.updated_date, name = excluded.name, type = excluded.type, tags = excluded.tags,
        draft = excluded.draft, deployed = excluded.deployed, public = excluded.public, nodes = excluded.nodes,
        node_types = excluded.node_types, about = excluded.about, name_words = excluded.name_words,
        heading = excluded.heading, words = excluded.words, picture = excluded.picture, sha256 = excluded.sha256,
        settings_seen = excluded.settings_seen
"""
_PAGE: Final = f"""
    WITH fitting AS (
        SELECT id, updated_date, (
            SELECT sum(CASE WHEN heading @@ in_name THEN 100 WHEN heading @@ in_nodes THEN 10 ELSE 1 END)::integer
            FROM unnest(%(in_name)s::tsquery[], %(in_nodes)s::tsquery[]) AS word (in_name, in_nodes)) AS score
        FROM instance_flows
        WHERE {_OF_INSTANCE} AND words @@ %(query)s::tsquery AND (%(drafts)s OR NOT draft)
    ), page AS (
        SELECT * FROM fitting
        WHERE %(score)s::integer IS NULL
        OR (score, updated_date, id) < (%(score)s::integer, %(updated_date)s::text COLLATE "C", %(id)s::text)
        ORDER BY score DESC, updated_date DESC, id DESC LIMIT %(limit)s
    )
    SELECT (SELECT count(*) FROM fitting) AS total, page.score, flow.*
    FROM page JOIN instance_flows AS flow ON {_OF_INSTANCE} AND flow.id = page.id
    ORDER BY page.score DESC, flow.updated_date DESC, flow.id DESC
"""
#: Without words: by date, in the order of the index.
_NEWEST_PAGE: Final = f"""
    SELECT (SELECT count(*) FROM instance_flows WHERE {_OF_INSTANCE} AND (%(drafts)s OR NOT draft)) AS total,
        0 AS score, {_COLUMNS}
    FROM instance_flows
    WHERE {_OF_INSTANCE} AND (%(drafts)s OR NOT draft)
    AND (%(score)s::integer IS NULL OR (updated_date, id) < (%(updated_date)s::text COLLATE "C", %(id)s::text))
    ORDER BY updated_date DESC, id DESC LIMIT %(limit)s
"""
_PLACE: Final[LiteralString] = """
    CASE WHEN heading @@ in_name THEN 'name' WHEN heading @@ in_nodes THEN 'nodes' ELSE 'texts' END
"""
#: Rare stems choose the flows; stems that nearly all flows have count only among the chosen ones.
_CANDIDATES: Final = f"""
    WITH wanted AS (
        SELECT *
        FROM unnest(%(stems)s::text[], %(queries)s::tsquery[], %(in_name)s::tsquery[], %(in_nodes)s::tsquery[])
            AS one (stem, query, in_name, in_nodes)
    ), usable AS (
        SELECT count(*) AS flows FROM instance_flows WHERE {_USABLE}
    ), hits AS MATERIALIZED (
        SELECT wanted.stem, hit.id, hit.place
        FROM wanted CROSS JOIN LATERAL (
            SELECT id, {_PLACE} AS place FROM instance_flows
            WHERE {_USABLE} AND words @@ wanted.query LIMIT %(most)s
        ) AS hit
    ), counts AS MATERIALIZED (
        SELECT stem, count(*) AS flows FROM hits GROUP BY stem
    ), likely AS (
        SELECT id FROM hits JOIN counts USING (stem), usable WHERE counts.flows < %(most)s
        GROUP BY id
        ORDER BY sum(ln(1 + (usable.flows + 1.0) / (1 + counts.flows))
                     * CASE place WHEN 'name' THEN 1.0 WHEN 'nodes' THEN 0.7 ELSE 0.6 END) DESC
        LIMIT %(likely)s
    ), chosen AS MATERIALIZED (
        SELECT id FROM likely
        UNION SELECT id FROM instance_flows WHERE {_USABLE} AND id = ANY(%(ids)s)
        UNION (SELECT id FROM instance_flows WHERE {_USABLE} AND name_words = ANY(%(phrases)s) LIMIT %(named)s)
        UNION (SELECT id FROM instance_flows WHERE {_USABLE} ORDER BY updated_date DESC, id DESC LIMIT %(newest)s)
    )
    SELECT {_COLUMNS}, (SELECT flows FROM usable) AS total,
        (SELECT jsonb_object_agg(stem, flows) FROM counts) AS counts,
        (SELECT jsonb_object_agg(stem, {_PLACE}) FROM wanted WHERE words @@ wanted.query) AS places
    FROM instance_flows WHERE {_OF_INSTANCE} AND id = ANY(ARRAY(SELECT id FROM chosen))
    ORDER BY updated_date DESC, id DESC
"""


class InstanceFlows:
    """The flows of one instance, by its id and endpoint: another endpoint is another server."""

    def __init__(self, database: Database, instance_id: str, endpoint: str) -> None:
        self._database = database
        self._instance = {"instance": instance_id, "endpoint": endpoint}

    # --- keeping ---------------------------------------------------------------------------------------------------

    async def dates(self, ids: Sequence[str], *, watched: bool = False) -> dict[str, str]:
        """Dates of the last change of these flows, as far as known; with `watched` of those that the watch recorded."""
        rows = await self._database.fetch_all(
            f"SELECT id, updated_date FROM instance_flows WHERE {_OF_INSTANCE} AND id = ANY(%(ids)s)"
            " AND (settings_seen OR NOT %(watched)s)",
            {**self._instance, "ids": list(ids), "watched": watched},
        )
        return {str(row["id"]): str(row["updated_date"]) for row in rows}

    async def count(self) -> int:
        """Number of known flows."""
        row = await self._database.fetch_one(
            f"SELECT count(*) AS flows FROM instance_flows WHERE {_OF_INSTANCE}", self._instance
        )
        return int(row["flows"]) if row else 0

    async def order(self) -> list[tuple[str, str]]:
        """Ids and dates of all known flows, last changed first."""
        rows = await self._database.fetch_all(
            f"SELECT id, updated_date FROM instance_flows WHERE {_OF_INSTANCE} ORDER BY updated_date DESC, id DESC",
            self._instance,
        )
        return [(str(row["id"]), str(row["updated_date"])) for row in rows]

    async def keep(self, flows: Sequence[IndexedFlow]) -> None:
        """Insert or update these flows."""
        async with self._database.connection() as connection:
            given = jsonb([_stored(flow) for flow in flows])
            await connection.execute(_KEEP, {**self._instance, "flows": given})

    async def forget(self, ids: Sequence[str]) -> None:
        """Delete flows that no longer exist."""
        async with self._database.connection() as connection:
            await connection.execute(
                f"DELETE FROM instance_flows WHERE {_OF_INSTANCE} AND id = ANY(%(ids)s)",
                {**self._instance, "ids": list(ids)},
            )

    async def learn(self) -> None:
        """Update the planner's statistics once there are many more rows; autovacuum does so much later."""
        async with self._database.connection() as connection:
            await connection.execute("SELECT learn_flows()")

    async def forget_other_server(self) -> None:
        """Delete the data of a server that the instance was before."""
        async with self._database.connection() as connection:
            await connection.execute(
                "DELETE FROM instance_flows WHERE instance_id = %(instance)s AND endpoint <> %(endpoint)s",
                self._instance,
            )

    # --- searching -------------------------------------------------------------------------------------------------

    async def page(self, text: str, *, drafts: bool, limit: int, after: PageKey | None) -> FlowRows:
        """Flows in which each word of `text` begins a word; words of the name count most, then the date."""
        queries = [f"{_quoted(word)}:*" for word in dict.fromkeys(words_of(text))]
        params = {
            **self._instance,
            "in_name": [f"{query}A" for query in queries],
            "in_nodes": [f"{query}B" for query in queries],
            "query": " & ".join(queries),
            "drafts": drafts,
            "limit": limit + 1,
            "score": after and after.score,
            "updated_date": after and after.updated_date,
            "id": after and after.id,
        }
        async with self._database.connection() as connection:
            # Unprepared: which index is best depends on the words.
            found = await connection.execute(_PAGE if queries else _NEWEST_PAGE, params, prepare=False)
            rows = await found.fetchall()
        shown = rows[:limit]
        last = shown[-1] if len(rows) > limit else None
        return FlowRows(
            rows=[_row(row) for row in shown],
            total=int(rows[0]["total"]) if rows else 0,
            searched=await self.count(),
            next=PageKey(int(last["score"]), str(last["updated_date"]), str(last["id"])) if last else None,
        )

    async def pictures(self, ids: Sequence[str]) -> dict[str, FlowPicture]:
        """Pictures of these flows, by id."""
        rows = await self._database.fetch_all(
            f"SELECT id, picture FROM instance_flows WHERE {_OF_INSTANCE} AND id = ANY(%(ids)s)",
            {**self._instance, "ids": list(ids)},
        )
        return {str(row["id"]): _PICTURE.validate_python(row["picture"]) for row in rows}

    async def candidates(self, wanted: Wanted) -> Candidates:
        """The named flows, those with most of the wanted words, and some that changed last."""
        queries = [f"{_quoted(stem)}:{'*' if len(stem) == STEM else ''}" for stem in wanted.stems]
        params = {
            **self._instance,
            "kinds": list(wanted.kinds),
            "ids": list(wanted.ids),
            "phrases": list(wanted.phrases),
            "stems": list(wanted.stems),
            "queries": queries,
            "in_name": [f"{query}A" for query in queries],
            "in_nodes": [f"{query}B" for query in queries],
            "most": _MOST_HITS,
            "likely": _LIKELY,
            "named": _NAMED,
            "newest": _NEWEST,
        }
        async with self._database.connection() as connection:
            rows = await (await connection.execute(_CANDIDATES, params, prepare=False)).fetchall()
        return Candidates(
            flows=[FoundFlow(_row(row), row["places"] or {}) for row in rows],
            total=int(rows[0]["total"]) if rows else 0,
            counts=(rows[0]["counts"] or {}) if rows else {},
        )


_ROW_FIELDS: Final = tuple(field.name for field in fields(FlowRow))


def _row(row: DictRow) -> FlowRow:
    return FlowRow(**{name: row[name] for name in _ROW_FIELDS})


def _stored(flow: IndexedFlow) -> dict[str, Any]:
    heading = [(word, "A" if place == "name" else "B") for word, place in flow.words.items() if place != "texts"]
    return {
        **asdict(flow.row),
        "name_words": " ".join(words_of(flow.row.name)),
        "heading": " ".join(f"{_quoted(word)}:1{weight}" for word, weight in heading),
        "words": _vector(flow.words),
        "picture": asdict(flow.picture),
        "sha256": flow.sha256,
    }


def _vector(words: Iterable[str]) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word quoted for tsvector and tsquery; it has neither quotes nor backslashes."""
    return f"'{word}'"
