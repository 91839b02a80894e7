"""Guards: the tests of a live flow are held on a schedule and after changes, and what no longer passes is told.

A run holds each test once, and those that failed again: a test that fails more often than chance allows is an alarm.
Nothing is written to a flow; an alarm carries the request for a session that proposes a repair.
"""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, get_args
from uuid import NAMESPACE_URL, UUID, uuid5

from flowise_dev_agent.caller import serving
from flowise_dev_agent.errors import AgentError, DatabaseUnavailableError, GuardNotFoundError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.flow_tests import FlowTestService
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.persistence import Guards
from flowise_dev_agent.persistence.deliveries import DeliveryAttempt, Endpoint
from flowise_dev_agent.persistence.guards import GuardRow, GuardToDo
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.flow_tests import FlowTestView, TestFlow
from flowise_dev_agent.schemas.guards import (
    FailingTest,
    GuardAlarm,
    GuardCause,
    GuardResult,
    GuardSettings,
    GuardState,
    GuardView,
)
from flowise_dev_agent.schemas.verdict import Trial
from flowise_dev_agent.testing.regressions import REPEATED, failures_needed
from flowise_dev_agent.texts import text
from flowise_dev_agent.webhooks.client import WebhookClient
from flowise_dev_agent.webhooks.service import WebhookConfig

logger = logging.getLogger(__name__)

_SHOWN: Final = 50
_BATCH: Final = 100
#: US dollars per token of a model without a known price.
_UNKNOWN_PRICE: Final = 10 / 1_000_000
_LINE: Final = 300
#: In the flow data of each flow that uses a document store.
_STORE_WORDS: Final = "ocumentStore"
_CAUSES: Final[Sequence[GuardCause]] = get_args(GuardCause)


class GuardService:
    """Guards for clients. Raises InvalidInputError for an unknown instance."""

    def __init__(self, guards: Guards, instances: Instances, webhooks: WebhookConfig) -> None:
        self._guards = guards
        self._instances = instances
        self._webhooks = webhooks

    async def put(self, chatflow_id: str, settings: GuardSettings, instance: str | None) -> GuardView:
        """Guard a flow, or change how. Raises WebhookUrlError."""
        if settings.webhook_url is not None:
            await self._webhooks.policy.check_at_start(settings.webhook_url)
        instance_id = self._instances.resolve(instance)
        await self._guards.put(instance_id, chatflow_id, settings.model_dump(mode="json"))
        return await self.view(chatflow_id, instance_id)

    async def remove(self, chatflow_id: str, instance: str | None) -> None:
        """Stop guarding a flow."""
        await self._guards.remove(self._instances.resolve(instance), chatflow_id)

    async def view(self, chatflow_id: str, instance: str | None) -> GuardView:
        """State of a guarded flow, with its results over time. Raises GuardNotFoundError."""
        instance_id = self._instances.resolve(instance)
        row = await self._guards.get(instance_id, chatflow_id)
        if row is None:
            raise GuardNotFoundError(text("error.no_guard"), hint=text("error.no_guard_hint"))
        rows = await self._guards.results(instance_id, chatflow_id, _SHOWN)
        results = [GuardResult.model_validate({**one.result, "at": one.at, "usd": one.usd}) for one in rows]
        return GuardView(
            instance=instance_id,
            chatflow_id=chatflow_id,
            settings=GuardSettings.model_validate(row.settings),
            state="failing" if row.alarm else results[0].state if results else "waiting",
            alarm=GuardAlarm.model_validate(row.alarm) if row.alarm else None,
            results=results,
            due_at=row.due_at,
            usd_this_month=await self._guards.spent(instance_id, chatflow_id),
        )


