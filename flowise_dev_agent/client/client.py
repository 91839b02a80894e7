"""`AgentClient`: all routes of the service as typed calls, events as an async iterator."""

from flowise_dev_agent.client.admin import AdminCalls
from flowise_dev_agent.client.artifacts import ArtifactCalls
from flowise_dev_agent.client.events import EventCalls
from flowise_dev_agent.client.flows import FlowCalls
from flowise_dev_agent.client.knowledge import KnowledgeCalls
from flowise_dev_agent.client.sessions import SessionCalls
from flowise_dev_agent.client.shares import ShareCalls
from flowise_dev_agent.client.versions import VersionCalls


class AgentClient(
    EventCalls, SessionCalls, FlowCalls, VersionCalls, KnowledgeCalls, ArtifactCalls, ShareCalls, AdminCalls
):
    """Use it as an async context manager; `SyncAgentClient` is the same without async.

    Every call raises `ServiceError` with the service's own words when it answers with a problem, and
    `ServiceUnreachableError` when nothing answers at `base_url`. `timeout` (seconds) is for the answer of a call, on
    top of the time that the call itself waits. `retries` is how often a call is repeated while the service is away,
    if that can start nothing twice: starts, answers and writes have an idempotency key, made where none is given.
    `reconnects` is how often in a row `events` reopens a stream that broke; with 0 it ends with its first stream.
    `door` is what the service records as the way by which its callers came, `request` the one that its calls belong
    to, `owner` the one for whom a key with the scope `admin` acts.
    """
