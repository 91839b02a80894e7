"""The real publisher over a simulated Flowise, intent log and scheduler: everything that can happen, by a seed.

Workers are coroutines that stop at each await; the scheduler goes on with any of them, crashes one, freezes one while
another takes its lease, or lets a person or a late call act in between. Nothing waits and nothing is random but the
seed, so a trial takes about a millisecond and can be repeated.
"""

from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from types import coroutine
from typing import Any
from uuid import UUID

from flowise_dev_agent.errors import (
    AgentError,
    FlowiseConnectionLostError,
    FlowiseNotFoundError,
    FlowiseServerError,
    FlowiseTimeoutError,
    FlowiseUnreachableError,
    LeaseLostError,
)
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence import Lease, WriteIntent
from flowise_dev_agent.publish import Base, Publisher, Stale, draft_tag, flow_tag, remove_unclaimed
from tests.unit.publish.fakes import FakeIntents, FakeVersions

SESSION = UUID("11111111-1111-4111-8111-111111111111")
NAME = "Bot"
_FAULTS_UNTIL_ATTEMPT = 6
_MOST_STEPS = 5_000


def text(name: str) -> str:
    return f'{{"nodes":[],"edges":[],"by":"{name}"}}'


@coroutine
def pause() -> Generator[None]:
    """An await at which the scheduler decides what comes next."""
    yield


class Server:
    """A Flowise whose answers may be lost, late, doubled or refused, and whose lists may be old."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.faults = True
        self.flows: dict[str, Chatflow] = {}
        self.late: list[Callable[[], object]] = []
        #: Rows that a person made or changed, and texts of people that a worker took away although it had read them.
        self.persons: set[str] = set()
        self.person_texts: set[str] = set()
        self.taken: list[str] = []
        self.unread = 0
        self.deleted: list[Chatflow] = []
        #: The worker that acts, and what each has read.
        self.acting = 0
        self.read: set[tuple[int, str]] = set()
        #: The request now made is of a worker that was frozen in between: nothing can hold it back.
        self.frozen_acts = False
        self._ticks = count(1)

    def now(self) -> str:
        return f"2026-01-01T00:00:00.{next(self._ticks):06d}Z"

    # --- what a request does ---

    def make(self, row: ChatflowCreate) -> Chatflow:
        now = self.now()
        made = Chatflow(id=f"flow-{now}", created_date=now, updated_date=now, **row.model_dump())
        self.flows[made.id] = made
        return made

    def change(self, chatflow_id: str, *, is_late: bool = False, **fields: Any) -> Chatflow:
        row = self._row(chatflow_id)
        if "flow_data" in fields and row.flow_data in self.person_texts and fields["flow_data"] != row.flow_data:
            self._take(row, is_late=is_late)
        self.flows[chatflow_id] = row.model_copy(update={**fields, "updated_date": self.now()})
        return self.flows[chatflow_id]

    def remove(self, chatflow_id: str, *, is_late: bool = False) -> None:
        row = self._row(chatflow_id)
        self.deleted.append(row)
        if row.flow_data in self.person_texts:
            self._take(row, is_late=is_late)
        del self.flows[chatflow_id]

    def _take(self, row: Chatflow, *, is_late: bool) -> None:
        # A request that is under way, and one of a worker that was frozen before it, cannot be held back.
        if is_late or self.frozen_acts or (self.acting, row.flow_data) not in self.read:
            self.unread += 1
        else:
            self.taken.append(row.flow_data)

    def _row(self, chatflow_id: str) -> Chatflow:
        if chatflow_id not in self.flows:
            raise FlowiseNotFoundError("gone")
        return self.flows[chatflow_id]

    # --- the client ---

    async def create_chatflow(self, row: ChatflowCreate) -> Chatflow:
        return await self._write(lambda: self.make(row), lambda: self.make(row), again=True)

    async def update_chatflow(self, chatflow_id: str, **fields: Any) -> Chatflow:
        return await self._write(
            lambda: self.change(chatflow_id, **fields), lambda: self.change(chatflow_id, is_late=True, **fields)
        )

    async def delete_chatflow(self, chatflow_id: str) -> None:
        await self._write(lambda: self.remove(chatflow_id), lambda: self.remove(chatflow_id, is_late=True))

    async def get_chatflow(self, chatflow_id: str) -> Chatflow:
        await pause()
        self._refuse(0.03)
        row = self._row(chatflow_id)
        self.read.add((self.acting, row.flow_data))
        await pause()
        return row

    async def find_chatflow_by_category_tag(self, tag: str) -> list[Chatflow]:
        await pause()
        self._refuse(0.03)
        rows = [row for row in self.flows.values() if tag in row.tags]
        if rows and self.faults and self.random.random() < 0.05:
            rows.pop()  # an old list
        await pause()
        return rows

    async def _write(self, act: Callable[[], Any], later: Callable[[], Any], *, again: bool = False) -> Any:
        await pause()
        self._refuse(0.05)
        kind = self.random.random() if self.faults else 1.0
        if kind < 0.05:
            self.late.append(later)
            raise FlowiseTimeoutError("late")
        if kind < 0.08:
            raise FlowiseConnectionLostError("never arrived")
        result = act()
        await pause()
        if kind < 0.13:
            if again and kind < 0.1:
                act()
            raise self.random.choice([FlowiseTimeoutError, FlowiseConnectionLostError, FlowiseServerError])("lost")
        return result

    def _refuse(self, chance: float) -> None:
        if self.faults and self.random.random() < chance:
            raise self.random.choice([FlowiseUnreachableError, FlowiseServerError])("refused")


class Intents(FakeIntents):
    """The intent log behind its fence; a crash may come before and after each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0

    async def open(self, lease: Any, *, key: UUID, **values: Any) -> WriteIntent:
        await pause()
        self._check(lease)
        intent = await super().open(lease, key=key, **values)
        await pause()
        return intent

    async def finish(self, lease: Any, key: UUID, *, status: Any, result: dict[str, Any]) -> None:
        await pause()
        self._check(lease)
        await super().finish(lease, key, status=status, result=result)
        await pause()

    async def list_for(self, session_id: UUID) -> list[WriteIntent]:
        await pause()
        return await super().list_for(session_id)

    def _check(self, lease: Lease) -> None:
        if lease.epoch != self.epoch:
            raise LeaseLostError("taken over")


