"""What a run of `sync` does after something went wrong, or was changed, since the run before."""

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import yaml

from flowise_dev_agent.cli.sync import LOCK_FILE, OnDrift, Sync, write_lock
from flowise_dev_agent.client import AgentClient, ServiceError
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_files import AppliedFlows, SyncItem
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, FlowDocument, FlowWriteResult, ImportFlow
from flowise_dev_agent.schemas.requests import StartSession

EMPTY = {"nodes": [], "edges": []}


class Service:
    """Flows, writes and sessions in memory, each request under its Idempotency-Key."""

    base_url = "http://agent.test"

    def __init__(self) -> None:
        self.flows: dict[str, tuple[str, str]] = {}
        self.done: dict[str, tuple[str, Any]] = {}
        self.applied: list[str] = []
        #: What becomes of a session: it asks, or people end it so.
        self.people: str | None = "accepted"
        self.lose_answers_after_imports = False
        self._lost = False

    def flow(self, name: str, text: str = "{}") -> str:
        id_ = str(uuid4())
        self.flows[id_] = (name, text)
        return id_

    def edit(self, id_: str, text: str) -> None:
        self.flows[id_] = (self.flows[id_][0], text)

    def _once(self, key: str | None, fingerprint: str, make: Any) -> Any:
        assert key
        if key not in self.done:
            self.done[key] = (fingerprint, make())
        earlier, made = self.done[key]
        if earlier != fingerprint:
            raise ServiceError(409, {"detail": "another request has the key", "code": "idempotency_key_reused"})
        return made

    async def instances(self) -> Any:
        return SimpleNamespace(
            instances=[SimpleNamespace(id="other", default=False), SimpleNamespace(id="main", default=True)]
        )

    async def find_flows(self, query: str, *, instance: str, limit: int) -> Any:
        named = [SimpleNamespace(id=id_, name=name) for id_, (name, _) in self.flows.items()]
        return SimpleNamespace(flows=[flow for flow in named if flow.name == query][:limit])

    async def export_flow(self, id_: str, *, instance: str) -> FlowDocument:
        if self._lost:
            self._lost = False
            raise ServiceError(503, {"detail": "The database does not answer."})
        if id_ not in self.flows:
            raise ServiceError(404, {"detail": f"no flow {id_}"})
        name, text = self.flows[id_]
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        return FlowDocument(id=id_, name=name, type="CHATFLOW", flow_data=text, sha256=sha256, updated="")

    async def import_flow(
        self, flow: ImportFlow, *, instance: str, wait: float = 0, idempotency_key: str | None = None
    ) -> Any:
        if flow.dry_run:
            return SimpleNamespace(valid=True, flow_data=flow.flow_data, findings=[])
        made = self._once(
            idempotency_key, flow.fingerprint(), lambda: _written(self.flow(flow.name, flow.flow_data or ""))
        )
        self._lost = self.lose_answers_after_imports
        return made

    async def apply_to_flow(self, id_: str, change: ApplyToFlow, *, instance: str, wait: float) -> Any:
        self.applied.append(id_)
        self.edit(id_, change.flow_data or "")
        return _written(id_)

    async def start(self, request: StartSession, *, idempotency_key: str | None = None) -> Any:
        def make() -> Any:
            return SimpleNamespace(
                thread_id=uuid4(), interrupt="asks", in_progress=False, outcome=None, status="", chatflow_id=None
            )

        session = self._once(idempotency_key, request.fingerprint(), make)
        session.request = request
        return SimpleNamespace(**vars(session))

    async def events(self, session_id: UUID) -> Any:
        for session in self._sessions():
            if session.thread_id == session_id and session.interrupt and self.people:
                session.interrupt, session.outcome = None, self.people
                if self.people == "accepted":
                    session.chatflow_id = session.request.target or self.flow(session.request.session_name)
        yield SimpleNamespace(type="done")

    def accept(self, session_id: UUID | None) -> str:
        """People accept the result of a session; the id of its flow."""
        session = next(session for session in self._sessions() if session.thread_id == session_id)
        session.interrupt, session.outcome = None, "accepted"
        session.chatflow_id = session.request.target or self.flow(session.request.session_name)
        self.edit(session.chatflow_id, f"made from {session.request.requirement}")
        session.left = self.flows[session.chatflow_id][1]
        return session.chatflow_id

    async def flow_conversation(self, id_: str, *, instance: str) -> Any:
        mine = [session for session in self._sessions() if session.chatflow_id == id_]
        for session in mine:
            session.turns = [SimpleNamespace(words=session.request.requirement)]
        return SimpleNamespace(sessions=mine)

    async def versions(self, session_id: UUID) -> Any:
        session = await self.get(session_id)
        sha256 = hashlib.sha256(session.left.encode()).hexdigest()
        return SimpleNamespace(versions=[SimpleNamespace(current=True, sha256=sha256)])

    async def get(self, session_id: UUID) -> Any:
        return next(session for session in self._sessions() if session.thread_id == session_id)

    def _sessions(self) -> list[Any]:
        return [made for _, made in self.done.values() if isinstance(made, SimpleNamespace)]


