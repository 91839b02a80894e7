"""Is it alive, is it ready, what does it run on."""

import asyncio
from typing import Any, Final

from fastapi import HTTPException, Request, Response

from flowise_dev_agent import __version__
from flowise_dev_agent.api.deps import engine
from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.models.local_model import local_models, offer
from flowise_dev_agent.observability.metrics import CONTENT_TYPE
from flowise_dev_agent.ops.health import public_settings
from flowise_dev_agent.ops.instances import flowise_health
from flowise_dev_agent.ops.models import model_views
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.service import HealthView, InfoView, PublicSettings, ReadyView, ReasoningView

_TEXT: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

router = Routes(tags=["health"])
#: What a worker answers too.
worker_router = Routes(tags=["health"])


@worker_router.get("/live", openapi_extra={"security": []})
async def get_live() -> dict[str, str]:
    """The process answers. Needs no key."""
    return {"status": "ok"}


@worker_router.get("/ready", responses=declared(), openapi_extra={"security": []})
async def get_ready(request: Request) -> ReadyView:
    """New work is taken: the database answers, its tables are up to date, and the service is not stopping. 503
    otherwise. Says how long work waits (`queue.oldest_secs`) and for how many workers; without any, or while the
    service is paused, it is still taken.
    Needs no key.
    """
    if request.app.state.stopping:
        raise HTTPException(503, "The service is stopping.")
    # One check at a time: it writes, and anybody may ask.
    async with request.app.state.checking:
        report = await engine(request).health.readiness()
    if missing := report.database.pending_migrations:
        raise HTTPException(503, f"The database lacks migrations: {', '.join(missing)}.")
    if newer := report.database.newer_migrations:
        raise HTTPException(503, f"The database is newer than this version of the service: {', '.join(newer)}.")
    return ReadyView(**vars(report))


@worker_router.get("/metrics", responses=_TEXT | declared())
async def get_metrics(request: Request) -> Response:
    """Metrics of this process and of the service, for Prometheus."""
    return Response(await engine(request).health.metrics(), media_type=CONTENT_TYPE)


def _reasoning(request: Request) -> ReasoningView:
    connections = engine(request).connections
    reasoning, problem = connections.reasoning, connections.problem()
    return ReasoningView(
        engine=reasoning.engine, model=reasoning.model_for("plan"), error=problem and Failure.of(problem)
    )


@router.get("/info", responses=declared())
async def get_info(request: Request) -> InfoView:
    """The version, the models that plan with what is known of each, and a model in reach of the service; answers
    within a quarter of a second, and asks no provider.
    """
    connections = engine(request).connections
    reasoning = connections.reasoning
    found = await local_models() if reasoning.engine == "deterministic" else []
    return InfoView(
        version=__version__,
        reasoning=_reasoning(request),
        models=await model_views(reasoning, connections.capabilities),
        local_models=found,
        offer=offer(found) if reasoning.engine == "deterministic" else None,
    )


@router.get("/health", responses=declared())
async def get_health(request: Request, response: Response) -> HealthView:
    """The state of the service and of each part that it depends on. 503 only if the database does not answer."""
    state = request.app.state
    report, flowise = await asyncio.gather(engine(request).health.health(), flowise_health(engine(request).instances))
    response.status_code = 503 if report.status == "unavailable" else 200
    view = HealthView(
        **vars(report),
        version=__version__,
        reasoning=_reasoning(request),
        flowise=flowise,
        drift_policy=state.settings.flowise.schema_drift_policy,
        model_stand_in=state.settings.flowise.model_stand_in,
    )
    # Sessions sleep where a Flowise is away.
    away = view.status == "ok" and any(one.state == "unavailable" for one in flowise.values())
    return view.model_copy(update={"status": "degraded"}) if away else view


@router.get("/settings", responses=declared())
async def get_settings(request: Request) -> PublicSettings:
    """The operator's settings that affect users."""
    return public_settings(request.app.state.settings, engine(request).connections.reasoning)