class Kept(FakeVersions):
    async def record(self, session_id: UUID, **values: Any) -> None:
        await pause()
        await super().record(session_id, **values)


@dataclass
class State:
    """What the session's checkpoint holds."""

    step: int = 0
    chatflow_id: str = ""
    base: Base | None = None
    draft: str = ""
    stale: bool = False


Step = Callable[[Publisher, State], Coroutine[Any, Any, State]]


async def create(publisher: Publisher, state: State) -> State:
    made = await publisher.create(
        name=NAME, flow_data=text("v1"), kind="CHATFLOW", validated_sha256=payload_sha256(text("v1")), iteration=0
    )
    return replace(state, chatflow_id=made.chatflow_id, base=made.base)


async def change(publisher: Publisher, state: State) -> State:
    return await _update(publisher, state, "v2", 1)


async def promote(publisher: Publisher, state: State) -> State:
    return await _update(publisher, state, "d1", 1)


async def _update(publisher: Publisher, state: State, name: str, iteration: int) -> State:
    assert state.base is not None
    result = await publisher.update(
        chatflow_id=state.chatflow_id,
        flow_data=text(name),
        validated_sha256=payload_sha256(text(name)),
        base=state.base,
        iteration=iteration,
    )
    return replace(state, stale=True) if isinstance(result, Stale) else replace(state, base=result.base)


