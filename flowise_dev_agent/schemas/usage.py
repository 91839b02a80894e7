"""Cost of a session, and reasoning phases that fell back."""

from typing import Literal

from pydantic import Field

from flowise_dev_agent.phases import Mode, Phase
from flowise_dev_agent.schemas.base import Contract, Worded


class Usage(Contract):
    """Cost of a phase. `cached_tokens` are part of `input_tokens`; `usd` excludes `unpriced_calls`."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            usd=round(self.usd + other.usd, 6),
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
        )


class BudgetCeilings(Contract):
    """Ceilings of a session; a missing one follows the settings."""

    tokens: float | None = None
    usd: float | None = None


class DegradedPhase(Worded):
    """A reasoning phase whose configured mode failed and whose other mode answered."""

    phase: Phase
    failed_mode: Mode
    fallback_mode: Mode
    fallback_reason: str


class PhaseMetrics(Contract):
    """One run of a phase: classify, plan, patch, repair, test or judge. Timestamps are seconds since 1970 (UTC)."""

    phase: str
    start_ts: float
    end_ts: float
    duration_ms: int
    input_tokens: int = 0
    output_tokens: int = 0
    tool_call_count: int = 0
    cache_hits: int = Field(default=0, description="Calls of tools that were answered with an earlier result.")
    repair_events: int = Field(default=0, description="Node types that the server was asked for.")
    skills: str | None = Field(
        default=None, description="Versions of the skill files that a model read, own ones after a plus: 2+ours."
    )


class Totals(Contract):
    """Cost of the session so far: calls are counted at once, the rest at each question and at the end."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = Field(default=0.0, description="List prices, without the calls that have none.")
    unpriced_calls: int = Field(default=0, description="Model calls without a known price.")
    model_calls: int = 0
    flowise_calls: int = 0
    tool_calls: dict[str, int] = Field(default_factory=dict, description="Calls of tools by models, by name.")
    get_node_calls_total: int = Field(default=0, description="Node types that models looked up.")
    repairs: int = Field(default=0, description="Node types that the catalogue lacked: the server was asked for each.")
    knowledge_repairs: int = Field(default=0, description="Missing node types that the server had.")
    phases_timed: int = 0
    phase_durations_ms: dict[str, int] = Field(default_factory=dict)
    node_durations_ms: dict[str, int] = Field(default_factory=dict)


SessionKind = Literal["create", "update", "copy"]


class ExpectedCost(Contract):
    """Expected cost of a new session, from similar recorded sessions; unknown without any."""

    free: bool = Field(description="No model plans.")
    sessions: int = Field(description="Number of recorded sessions in the average; 50 at most.")
    usd: float | None = Field(default=None, description="None: not known, as for a model without a known price.")
    seconds: float | None = Field(
        default=None, description="Working time of the service, without the time that people take to answer."
    )