class GuardKeeper:
    """Holds the tests of guarded flows, and tells alarms. A part of the maintenance."""

    def __init__(
        self,
        guards: Guards,
        tests: FlowTestService,
        instances: Instances,
        sender: WebhookClient,
    ) -> None:
        self._guards = guards
        self._tests = tests
        self._instances = instances
        self._sender = sender

    async def pass_once(self) -> None:
        """Begin the runs that are due, read those that are over, and tell alarms. Raises DatabaseUnavailableError."""
        looked = {id_: await self._stores(id_) for id_ in await self._guards.on_stores()}
        stores = {id_: states for id_, states in looked.items() if states is not None}
        for guard in await self._guards.to_do(_BATCH, stores):
            with serving(guard.owner):
                try:
                    await self._step(guard)
                except DatabaseUnavailableError:
                    raise
                except AgentError as error:
                    await self._conclude(guard, "not_tested", note=error.message)
                except Exception:
                    # One that cannot be read holds up no other.
                    logger.exception("The guard of %s on '%s' failed.", guard.chatflow_id, guard.instance_id)

    async def _step(self, guard: GuardToDo) -> None:
        if guard.running is not None:
            view = await self._tests.get(UUID(str(guard.running["test_id"])))
            if view.is_over:
                await self._read(guard, guard.running, view)
            return
        if guard.alarm is not None and guard.told_at is None:
            await self._tell(guard, GuardAlarm.model_validate(guard.alarm))
        is_changed = bool(guard.seen) and any(guard.seen.get(name) != value for name, value in guard.state.items())
        if is_changed or guard.due_at <= datetime.now(UTC):
            await self._begin(guard)

    async def _begin(self, guard: GuardToDo) -> None:
        settings = GuardSettings.model_validate(guard.settings)
        if await self._guards.spent(guard.instance_id, guard.chatflow_id) >= settings.usd_per_month:
            await self._conclude(guard, "paused", note=text("guard.paused", usd=settings.usd_per_month))
            return
        flow = await self._instances.client(guard.instance_id).get_chatflow(guard.chatflow_id)
        state = {**guard.state, "flow": payload_sha256(flow.flow_data)}
        state.pop("stores", None)
        if _STORE_WORDS in flow.flow_data and (stores := await self._stores(guard.instance_id)) is not None:
            state["stores"] = {id_: stores[id_] for id_ in stores if id_ in flow.flow_data}
        cases = await self._tests.set_of(guard.instance_id, guard.chatflow_id)
        if not cases:
            await self._conclude(guard, "not_tested", note=text("guard.no_tests"), state=state)
            return
        cause = next(iter(_changed(guard.seen, state)), "schedule")
        body = TestFlow(tests=cases, real=settings.real)
        view = await self._tests.start(guard.chatflow_id, body, guard.instance_id)
        running = {
            "test_id": str(view.id),
            "cause": cause,
            "state": state,
            "cases": body.model_dump(mode="json")["tests"],
        }
        await self._guards.begin(guard, running, hours=settings.every_hours)

    async def _stores(self, instance_id: str) -> dict[str, str] | None:
        """State of each document store, by its id; None where the server does not say."""
        try:
            stores = await self._instances.client(instance_id).list_document_stores()
        except AgentError:
            return None
        return {store.id: store.state for store in stores}

    async def _read(self, guard: GuardToDo, running: Mapping[str, Any], view: FlowTestView) -> None:
        """Take the results of the tests: the first of the run, or the repetitions of those that failed."""
        settings = GuardSettings.model_validate(guard.settings)
        if view.error is not None:
            await self._conclude(guard, "not_tested", note=view.error.detail, spent=running)
            return
        first = running.get("first")
        spent = {"usd": _usd(view) + running.get("usd", 0.0), "tokens": _tokens(view) + running.get("tokens", 0)}
        failed = {str(trial.test): trial for trial in view.trials if not trial.passed and trial.category}
        if first is None:
            if not any(trial.passed or trial.category for trial in view.trials):
                await self._conclude(guard, "not_tested", note=view.trials[0].error if view.trials else "", spent=spent)
                return
            if failed:
                again = [case for case in running["cases"] if case["id"] in failed]
                body = TestFlow.model_validate({"tests": again, "trials": REPEATED, "real": settings.real})
                test = await self._tests.start(guard.chatflow_id, body, guard.instance_id)
                await self._guards.begin(
                    guard,
                    {**running, **spent, "test_id": str(test.id), "first": sorted(failed)},
                    hours=settings.every_hours,
                )
                return
        total = len(running["cases"])
        failing = self._failing(view.trials, failures_needed(total, settings.accepted_failures)) if first else []
        alarm = _alarm(guard, running["state"], failing) if failing else None
        await self._conclude(guard, "failing" if alarm else "ok", alarm=alarm, spent=spent)

    def _failing(self, repeated: Sequence[Trial], needed: int) -> list[FailingTest]:
        """Tests that failed too often, the first conversation included."""
        failures = Counter(str(trial.test) for trial in repeated if not trial.passed and trial.category)
        last = {str(trial.test): trial for trial in repeated if not trial.passed and trial.category}
        return [
            FailingTest(
                test=test,
                question=shortened(last[test].question, _LINE),
                failures=count + 1,
                held=REPEATED + 1,
                category=last[test].category,
                error=shortened(last[test].error or last[test].answer, _LINE),
            )
            for test, count in failures.items()
            if count + 1 >= needed
        ]

    async def _conclude(
        self,
        guard: GuardToDo,
        outcome: GuardState,
        *,
        note: str = "",
        alarm: GuardAlarm | None = None,
        spent: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a run. Only tests that were held end an alarm."""
        running, spent = guard.running or {}, spent or {}
        seen = state or running.get("state") or {**guard.seen, **guard.state}
        total = len(running.get("cases", ()))
        passed = {**seen, "at": datetime.now(UTC).isoformat()} if outcome == "ok" else None
        result = GuardResult(
            at=datetime.now(UTC),
            cause=running.get("cause", "schedule"),
            state=outcome,
            passed=total - len(alarm.tests if alarm else ()) if outcome in ("ok", "failing") else 0,
            tests=total,
            tokens=int(spent.get("tokens", 0)),
            note=shortened(str(note), _LINE),
        )
        kept = guard.alarm if outcome in ("not_tested", "paused") else alarm and alarm.model_dump(mode="json")
        await self._guards.conclude(
            guard,
            result=result.model_dump(mode="json", exclude={"at", "usd"}),
            usd=float(spent.get("usd", 0.0)),
            seen=seen,
            passed=passed,
            alarm=kept,
            hours=GuardSettings.model_validate(guard.settings).every_hours,
        )
        if outcome == "failing":
            logger.warning("The flow %s on '%s' fails its tests.", guard.chatflow_id, guard.instance_id)

    async def _tell(self, guard: GuardRow, alarm: GuardAlarm) -> None:
        """Send the alarm; one that is not taken is sent again at the next pass."""
        url = GuardSettings.model_validate(guard.settings).webhook_url
        if url is not None:
            data = {"instance": guard.instance_id, "chatflow_id": guard.chatflow_id, **alarm.model_dump(mode="json")}
            body = json.dumps({"type": "flow.failing", "timestamp": alarm.since.isoformat(), "data": data})
            attempt = DeliveryAttempt(uuid5(NAMESPACE_URL, body), 0, guard.owner, 1, body, Endpoint(url, None, None))
            result = await self._sender.send(attempt)
            if not result.delivered:
                logger.warning("An alarm of a guard is not told yet: %s", result.error)
                return
        await self._guards.told(guard)


def _alarm(guard: GuardToDo, state: Mapping[str, Any], failing: list[FailingTest]) -> GuardAlarm:
    passed = guard.passed or {}
    former = GuardAlarm.model_validate(guard.alarm) if guard.alarm else None
    what = "; ".join(f"“{one.question}”: {one.error}" for one in failing)
    return GuardAlarm(
        since=former.since if former else datetime.now(UTC),
        tests=failing,
        changed=_changed(passed, state),
        last_passed_at=passed.get("at"),
        repair={
            "requirement": text("guard.repair", tests=shortened(what, 2_000)),
            "target": guard.chatflow_id,
            "operation": "update",
            "flowise_instance_id": guard.instance_id,
        },
    )


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[GuardCause]:
    """Parts of the state that differ; nothing is known of a part that was not seen before."""
    return [name for name in _CAUSES if name in before and name in after and before[name] != after[name]]


def _tokens(view: FlowTestView) -> int:
    return view.summary.tokens if view.summary else 0


def _usd(view: FlowTestView) -> float:
    known = view.summary.usd if view.summary else None
    return _tokens(view) * _UNKNOWN_PRICE if known is None else known