async def draft(publisher: Publisher, state: State) -> State:
    made = await publisher.create(
        name=f"{NAME} (draft)",
        flow_data=text("d1"),
        kind="CHATFLOW",
        validated_sha256=payload_sha256(text("d1")),
        iteration=0,
        role="draft",
    )
    return replace(state, draft=made.chatflow_id)


async def drop_draft(publisher: Publisher, state: State) -> State:
    await publisher.delete_created(chatflow_id=state.draft, iteration=1, role="draft")
    return replace(state, draft="")


async def accept(publisher: Publisher, state: State) -> State:
    await publisher.accept(chatflow_id=state.chatflow_id, deploy=True, iteration=1)
    return state


async def roll_back(publisher: Publisher, state: State) -> State:
    await publisher.delete_created(chatflow_id=state.chatflow_id, iteration=1)
    return replace(state, chatflow_id="")


async def restore(publisher: Publisher, state: State) -> State:
    """Asked for again until it is answered, as a client does."""
    await publisher.restore(
        chatflow_id=state.chatflow_id, flow_data=text("person-1"), sha256=payload_sha256(text("person-1")), iteration=0
    )
    return state


#: Name, steps, and whether the session starts from a person's flow.
SCRIPTS: tuple[tuple[str, tuple[Step, ...], bool], ...] = (
    ("create", (create, accept), False),
    ("iterate", (create, change, accept), False),
    ("roll back", (create, change, roll_back), False),
    ("update", (change,), True),
    ("restore", (change, restore), True),
    ("draft", (draft, promote, drop_draft), True),
)


@dataclass
class World:
    random: Random
    name: str = ""
    steps: tuple[Step, ...] = ()
    state: State = field(default_factory=State)
    attempts: int = 0

    def __post_init__(self) -> None:
        self.server = Server(self.random)
        self.intents = Intents()
        self.versions = Kept()
        self.name, self.steps, has_target = self.random.choice(SCRIPTS)
        # A person's flow that looks like ours, and one of another name with the very text.
        like_ours = ChatflowCreate(name=NAME, flow_data=text("person-0"), category=flow_tag(str(SESSION)))
        same_text = ChatflowCreate(name="Mine", flow_data=text("v1"), category=flow_tag(str(SESSION)))
        self.server.persons |= {self.server.make(like_ours).id, self.server.make(same_text).id}
        if has_target:
            row = self.server.make(ChatflowCreate(name="Theirs", flow_data=text("person-1")))
            self.server.persons.add(row.id)
            self.server.person_texts.add(row.flow_data)
            self.state = State(chatflow_id=row.id, base=Base(payload_sha256(row.flow_data), row.updated_date))

    def worker(self) -> Coroutine[Any, Any, None]:
        """The next owner of the run: goes on from the checkpoint."""
        self.intents.epoch += 1
        self.attempts += 1
        self.server.faults = self.attempts < _FAULTS_UNTIL_ATTEMPT
        fakes: Any = (self.server, self.intents, self.versions)
        lease = Lease(SESSION, self.intents.epoch)
        publisher = Publisher(
            session_id=SESSION, instance_id="main", client=fakes[0], intents=fakes[1], lease=lease, versions=fakes[2]
        )
        return self._drive(publisher, lease)

    async def _drive(self, publisher: Publisher, lease: Lease) -> None:
        state = self.state
        while state.step < len(self.steps) and not state.stale:
            state = replace(await self.steps[state.step](publisher, state), step=state.step + 1)
            await pause()
            if lease.epoch != self.intents.epoch:
                raise LeaseLostError("taken over")
            self.state = state
            await pause()

    def person_edits(self) -> None:
        """A person saves one of the flows in the editor."""
        ids = [id_ for id_ in self.server.flows if self.random.random() < 0.7]
        if not ids:
            return
        id_ = self.random.choice(ids)
        words = text(f"edit-{self.server.now()}")
        row = self.server.flows[id_]
        if row.flow_data in self.server.person_texts:
            self.server.person_texts.discard(row.flow_data)  # their own, replaced by themselves
        self.server.change(id_, flow_data=words)
        self.server.person_texts.add(words)
        self.server.persons.add(id_)

    def run(self) -> None:
        """To the end of the session, of every frozen worker and of every late call; then the reconciler."""
        random, running = self.random, []
        numbers: dict[Coroutine[Any, Any, None], int] = {}
        owner: Coroutine[Any, Any, None] | None = None
        for _ in range(_MOST_STEPS):
            if owner is None:
                if self.state.step >= len(self.steps) or self.state.stale:
                    break
                owner = self.worker()
                numbers[owner] = self.attempts
                running.append(owner)
            one = random.choice(running)
            self.server.frozen_acts, self.server.acting = one is not owner, numbers[one]
            ended = _advance(one)
            chance = random.random() if self.server.faults else 1.0
            if ended:
                running.remove(one)
                owner = None if one is owner else owner
            elif one is owner and chance < 0.03:
                one.close()  # killed
                running.remove(one)
                owner = None
            elif one is owner and chance < 0.05:
                owner = None  # frozen; goes on later without its lease
            if random.random() < 0.02 and self.server.faults:
                self.person_edits()
            if self.server.late and random.random() < 0.1:
                _act(self.server.late.pop(0))
        else:
            raise AssertionError("the session does not end")
        self.server.faults, self.server.frozen_acts = False, True
        while running:
            if _advance(one := random.choice(running)):
                running.remove(one)
        for late in self.server.late:
            _act(late)
        rest = reconcile(self.server, self.intents, SESSION)
        while not _advance(rest):
            pass

    def check(self) -> None:
        """What must hold whatever happened."""
        server = self.server
        ours = {id_ for id_ in server.flows if id_ not in server.persons}
        known = {self.state.chatflow_id} - {""} - server.persons
        assert ours <= known, f"twins or orphans: {sorted(ours - known)}"
        assert known <= set(server.flows), "the session's flow is gone"
        assert all(row.name != "Mine" for row in server.deleted), "a person's chatflow was deleted"
        if self.name == "restore" and not self.state.stale:
            left = [row for row in self.intents.rows.values() if row.status == "open"]
            assert not left, f"left open by what was asked for until it was done: {left}"
        kept = {flow_data for _, _, flow_data in self.versions.rows}
        lost = set(server.taken) - kept
        assert not lost, f"read, then overwritten or deleted, and not kept: {lost}"


