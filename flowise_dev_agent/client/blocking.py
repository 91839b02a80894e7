"""`SyncAgentClient`: the calls of `AgentClient` for programs without an event loop."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from pydantic import SecretStr

from flowise_dev_agent.client.client import AgentClient

P = ParamSpec("P")
T = TypeVar("T")
_END: Final = object()


class _Call(Generic[P, T]):
    """Blocking version of a call of `AgentClient`."""

    def __init__(self, call: Callable[Concatenate[AgentClient, P], Coroutine[Any, Any, T]]) -> None:
        self.call = call
        self.__doc__ = call.__doc__

    def __get__(self, client: "SyncAgentClient", _: type["SyncAgentClient"]) -> Callable[P, T]:
        def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.portal.call(partial(self.call, client.agent, *args, **kwargs))

        return blocking


class _Stream(Generic[P, T]):
    """Blocking iterator over a stream of `AgentClient`."""

    def __init__(self, call: Callable[Concatenate[AgentClient, P], AsyncGenerator[T]]) -> None:
        self.call = call
        self.__doc__ = call.__doc__

    def __get__(self, client: "SyncAgentClient", _: type["SyncAgentClient"]) -> Callable[P, Generator[T]]:
        def blocking(*args: P.args, **kwargs: P.kwargs) -> Generator[T]:
            items = self.call(client.agent, *args, **kwargs)
            try:
                while (item := client.portal.call(anext, items, _END)) is not _END:
                    yield item  # type: ignore[misc]
            finally:
                client.portal.call(items.aclose)

        return blocking


class SyncAgentClient:
    """Blocking client, to be used as a context manager.

    Its calls, errors and options are those of `AgentClient`, which runs in a separate thread.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8000",
        api_key: SecretStr | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        reconnects: int = 30,
        transport: httpx2.AsyncBaseTransport | None = None,
        owner: str | None = None,
    ) -> None:
        self.agent = AgentClient(
            base_url,
            api_key,
            timeout=timeout,
            retries=retries,
            reconnects=reconnects,
            transport=transport,
            owner=owner,
        )
        self._running: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal | None = None

    @property
    def portal(self) -> BlockingPortal:
        """The portal to the event loop of the calls."""
        if self._portal is None:
            raise RuntimeError("Use the client in a `with` statement.")
        return self._portal

    def __enter__(self) -> Self:
        self._running = start_blocking_portal()
        self._portal = self._running.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.portal.call(self.agent.aclose)
        self._portal = None
        if self._running is not None:
            self._running.__exit__(*error)

    # --- following ----------------------------------------------------------------------------------------------------
    wait = _Call(AgentClient.wait)
    events = _Stream(AgentClient.events)
    start_events = _Stream(AgentClient.start_events)
    resume_events = _Stream(AgentClient.resume_events)
    converse = _Stream(AgentClient.converse)
    event_page = _Call(AgentClient.event_page)
    decisions = _Call(AgentClient.decisions)

    # --- sessions -----------------------------------------------------------------------------------------------------
    start = _Call(AgentClient.start)
    resume = _Call(AgentClient.resume)
    cancel = _Call(AgentClient.cancel)
    retry = _Call(AgentClient.retry)
    get = _Call(AgentClient.get)
    list = _Call(AgentClient.list)
    expected_cost = _Call(AgentClient.expected_cost)
    rename = _Call(AgentClient.rename)
    delete = _Call(AgentClient.delete)
    summary = _Call(AgentClient.summary)
    summary_page = _Call(AgentClient.summary_page)
    turns = _Call(AgentClient.turns)
    change = _Call(AgentClient.change)
    preview = _Call(AgentClient.preview)
    design = _Call(AgentClient.design)
    design_schema = _Call(AgentClient.design_schema)
    trace = _Call(AgentClient.trace)
    attach = _Call(AgentClient.attach)
    attachments = _Call(AgentClient.attachments)
    attachment = _Call(AgentClient.attachment)
    delete_attachment = _Call(AgentClient.delete_attachment)
    deliveries = _Call(AgentClient.deliveries)
    all_deliveries = _Call(AgentClient.all_deliveries)
    replay = _Call(AgentClient.replay)

    # --- share links --------------------------------------------------------------------------------------------------
    shares = _Call(AgentClient.shares)
    create_share = _Call(AgentClient.create_share)
    revoke_share = _Call(AgentClient.revoke_share)
    shared = _Call(AgentClient.shared)
    shared_version = _Call(AgentClient.shared_version)

    # --- flows --------------------------------------------------------------------------------------------------------
    find_flows = _Call(AgentClient.find_flows)
    flow_reach = _Call(AgentClient.flow_reach)
    flow_summary = _Call(AgentClient.flow_summary)
    flow_graph = _Call(AgentClient.flow_graph)
    flow_conversation = _Call(AgentClient.flow_conversation)
    export_flow = _Call(AgentClient.export_flow)
    flow_ops = _Call(AgentClient.flow_ops)
    read_flows = _Call(AgentClient.read_flows)
    import_flow = _Call(AgentClient.import_flow)
    apply_to_flow = _Call(AgentClient.apply_to_flow)
    promote_flow = _Call(AgentClient.promote_flow)
    export_version = _Call(AgentClient.export_version)
    fleet = _Call(AgentClient.fleet)
    fleet_export = _Call(AgentClient.fleet_export)
    restore_version = _Call(AgentClient.restore_version)
    preview_flow = _Call(AgentClient.preview_flow)
    validate_flow = _Call(AgentClient.validate_flow)
    test_flow = _Call(AgentClient.test_flow)
    flow_test = _Call(AgentClient.flow_test)
    guard = _Call(AgentClient.guard)
    put_guard = _Call(AgentClient.put_guard)
    delete_guard = _Call(AgentClient.delete_guard)
    test_set = _Call(AgentClient.test_set)
    put_test_set = _Call(AgentClient.put_test_set)
    mark_test = _Call(AgentClient.mark_test)
    test_trace = _Call(AgentClient.test_trace)
    ask_flow = _Call(AgentClient.ask_flow)
    forget_chat = _Call(AgentClient.forget_chat)

    # --- versions -----------------------------------------------------------------------------------------------------
    versions = _Call(AgentClient.versions)
    version_graph = _Call(AgentClient.version_graph)
    version_diff = _Call(AgentClient.version_diff)
    certificate = _Call(AgentClient.certificate)
    certificate_keys = _Call(AgentClient.certificate_keys)
    rollback = _Call(AgentClient.rollback)
    flow_versions = _Call(AgentClient.flow_versions)
    flow_history = _Call(AgentClient.flow_history)
    compare_flow = _Call(AgentClient.compare_flow)
    bookmark = _Call(AgentClient.bookmark)
    remove_bookmark = _Call(AgentClient.remove_bookmark)

    # --- knowledge ----------------------------------------------------------------------------------------------------
    connections = _Call(AgentClient.connections)
    connect_flowise = _Call(AgentClient.connect_flowise)
    connect_model = _Call(AgentClient.connect_model)
    disconnect_flowise = _Call(AgentClient.disconnect_flowise)
    disconnect_model = _Call(AgentClient.disconnect_model)
    search_catalogue = _Call(AgentClient.search_catalogue)
    node_types = _Call(AgentClient.node_types)
    node_type = _Call(AgentClient.node_type)
    node_options = _Call(AgentClient.node_options)
    credentials = _Call(AgentClient.credentials)
    credential_types = _Call(AgentClient.credential_types)
    create_credential = _Call(AgentClient.create_credential)
    instances = _Call(AgentClient.instances)
    knowledge = _Call(AgentClient.knowledge)
    variables = _Call(AgentClient.variables)
    document_stores = _Call(AgentClient.document_stores)
    refresh_document_store = _Call(AgentClient.refresh_document_store)
    refresh = _Call(AgentClient.refresh)
    memories = _Call(AgentClient.memories)
    add_memory = _Call(AgentClient.add_memory)
    delete_memory = _Call(AgentClient.delete_memory)
    patterns = _Call(AgentClient.patterns)
    export_patterns = _Call(AgentClient.export_patterns)
    import_patterns = _Call(AgentClient.import_patterns)
    delete_pattern = _Call(AgentClient.delete_pattern)

    # --- artifacts ----------------------------------------------------------------------------------------------------
    artifacts = _Call(AgentClient.artifacts)
    artifact = _Call(AgentClient.artifact)
    plan_artifacts = _Call(AgentClient.plan_artifacts)
    plan_artifact = _Call(AgentClient.plan_artifact)
    milestone_artifacts = _Call(AgentClient.milestone_artifacts)
    milestone_artifact = _Call(AgentClient.milestone_artifact)
    decision_artifacts = _Call(AgentClient.decision_artifacts)
    decision_artifact = _Call(AgentClient.decision_artifact)
    memory_artifacts = _Call(AgentClient.memory_artifacts)
    memory_artifact = _Call(AgentClient.memory_artifact)

    # --- service ------------------------------------------------------------------------------------------------------
    keys = _Call(AgentClient.keys)
    owners = _Call(AgentClient.owners)
    current_key = _Call(AgentClient.current_key)
    create_key = _Call(AgentClient.create_key)
    rotate_key = _Call(AgentClient.rotate_key)
    revoke_key = _Call(AgentClient.revoke_key)
    audit = _Call(AgentClient.audit)
    audit_export = _Stream(AgentClient.audit_export)
    audit_verify = _Call(AgentClient.audit_verify)
    erase_audit_words = _Call(AgentClient.erase_audit_words)
    health = _Call(AgentClient.health)
    info = _Call(AgentClient.info)
    service_settings = _Call(AgentClient.service_settings)
    ready = _Call(AgentClient.ready)
    live = _Call(AgentClient.live)
    metrics = _Call(AgentClient.metrics)
