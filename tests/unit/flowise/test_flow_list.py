"""What is known of each flow, read again only as far as something has changed."""

from typing import Any, cast

from flowise_dev_agent.flowise.flow_list import FlowList
from flowise_dev_agent.flowise.models import Chatflow, ChatflowPage


class Server:
    """Lists chatflows, last changed first."""

    def __init__(self, count: int) -> None:
        self.dates = {f"f{number}": number for number in range(count)}
        self.pages = 0

    def change(self, id_: str) -> None:
        self.dates[id_] = max(self.dates.values()) + 1

    async def list_chatflows(self, page: int, limit: int) -> ChatflowPage:
        self.pages += 1
        ids = sorted(self.dates, key=lambda id_: -self.dates[id_])[(page - 1) * limit : page * limit]
        rows = [Chatflow(id=id_, name=id_, flow_data="{}", updated_date=f"{self.dates[id_]:06}") for id_ in ids]
        return ChatflowPage(data=rows, total=len(self.dates))


class Reader:
    """Reads, and says how many pages that took and which flows were looked into."""

    def __init__(self, server: Server, most: int = 20_000) -> None:
        self.server = server
        self.made: list[str] = []
        self.flows = FlowList(self._make, most)

    def _make(self, row: Chatflow) -> tuple[str, str]:
        self.made.append(row.id)
        return row.id, row.updated_date

    async def read(self) -> tuple[list[str], int, list[str]]:
        self.server.pages, self.made = 0, []
        found = await self.flows.read(cast(Any, self.server))
        assert all(int(date) == self.server.dates[id_] for id_, date in found)
        return [id_ for id_, _ in found], self.server.pages, self.made


async def test_flows_that_are_as_they_were_are_not_read_again_however_many_there_are() -> None:
    server = Server(10_000)
    reader = Reader(server)
    everything, pages, made = await reader.read()
    assert (len(everything), pages, len(made)) == (10_000, 200, 10_000)
    again, pages, made = await reader.read()
    assert (again, pages, made) == (everything, 1, [])


async def test_a_new_and_a_changed_flow_are_found_on_the_first_page_and_stand_first() -> None:
    server = Server(300)
    reader = Reader(server)
    await reader.read()
    server.change("f7")
    server.change("new")
    found, pages, made = await reader.read()
    assert (found[:2], len(found), pages, made) == (["new", "f7"], 301, 1, ["new", "f7"])


async def test_many_changes_are_read_as_far_as_they_go() -> None:
    server = Server(300)
    reader = Reader(server)
    await reader.read()
    for number in range(60):
        server.change(f"f{number}")
    found, pages, made = await reader.read()
    assert (len(found), pages, len(made)) == (300, 2, 60)


async def test_a_flow_that_is_gone_is_gone_and_the_others_are_not_looked_into_again() -> None:
    server = Server(300)
    reader = Reader(server)
    await reader.read()
    del server.dates["f3"]
    found, _, made = await reader.read()
    assert (len(found), "f3" in found, made) == (299, False, [])
    del server.dates["f4"]
    server.change("another")
    found, _, made = await reader.read()
    assert (len(found), "f4" in found, set(made)) == (299, False, {"another"})


async def test_only_the_flows_changed_last_are_kept() -> None:
    server = Server(300)
    reader = Reader(server, most=100)
    found, pages, _ = await reader.read()
    assert (len(found), found[0], pages) == (100, "f299", 2)
    server.change("f0")
    found, pages, made = await reader.read()
    assert (len(found), found[0], pages) == (100, "f0", 1)
    assert made == ["f0"]
