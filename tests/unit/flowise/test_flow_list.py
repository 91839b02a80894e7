"""What is known of each flow, read again only as far as something has changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from flowise_dev_agent.flowise.flow_list import refresh
from flowise_dev_agent.flowise.models import Chatflow, ChatflowPage


class Server:
    """Lists chatflows, last changed first."""

    def __init__(self, count: int) -> None:
        self.dates = {f"f{number:05}": number for number in range(count)}
        self.pages = 0
        self.rows = 0
        self.fails_after: int | None = None
        self.on_list: Callable[[], None] = lambda: None

    def change(self, id_: str) -> None:
        self.dates[id_] = max(self.dates.values()) + 1

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        if self.pages == self.fails_after:
            raise TimeoutError
        self.pages += 1
        ids = sorted(self.dates, key=lambda id_: -self.dates[id_])[(page - 1) * limit : page * limit]
        rows = [Chatflow(id=id_, name=id_, flow_data="{}", updated_date=f"{self.dates[id_]:06}") for id_ in ids]
        self.rows += len(rows)
        self.on_list()
        return ChatflowPage(data=rows, total=len(self.dates))


class Reader:
    """`KnownFlows` in memory. Reads, and says how many requests that took and which flows were looked into."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.known: dict[str, str] = {}
        self.made: list[str] = []

    async def dates(self, ids: Sequence[str], /) -> Mapping[str, str]:
        return {id_: self.known[id_] for id_ in ids if id_ in self.known}

    async def count(self) -> int:
        return len(self.known)

    async def order(self) -> Sequence[tuple[str, str]]:
        return sorted(self.known.items(), key=lambda item: (item[1], item[0]), reverse=True)

    async def keep(self, rows: Sequence[Chatflow], /) -> None:
        self.made += [row.id for row in rows]
        self.known |= {row.id: row.updated_date for row in rows}

    async def forget(self, ids: Sequence[str], /) -> None:
        for id_ in ids:
            del self.known[id_]

    async def read(self) -> tuple[int, list[str]]:
        self.server.pages, self.server.rows, self.made = 0, 0, []
        await refresh(cast(Any, self.server), self)
        assert self.known == {id_: f"{date:06}" for id_, date in self.server.dates.items()}
        return self.server.pages, self.made


async def test_flows_that_are_as_they_were_are_not_read_again_however_many_there_are() -> None:
    reader = Reader(Server(10_000))
    pages, made = await reader.read()
    assert (pages, len(made)) == (200, 10_000)
    assert await reader.read() == (1, [])


async def test_a_new_and_a_changed_flow_are_found_on_the_first_page() -> None:
    reader = Reader(Server(300))
    await reader.read()
    reader.server.change("f00007")
    reader.server.change("new")
    assert await reader.read() == (1, ["new", "f00007"])


async def test_many_changes_are_read_as_far_as_they_go() -> None:
    reader = Reader(Server(300))
    await reader.read()
    for number in range(60):
        reader.server.change(f"f{number:05}")
    pages, made = await reader.read()
    assert (pages, len(made)) == (2, 60)


async def test_a_flow_that_is_gone_is_found_among_10_000_by_looks_at_single_flows() -> None:
    reader = Reader(Server(10_000))
    await reader.read()
    for gone in (["f00000"], ["f04711"], ["f09999"], ["f00001", "f05000", "f09998"]):
        for id_ in gone:
            del reader.server.dates[id_]
        pages, made = await reader.read()
        assert (pages <= 1 + 15 * len(gone), made) == (True, []), gone
        assert reader.server.rows <= 50 + 15 * len(gone)


async def test_a_gone_flow_and_a_new_one_do_not_hide_each_other() -> None:
    reader = Reader(Server(10_000))
    await reader.read()
    del reader.server.dates["f04711"]
    reader.server.change("another")
    pages, made = await reader.read()
    assert (pages < 20, made) == (True, ["another"])


async def test_one_of_several_flows_of_the_same_moment_is_found_to_be_gone() -> None:
    server = Server(10_000)
    server.dates |= dict.fromkeys(("f05001", "f05002", "f05003"), 5_000)
    for gone in ("f05002", "f05000", "f05003"):
        reader = Reader(server)
        await reader.read()
        del server.dates[gone]
        pages, made = await reader.read()
        assert (pages < 25, made) == (True, [])


async def test_where_most_are_gone_or_of_one_moment_all_pages_are_read_once() -> None:
    few = Reader(Server(300))
    await few.read()
    del few.server.dates["f00003"]
    pages, made = await few.read()
    assert (pages <= 8, made) == (True, [])
    same = Reader(Server(10_000))
    same.server.dates = dict.fromkeys(same.server.dates, 7)
    await same.read()
    del same.server.dates["f00003"]
    pages, made = await same.read()
    assert (pages <= 220, made) == (True, [])


async def test_a_new_flow_of_the_same_moment_is_found_behind_known_ones() -> None:
    reader = Reader(Server(300))
    reader.server.dates = dict.fromkeys(reader.server.dates, 7)
    await reader.read()
    there = [*reader.server.dates]
    reader.server.dates = dict.fromkeys([*there[:100], "new", *there[100:]], 7)
    assert (await reader.read())[1] == ["new"]
    assert await reader.read() == (1, [])


async def test_a_reading_that_was_cut_off_goes_on_where_it_ended() -> None:
    reader = Reader(Server(10_000))
    reader.server.fails_after = 120
    try:
        await refresh(cast(Any, reader.server), reader)
    except TimeoutError:
        reader.server.fails_after = None
    pages, made = await reader.read()
    assert (pages, len(made)) == (1 + 80, 4_000)


async def test_a_list_that_changes_while_a_gone_flow_is_looked_for_is_read_whole() -> None:
    reader = Reader(Server(10_000))
    await reader.read()
    del reader.server.dates["f04711"]
    server = reader.server

    def once() -> None:
        if server.pages == 5:
            del server.dates["f00100"]

    server.on_list = once
    pages, made = await reader.read()
    assert (pages > 200, made) == (True, [])
