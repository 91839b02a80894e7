"""Guards: flows whose test sets are held on a schedule and after changes."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract, JsonObject
from flowise_dev_agent.schemas.requests import RequestBody, WebhookUrl

GuardState = Literal["waiting", "ok", "failing", "not_tested", "paused"]
#: Causes of a run, and what may have changed since the tests passed.
GuardCause = Literal["schedule", "flow", "stores", "nodes", "server"]


class GuardSettings(RequestBody):
    """Settings of a guard. Its tests simulate what changes the world, unless they are `real`."""

    every_hours: float = Field(default=24, ge=1, le=24 * 31)
    real: bool = Field(default=False, description="Ask the flow itself, which really calls what it calls.")
    usd_per_month: float = Field(
        default=5,
        ge=0,
        le=10_000,
        description="No run begins beyond it. Models without a known price cost 10 USD per million tokens here.",
    )
    accepted_failures: float = Field(
        default=0.05, ge=0, le=0.2, description="Rate at which answers of the flow may fail without an alarm."
    )
    webhook_url: WebhookUrl | None = Field(default=None, description="Gets `flow.failing`, signed by the service.")


class FailingTest(Contract):
    """A test that failed more often than chance allows."""

    test: str
    question: str
    failures: int
    held: int
    category: str | None
    error: str


class GuardAlarm(Contract):
    """The tests that fail, and what changed since all passed."""

    since: datetime
    tests: list[FailingTest]
    changed: list[GuardCause] = Field(description="What is different from the last run that passed.")
    last_passed_at: datetime | None
    repair: JsonObject = Field(description="Body for `POST /sessions`: a session that proposes a repair.")


class GuardResult(Contract):
    """A run of a guard."""

    at: datetime
    cause: GuardCause
    state: GuardState
    passed: int = 0
    tests: int = 0
    tokens: int = 0
    usd: float = 0.0
    note: str = ""


class GuardView(Contract):
    """A guarded flow."""

    instance: str
    chatflow_id: str
    settings: GuardSettings
    state: GuardState
    alarm: GuardAlarm | None
    results: list[GuardResult] = Field(description="The newest 50.")
    due_at: datetime
    usd_this_month: float
