"""Writes that happen exactly once, whatever is killed, restarted or lost on the way.

Each write is announced by an intent row (committed, fenced by the lease) before the call. Whoever finds an open intent,
or gets an error that proves nothing, does not know whether the call went through, so it looks: a create is found by its
tag in `category` and its text, an update by comparing hashes. What it finds is adopted. A create made in such a
recovery lists once more and removes the younger twin, since the call of the lost worker may have landed in between.

An error that leaves this module says in `details["written"]` what is known of the write: `no`, `unknown`, or `yes` when
Flowise took it but it could not be read back, or was read back otherwise.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from flowise_dev_agent.errors import FlowiseNotFoundError, WriteFailedError
from flowise_dev_agent.flowise.flow_tags import with_tag, without_tag
from flowise_dev_agent.flowise.models import Chatflow, ChatflowCreate
from flowise_dev_agent.flowise.uploads import SettingsChange, is_set
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.publish.outcomes import Base, Stale, Written, authorize, stale_base, stated
from flowise_dev_agent.publish.steps import Role
from flowise_dev_agent.publish.stores import StoreSteps
from flowise_dev_agent.publish.tools import ToolSteps
from flowise_dev_agent.texts import text


class Publisher(StoreSteps, ToolSteps):
    """Writes of one session to one Flowise server, under the lease of the running run.

    Without a lease (`None`: a rollback asked for over HTTP) intents need an idle session instead.
    """

    async def create(
        self,
        *,
        name: str,
        flow_data: str,
        kind: str,
        validated_sha256: str | None,
        iteration: int,
        role: Role = "flow",
        columns: Mapping[str, Any] | None = None,
        base: Base | None = None,
    ) -> Written:
        """Create the session's chatflow, draft or copy, undeployed, private and tagged, or adopt what an earlier try
        made.

        `columns` are further ones of `ChatflowCreate`; `base` is the flow that a copy is made of.

        Raises:
            ValidationRequiredError, HashMismatchError: see `guard.authorize`.
            FlowiseError: the server refused, or the outcome is unknown (transient: the next try will look first).
            WriteFailedError: the server holds something else than it was sent.
        """
        sha256 = authorize(flow_data, validated_sha256)
        tag = self._tags[role]
        intent = await self._open("create", iteration=iteration, sha256=sha256, tag=tag, name=name, base=base)
        earlier = intent.creates
        if intent.status == "done" and intent.result:
            return Written(**intent.result)
        others = dict(columns or {})
        category = with_tag(others.pop("category", None), tag)
        row = ChatflowCreate(name=name, flow_data=flow_data, type=kind, category=category, **others)
        with stated(intent, lost=any(item.may_have_landed for item in earlier)) as attempt:
            flow = await self._oldest_tagged(tag) if earlier else None
            adopted = flow is not None
            if flow is None:
                flow, adopted = await self._send(
                    intent,
                    attempt,
                    lambda: self._client.create_chatflow(row),
                    landed=lambda: self._oldest_tagged(tag),
                )
                if earlier:
                    flow = await self._remove_younger_twins(flow, tag, iteration)
            if adopted and flow.flow_data != flow_data:
                # The same create was made for another payload (an earlier plan): bring it to this one, it is ours.
                attempt.written = "unknown"
                fields = {
                    "flow_data": flow_data,
                    **({"chatbot_config": row.chatbot_config} if row.chatbot_config else {}),
                }
                flow = await self._client.update_chatflow(flow.id, **fields)
            attempt.written = "yes"
            if role == "flow" or adopted:
                return await self._read_back(intent, flow, adopted=adopted, keep=role == "flow" and "create")
            # What a draft holds is read by the next look at it: before it is changed, before its tests.
            return await self._done(intent, self._noted(flow), adopted=False)

    async def update(
        self,
        *,
        chatflow_id: str,
        flow_data: str,
        validated_sha256: str | None,
        base: Base,
        iteration: int,
        role: Role = "flow",
        reason: str = "update",
        name: str | None = None,
        settings: SettingsChange | None = None,
        columns: Mapping[str, str | bool] | None = None,
    ) -> Written | Stale:
        """Replace `flowData`, the name if there is another, and with it the settings and columns beside it ('' clears
        one), if the server still holds `base`; else `Stale`, and nothing is written.

        `Stale` with a conflict when someone else saved over it at once. What the flow held before and holds after is
        kept as versions. A draft is not read back: its tests read it. Raises as `create` does.
        """
        sha256 = authorize(flow_data, validated_sha256)
        intent = await self._open(
            "update", iteration=iteration, sha256=sha256, target_id=chatflow_id, base=base, name=name
        )

        def is_there(flow: Chatflow) -> bool:
            named = payload_sha256(flow.flow_data) == sha256 and name in (None, flow.name)
            return named and _holds(flow, columns) and is_set(settings, flow.chatbot_config)

        if intent.status == "done" and intent.result:
            return await self._outcome(intent.result)
        keep = role == "flow" and reason
        with stated(intent) as attempt:
            current = await self._client.get_chatflow(chatflow_id)
            found = Base(payload_sha256(current.flow_data), current.updated_date)
            if is_there(current):
                lost = not intent.is_new or await self._was_lost(chatflow_id, sha256, besides=intent)
                return await self._read_back_change(intent, current, adopted=lost, unchanged=not lost, keep=keep)
            if found != base:
                await self._intents.finish(self._lease, intent.key, status="failed", result={"stale": asdict(found)})
                return Stale(chatflow_id, found, current.flow_data)
            if keep:
                await self._keep(current, reason=f"before_{reason}", iteration=iteration)
                # Flowise has no conditional write: the last look is as late as can be.
                current = await self._client.get_chatflow(chatflow_id)
                latest = Base(payload_sha256(current.flow_data), current.updated_date)
                if latest != found and not is_there(current):
                    stale = {"stale": asdict(latest)}
                    await self._intents.finish(self._lease, intent.key, status="failed", result=stale)
                    return Stale(chatflow_id, latest, current.flow_data)

            async def landed() -> Chatflow | None:
                there = await self._client.get_chatflow(chatflow_id)
                return there if is_there(there) else None

            fields: dict[str, Any] = {"flow_data": flow_data, **({"name": name} if name else {})}
            fields |= {column: None if value == "" else value for column, value in (columns or {}).items()}
            if settings is not None:
                fields["chatbot_config"] = settings(current.chatbot_config)
            response, adopted = await self._send(
                intent,
                attempt,
                lambda: self._client.update_chatflow(chatflow_id, **fields),
                landed=landed,
            )
            attempt.written = "yes"
            if keep or adopted:
                return await self._read_back_change(intent, response, adopted=adopted, keep=keep, columns=columns)
            return await self._done(intent, response, adopted=False)

    async def restore(
        self,
        *,
        chatflow_id: str,
        flow_data: str,
        sha256: str,
        iteration: int,
        name: str | None = None,
        settings: SettingsChange | None = None,
        columns: Mapping[str, str | bool] | None = None,
        base: Base | None = None,
    ) -> Written:
        """Write a kept version back over `base`, else over whatever the flow holds now; with `name`, `settings` and
        `columns` those that it had, too. What the flow held is kept as a version of its own.

        Raises:
            HashMismatchError: `flow_data` is not the text that was kept under `sha256`.
            StaleBaseError: the flow is not `base` any more, or changed at this very moment.
            FlowiseError, WriteFailedError: as for `create`.
        """
        current = await self.current(chatflow_id)
        as_before = payload_sha256(current.flow_data) == sha256 and name in (None, current.name)
        beside = _holds(current, columns) and is_set(settings, current.chatbot_config)
        if as_before and beside and not await self._was_lost(chatflow_id, sha256):
            await self._keep(current, reason="rollback", iteration=iteration)
            return Written(current.id, current.name, sha256, current.updated_date, unchanged=True)
        result = await self.update(
            chatflow_id=chatflow_id,
            flow_data=flow_data,
            validated_sha256=sha256,
            base=base or Base(payload_sha256(current.flow_data), current.updated_date),
            iteration=iteration,
            reason="rollback",
            name=name,
            settings=settings,
            columns=columns,
        )
        if isinstance(result, Stale):
            raise stale_base(current.name, result, undone="rolled back")
        return result

    async def read(self, chatflow_id: str) -> Chatflow:
        """Read the chatflow from the server. Raises FlowiseError."""
        return self._noted(await self._client.get_chatflow(chatflow_id))

    async def check(self, chatflow_id: str, base: Base) -> Chatflow | Stale:
        """Read the chatflow; `Stale` when the server no longer holds `base`."""
        current = await self._client.get_chatflow(chatflow_id)
        found = Base(payload_sha256(current.flow_data), current.updated_date)
        return current if found == base else Stale(chatflow_id, found, current.flow_data)

    async def accept(self, *, chatflow_id: str, deploy: bool, iteration: int) -> Written:
        """End the trial: take the session's tag off and deploy as the person said. Safe to repeat."""
        intent = await self._open("deploy", iteration=iteration, target_id=chatflow_id)
        if intent.status == "done" and intent.result:
            return Written(**intent.result)

        def accepted(flow: Chatflow) -> bool:
            return self._tag not in flow.tags and bool(flow.deployed) == deploy

        async def landed() -> Chatflow | None:
            there = await self._client.get_chatflow(chatflow_id)
            return there if accepted(there) else None

        with stated(intent) as attempt:
            current = await self._client.get_chatflow(chatflow_id)
            if not accepted(current):
                category = without_tag(current.category, self._tag)
                current, _ = await self._send(
                    intent,
                    attempt,
                    lambda: self._client.update_chatflow(chatflow_id, category=category, deployed=deploy),
                    landed=landed,
                )
            attempt.written = "yes"
            if len(intent.creates) > 1 or any(made.was_repeated for made in intent.creates):
                for twin in await self._made_here(self._tag):
                    # The tag is off ours, so this one came from a call whose worker was lost.
                    await self._remove_twin(twin, iteration)
            if not accepted(current):
                current = await self._client.get_chatflow(chatflow_id)
            # No text was sent, and the answer shows the row: another look would show what someone did since.
            return await self._done(intent, current, adopted=False)

    async def take_back(self, *, chatflow_id: str, sha256: str, delete: bool, iteration: int) -> None:
        """Delete or undeploy the flow that this session made. Safe to repeat.

        `sha256` is the text that the session left in it.

        Raises:
            StaleBaseError: somebody has changed the flow since, its text or anything beside it.
            FlowiseError: as for `create`.
        """
        op = "delete" if delete else "deploy"
        intent = await self._open(op, iteration=iteration, sha256=sha256, target_id=chatflow_id)

        async def found() -> Chatflow | None:
            try:
                return await self._client.get_chatflow(chatflow_id)
            except FlowiseNotFoundError:
                return None

        async def landed() -> Literal[True] | None:
            there = await found()
            done = there is None if delete else there is not None and not there.deployed
            return True if done else None

        async def call() -> Literal[True]:
            if delete:
                await self._client.delete_chatflow(chatflow_id)
            else:
                await self._client.update_chatflow(chatflow_id, deployed=False)
            return True

        with stated(intent) as attempt:
            result = {"chatflow_id": chatflow_id}
            if (current := await found()) is not None:
                left = {
                    (item.result or {}).get("updated_date") for item in await self._intents.list_for(self._session_id)
                }
                undeployed = not (delete or intent.is_new or current.deployed)  # by a call whose answer was lost
                dated = undeployed or current.updated_date in left
                if payload_sha256(current.flow_data) != sha256 or not dated:
                    base = Base(payload_sha256(current.flow_data), current.updated_date)
                    await self._intents.finish(self._lease, intent.key, status="failed", result={"stale": asdict(base)})
                    raise stale_base(current.name, Stale(chatflow_id, base, current.flow_data), undone="rolled back")
                if delete or current.deployed:
                    await self._send(intent, attempt, call, landed=landed)
                attempt.written = "yes"
                if after := await found():
                    result["updated_date"] = after.updated_date
            await self._intents.finish(self._lease, intent.key, status="done", result=result)

    async def delete_created(self, *, chatflow_id: str, iteration: int, role: Role = "flow") -> None:
        """Delete the chatflow or draft that this session made. One that lost its tag is not ours and stays.

        Raises:
            WriteFailedError: the flow no longer carries the tag.
        """
        intent = await self._open("delete", iteration=iteration, target_id=chatflow_id)
        if intent.status == "done":
            return

        async def landed() -> Literal[True] | None:
            try:
                await self._client.get_chatflow(chatflow_id)
            except FlowiseNotFoundError:
                return True
            return None

        async def delete() -> Literal[True]:
            await self._client.delete_chatflow(chatflow_id)
            return True

        with stated(intent) as attempt:
            try:
                current = await self._client.get_chatflow(chatflow_id)
            except FlowiseNotFoundError:
                pass
            else:
                if self._tags[role] not in current.tags:
                    raise WriteFailedError(
                        text("error.not_deleted", name=current.name),
                        hint=text("error.delete_in_flowise"),
                        details={"chatflow_id": chatflow_id},
                    )
                intents = await self._intents.list_for(self._session_id)
                if payload_sha256(current.flow_data) not in {item.payload_sha256 for item in intents}:
                    # A person changed it.
                    await self._keep(current, reason="before_delete", iteration=iteration)
                await self._send(intent, attempt, delete, landed=landed)
            await self._intents.finish(self._lease, intent.key, status="done", result={"deleted": chatflow_id})


def _holds(flow: Chatflow, columns: Mapping[str, str | bool] | None) -> bool:
    """True if the flow has these values; '' is none."""
    return all((getattr(flow, column) or "") == (value or "") for column, value in (columns or {}).items())
