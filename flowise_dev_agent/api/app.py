"""The FastAPI app, put together."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware

from flowise_dev_agent import __version__
from flowise_dev_agent.api import openapi, problems
from flowise_dev_agent.api.limits import build_limiter
from flowise_dev_agent.api.middleware import (
    ApiKeyMiddleware,
    BodyLimitMiddleware,
    MetricsMiddleware,
    PlacesMiddleware,
    RequestIdMiddleware,
    SecurityHeadersMiddleware,
)
from flowise_dev_agent.api.origin import OriginMiddleware
from flowise_dev_agent.api.routes import (
    attachments,
    audit,
    fleet,
    flows,
    health,
    keys,
    knowledge,
    mcp,
    node_artifacts,
    page,
    patterns,
    process_conversation,
    sessions,
    shares,
    sign_in,
    versions,
)
from flowise_dev_agent.ops.runtime import Runtime
from flowise_dev_agent.settings import Settings

_DESCRIPTION = """A sentence becomes a tested chatflow on your Flowise server, with your approval before anything is
written. Start a session, answer its questions (`interrupt`), read the result. Errors are RFC 9457 problem details with
a stable `code`."""


def create_app(settings: Settings, engine: Runtime | None = None) -> FastAPI:
    """The service over `engine`, or over one that it opens itself (with a worker inside) for its lifetime."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            if people is not None:
                stack.push_async_callback(people.aclose)
            if engine is None:
                app.state.engine = await stack.enter_async_context(Runtime.open(settings, worker=True))
            await stack.enter_async_context(mcp_endpoint.running())
            yield

    people = sign_in.service(settings, lambda: app.state.engine)
    app = FastAPI(
        title="Flowise Dev Agent",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        # Both load scripts from a CDN; /docs leads to a view of our own page.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(MetricsMiddleware),
            Middleware(SecurityHeadersMiddleware),
            Middleware(OriginMiddleware, server=settings.server),
            Middleware(ApiKeyMiddleware, server=settings.server, sign_in=people),
            Middleware(PlacesMiddleware, most=settings.server.max_connections),
            Middleware(
                BodyLimitMiddleware,
                max_bytes=problems.MAX_BODY_BYTES,
                flow_bytes=problems.MAX_FLOW_BODY_BYTES,
                file_bytes=problems.MAX_FILE_BODY_BYTES,
            ),
        ],
    )
    app.state.settings = settings
    app.state.engine = engine
    app.state.stopping = False
    app.state.checking = asyncio.Lock()
    app.state.sign_in = people
    app.state.limiter = build_limiter()
    problems.install(app)
    sessions.router.add_to(app)
    process_conversation.router.add_to(app)
    attachments.router.add_to(app)
    node_artifacts.router.add_to(app)
    versions.router.add_to(app)
    flows.router.add_to(app)
    fleet.router.add_to(app)
    keys.router.add_to(app)
    keys.owners_router.add_to(app)
    shares.router.add_to(app)
    shares.shared_router.add_to(app)
    sign_in.router.add_to(app)
    audit.router.add_to(app)
    knowledge.router.add_to(app)
    sessions.deliveries_router.add_to(app)
    sessions.designs_router.add_to(app)
    patterns.memories_router.add_to(app)
    patterns.router.add_to(app)
    health.worker_router.add_to(app)
    health.router.add_to(app)
    page.router.add_to(app)
    mcp_endpoint = mcp.mount(app, settings.server)
    page.mount_files(app)
    openapi.complete(app)
    return app


def create_worker_app(settings: Settings, engine: Runtime) -> FastAPI:
    """App of a worker without an API: `/live`, `/ready` and `/metrics`, under the same key."""
    app = FastAPI(
        title="Flowise Dev Agent worker",
        version=__version__,
        openapi_url=None,
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(SecurityHeadersMiddleware),
            Middleware(OriginMiddleware, server=settings.server),
            Middleware(ApiKeyMiddleware, server=settings.server),
        ],
    )
    app.state.settings = settings
    app.state.engine = engine
    app.state.stopping = False
    app.state.checking = asyncio.Lock()
    problems.install(app)
    health.worker_router.add_to(app)
    return app
