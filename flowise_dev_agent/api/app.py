"""The FastAPI app, put together."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware

from flowise_dev_agent import __version__
from flowise_dev_agent.api import openapi, problems
from flowise_dev_agent.api.access import authorize
from flowise_dev_agent.api.limits import build_limiter
from flowise_dev_agent.api.middleware import (
    ApiKeyMiddleware,
    BodyLimitMiddleware,
    MetricsMiddleware,
    RequestIdMiddleware,
    SecurityHeadersMiddleware,
)
from flowise_dev_agent.api.origin import OriginMiddleware
from flowise_dev_agent.api.routes import (
    attachments,
    audit,
    connections,
    credentials,
    deliveries,
    designs,
    document_stores,
    flows,
    health,
    instances,
    keys,
    knowledge,
    mcp,
    memories,
    node_artifacts,
    nodes,
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
        dependencies=[Depends(authorize)],
        # Both load scripts from a CDN; /docs leads to a view of our own page.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=openapi.operation_id,
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(MetricsMiddleware),
            Middleware(SecurityHeadersMiddleware),
            Middleware(OriginMiddleware, server=settings.server),
            Middleware(ApiKeyMiddleware, api_key=settings.server.api_key, sign_in=people),
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
    app.state.sign_in = people
    app.state.limiter = limiter = build_limiter(settings.server)
    problems.install(app)
    app.include_router(sessions.build_router(settings.server, limiter))
    app.include_router(process_conversation.router)
    app.include_router(attachments.router)
    app.include_router(node_artifacts.router)
    app.include_router(versions.router)
    app.include_router(flows.router)
    app.include_router(keys.router)
    app.include_router(keys.owners_router)
    app.include_router(shares.router)
    app.include_router(shares.shared_router)
    app.include_router(sign_in.router)
    app.include_router(audit.router)
    app.include_router(instances.router)
    app.include_router(document_stores.router)
    app.include_router(connections.router)
    app.include_router(credentials.router)
    app.include_router(knowledge.router)
    app.include_router(nodes.router)
    app.include_router(deliveries.router)
    app.include_router(designs.router)
    app.include_router(memories.router)
    app.include_router(patterns.router)
    app.include_router(health.worker_router)
    app.include_router(health.router)
    app.include_router(page.router)
    mcp_endpoint = mcp.mount(app, settings.server)
    page.mount_files(app)
    openapi.complete(app)
    return app


def create_worker_app(settings: Settings, engine: Runtime) -> FastAPI:
    """What a worker without an API says about itself: `/live`, `/ready` and `/metrics`, under the same key."""
    app = FastAPI(
        title="Flowise Dev Agent worker",
        version=__version__,
        openapi_url=None,
        dependencies=[Depends(authorize)],
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(SecurityHeadersMiddleware),
            Middleware(OriginMiddleware, server=settings.server),
            Middleware(ApiKeyMiddleware, api_key=settings.server.api_key),
        ],
    )
    app.state.settings = settings
    app.state.engine = engine
    app.state.stopping = False
    problems.install(app)
    app.include_router(health.worker_router)
    return app