def _written(id_: str) -> FlowWriteResult:
    return FlowWriteResult(
        status="completed",
        session_id=uuid4(),
        instance="main",
        chatflow_id=id_,
        name="",
        type="CHATFLOW",
        sha256="",
        created=True,
        credentials=[],
        findings=[],
    )


class Directory:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = Service()

    def write(self, **content: Any) -> None:
        (self.folder / "a.yaml").write_text(yaml.safe_dump({"name": "A", **content}))

    async def run(self, on_drift: OnDrift = "leave", instance: str | None = None) -> SyncItem:
        sync = Sync(cast(AgentClient, self.service), self.folder, instance, on_drift, wait=1)
        (item,) = (await sync.apply(await sync.plan())).items
        return item

    def text_of(self, id_: str | None) -> str:
        return self.service.flows[id_ or ""][1]


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


async def test_keep_leaves_the_change_on_the_server_where_the_file_was_changed_too(directory: Directory) -> None:
    directory.write(flow_data=EMPTY)
    id_ = (await directory.run()).chatflow_id or ""
    directory.service.edit(id_, "by a person")
    directory.write(flow_data={**EMPTY, "viewport": {"x": 1}})
    kept = await directory.run("keep")
    assert (kept.state, kept.action, kept.result, directory.text_of(id_)) == ("conflict", "keep", "done", "by a person")
    assert "not written" in kept.note
    assert (await directory.run()).state == "same"
    assert directory.text_of(id_) == "by a person"


async def test_keep_has_changed_words_applied_to_the_flow_as_it_is(directory: Directory) -> None:
    directory.write(requirement="A bot")
    id_ = (await directory.run()).chatflow_id or ""
    directory.service.edit(id_, "by a person")
    directory.write(requirement="A better bot")
    kept = await directory.run("keep")
    assert (kept.action, kept.result, kept.chatflow_id) == ("update", "done", id_)


async def test_words_whose_flow_was_deleted_are_built_again_by_another_session(directory: Directory) -> None:
    directory.write(requirement="A bot")
    first = await directory.run()
    for _ in range(2):
        directory.service.flows.clear()
        again = await directory.run()
        assert (again.state, again.result) == ("missing", "done"), again
        assert again.session_id != first.session_id
    assert (await directory.run()).state == "same"


async def test_words_whose_session_was_cancelled_get_another_one(directory: Directory) -> None:
    directory.write(requirement="A bot")
    directory.service.people = "cancelled"
    assert (await directory.run()).result == "failed"
    directory.service.people = "accepted"
    assert (await directory.run()).result == "done"


async def test_words_put_back_after_a_rollback_are_applied_again(directory: Directory) -> None:
    directory.write(requirement="A bot")
    id_ = (await directory.run()).chatflow_id
    directory.write(requirement="A better bot")
    first = await directory.run()
    # The session was rolled back: the flow is as it was before it.
    directory.write(requirement="A bot")
    assert (await directory.run()).result == "done"
    directory.write(requirement="A better bot")
    again = await directory.run()
    assert (again.result, again.chatflow_id) == ("done", id_)
    assert again.session_id != first.session_id


async def test_a_waiting_session_is_joined_and_another_name_or_count_of_trials_starts_one(directory: Directory) -> None:
    directory.service.people = None
    sessions: list[UUID | None] = []
    for content in ({}, {}, {"name": "B"}, {"trials": 3}):
        directory.write(requirement="A bot", **content)
        item = await directory.run()
        assert item.result == "waiting", item
        sessions.append(item.session_id)
    assert sessions[0] == sessions[1]
    assert len(set(sessions)) == 3


async def test_words_whose_sessions_all_end_without_a_flow_are_given_up(directory: Directory) -> None:
    directory.write(requirement="A bot")
    directory.service.people = "cancelled"
    for _ in range(50):
        assert "cancelled" in (await directory.run()).note
    assert "have ended without a flow" in (await directory.run()).note