async def reconcile(server: Server, intents: Any, session_id: UUID) -> None:
    """As `Reconciler` with the rows that `Leftovers` would note of an ended session."""
    creates = [row for row in intents.rows.values() if row.op == "create" and row.may_have_landed]
    texts = [str(row.payload_sha256) for row in intents.rows.values() if row.payload_sha256]
    for tag in (flow_tag(str(session_id)), draft_tag(str(session_id))):
        noted = [row for row in creates if row.tag == tag]
        is_draft = tag.endswith(":draft")
        if not is_draft and not any(row.was_repeated for row in noted):
            continue
        keep = [] if is_draft else [(row.result or {}).get("chatflow_id") for row in noted if row.status == "done"]
        names = [str(row.name) for row in noted]
        for row in [row for row in server.flows.values() if tag in row.tags and row.id not in keep]:
            client: Any = server
            await remove_unclaimed(client, row.id, tag=tag, names=names, texts=texts)


def _advance(worker: Coroutine[Any, Any, None]) -> bool:
    """One step; whether the worker has ended."""
    try:
        worker.send(None)
    except (StopIteration, AgentError):
        return True
    return False


def _act(late: Callable[[], object]) -> None:
    with suppress(FlowiseNotFoundError):
        late()


def trial(seed: int) -> World:
    """One session by its seed; raises AssertionError when something that must hold does not."""
    world = World(Random(seed))  # noqa: S311 - to be repeated
    try:
        world.run()
        world.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed} ({world.name}): {error}") from error
    return world
