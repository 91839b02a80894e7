"""Settings of the operator that clients may see: no key, no secret, no address that holds one."""

from flowise_dev_agent import __version__
from flowise_dev_agent.schemas.service import InstanceSettings, PhaseSettings, PublicSettings
from flowise_dev_agent.settings import Phase, ReasoningSettings, Settings

_PHASES: tuple[Phase, ...] = ("classify", "plan", "patch", "judge")


def public_settings(settings: Settings, reasoning: ReasoningSettings) -> PublicSettings:
    """Select the settings that matter to people. `reasoning` may come from a stored connection."""
    server, flowise, limits, retention = settings.server, settings.flowise, settings.limits, settings.retention
    return PublicSettings(
        version=__version__,
        auth=server.api_key is not None,
        engine=reasoning.engine,
        phases={
            phase: PhaseSettings(mode=reasoning.mode_of(phase), model=reasoning.model_for(phase)) for phase in _PHASES
        },
        fallback_enabled=reasoning.fallback_enabled,
        retry_count=reasoning.retry_count,
        instances=[InstanceSettings(id=item.id, default=index == 0) for index, item in enumerate(flowise.instances)],
        schema_drift_policy=flowise.schema_drift_policy,
        limits=limits.model_dump(),
        retention_days={
            "sessions": retention.sessions_days,
            "threads": retention.threads_days,
            "events": retention.events_days,
            "artifacts": retention.artifacts_days,
        },
        rate_limit_sessions_per_min=server.rate_limit_sessions_per_min,
        worker_concurrency=server.worker_concurrency,
        webhooks_signed=bool(server.webhook_secrets),
        public_base_url=str(server.public_base_url) if server.public_base_url else None,
        tracing=settings.tracing.key is not None,
    )