@pytest.mark.parametrize("renamed", [False, True])
async def test_a_flow_made_before_an_answer_was_lost_is_not_made_twice(directory: Directory, renamed: bool) -> None:
    directory.write(flow_data=EMPTY)
    await directory.run()
    directory.service.flows.clear()
    directory.service.lose_answers_after_imports = True
    assert (await directory.run()).result == "failed"
    directory.service.lose_answers_after_imports = False
    ((id_, (name, text)),) = directory.service.flows.items()
    directory.service.flows[id_] = ("another name" if renamed else name, text)
    again = await directory.run()
    assert list(directory.service.flows) == [id_]
    if renamed:
        assert (again.state, again.result, again.chatflow_id) == ("missing", "done", id_)
    else:
        assert (again.state, again.result, id_ in again.note) == ("conflict", "left", True)


async def test_another_flow_in_the_file_is_taken_over(directory: Directory) -> None:
    one, other = directory.service.flow("One"), directory.service.flow("Other")
    directory.write(flow=one, flow_data=EMPTY)
    assert (await directory.run()).chatflow_id == one
    directory.write(flow=other, flow_data=EMPTY)
    taken = await directory.run()
    assert (taken.state, taken.chatflow_id, directory.service.applied) == ("changed", other, [one, other])
    assert (await directory.run()).state == "same"


async def test_a_flow_that_the_file_names_is_not_replaced_by_a_new_one_when_it_is_gone(directory: Directory) -> None:
    directory.write(flow=directory.service.flow("One"), flow_data=EMPTY)
    await directory.run()
    directory.service.flows.clear()
    gone = await directory.run()
    assert (gone.state, gone.action, gone.result) == ("missing", "none", "left")
    assert directory.service.flows == {}


async def test_the_default_instance_has_one_part_of_the_lock_file_with_and_without_its_name(
    directory: Directory,
) -> None:
    directory.write(flow_data=EMPTY)
    await directory.run(instance="main")
    assert (await directory.run()).state == "same"
    assert list(json.loads((directory.folder / LOCK_FILE).read_text())["instances"]) == ["main"]


async def test_a_result_that_people_accepted_after_the_run_is_taken_over(directory: Directory) -> None:
    service = directory.service
    service.people = None
    directory.write(requirement="A bot")
    waiting = await directory.run()
    assert waiting.result == "waiting"
    id_ = service.accept(waiting.session_id)
    taken = await directory.run()
    assert (taken.state, taken.action, taken.result, taken.chatflow_id) == ("new", "keep", "done", id_), taken
    assert (await directory.run()).state == "same"

    directory.write(requirement="A better bot")
    waiting = await directory.run()
    assert (waiting.result, waiting.session_id == taken.session_id) == ("waiting", False)
    assert service.accept(waiting.session_id) == id_
    taken = await directory.run()
    assert (taken.state, taken.action, taken.result) == ("changed", "keep", "done"), taken
    assert (await directory.run()).state == "same"
    assert list(service.flows) == [id_]


async def test_an_accepted_result_that_somebody_changed_again_is_left_to_people(directory: Directory) -> None:
    service = directory.service
    service.people = None
    directory.write(requirement="A bot")
    id_ = service.accept((await directory.run()).session_id)
    service.edit(id_, "by a person")
    assert ((item := await directory.run()).state, item.result) == ("conflict", "left")


@pytest.mark.parametrize("instance", [None, "main"])
async def test_a_lock_file_from_before_instances_had_their_ids_in_it_is_read(
    directory: Directory, instance: str | None
) -> None:
    directory.write(flow_data=EMPTY)
    await directory.run()
    path = directory.folder / LOCK_FILE
    lock = json.loads(path.read_text())
    lock["instances"] = {"default": lock["instances"]["main"], "other": {}}
    path.write_text(json.dumps(lock))
    assert (await directory.run(instance="other")).state == "conflict"
    assert (await directory.run(instance=instance)).state == "same"
    directory.write(flow_data={**EMPTY, "viewport": {"x": 1}})
    assert (await directory.run(instance=instance)).state == "changed"
    assert list(json.loads(path.read_text())["instances"]) == ["main", "other"]


def test_a_lock_file_that_cannot_be_written_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lock(tmp_path, AppliedFlows())
    before = (tmp_path / LOCK_FILE).read_bytes()

    def full(path: Path, text: str, **options: Any) -> int:
        path.write_bytes(text[:20].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InvalidInputError, match="No space left"):
        write_lock(tmp_path, AppliedFlows(instances={"main": {}}))
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]
    assert (tmp_path / LOCK_FILE).read_bytes() == before
