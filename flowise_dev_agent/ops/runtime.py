"""Runtime of a process: database, connections, services and worker, assembled once."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from flowise_dev_agent.access.audit import AuditService
from flowise_dev_agent.access.certificates import CertificateService
from flowise_dev_agent.access.keys import KeyService
from flowise_dev_agent.access.shares import ShareService, ShareSigner
from flowise_dev_agent.access.signing import CertificateSigner
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flows.fleet import FleetService
from flowise_dev_agent.flows.flow_tests import FlowTester, FlowTestService
from flowise_dev_agent.flows.proposals import Proposals
from flowise_dev_agent.flows.reconciler import Reconciler
from flowise_dev_agent.flows.service import FlowService
from flowise_dev_agent.flows.test_sets import TestSetService
from flowise_dev_agent.flows.watch import Watch
from flowise_dev_agent.knowledge.flow_index import FlowIndex
from flowise_dev_agent.knowledge.nodes import NodeKnowledge
from flowise_dev_agent.observability import configure_tracing, sending_spans
from flowise_dev_agent.ops.catalogue import CatalogueService
from flowise_dev_agent.ops.connections import Connections
from flowise_dev_agent.ops.guards import GuardKeeper, GuardService
from flowise_dev_agent.ops.health import HealthReporter
from flowise_dev_agent.ops.knowledge_refresh import KnowledgeService, Refresher
from flowise_dev_agent.ops.node_types import NodeTypes
from flowise_dev_agent.ops.worker import Worker
from flowise_dev_agent.persistence import (
    Acceptances,
    Attachments,
    AuditLog,
    Blobs,
    Database,
    Deliveries,
    DoneRequests,
    Events,
    FlowTests,
    Guards,
    InstanceNodes,
    Leftovers,
    NodeArtifacts,
    Outbox,
    Queue,
    Refreshes,
    Retention,
    Runs,
    Sessions,
    TestSets,
    Turns,
    Versions,
    WatchedVersions,
    WriteIntents,
    migrate,
)
from flowise_dev_agent.persistence.queue_stats import pause
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.approvals import ApprovalRules
from flowise_dev_agent.sessions.attachments import AttachmentService
from flowise_dev_agent.sessions.conversation import Conversations
from flowise_dev_agent.sessions.executor import RunExecutor
from flowise_dev_agent.sessions.feed import Feed
from flowise_dev_agent.sessions.flow_writer import FlowWriter
from flowise_dev_agent.sessions.node_artifacts import ArtifactService
from flowise_dev_agent.sessions.preview import Previews
from flowise_dev_agent.sessions.recovery import Recovery
from flowise_dev_agent.sessions.service import ExpectedCosts, SessionService
from flowise_dev_agent.sessions.summary import Summaries
from flowise_dev_agent.sessions.version_history import FlowVersions
from flowise_dev_agent.sessions.webhook_payload import render
from flowise_dev_agent.settings import RetentionSettings, Settings, load_settings
from flowise_dev_agent.timings import Timings
from flowise_dev_agent.webhooks.client import FlowEvents, WebhookClient
from flowise_dev_agent.webhooks.service import WebhookConfig, WebhookService
from flowise_dev_agent.webhooks.worker import DeliveryWorker


@dataclass(kw_only=True)
class Runtime:
    """The runtime of a process: `service` for clients, and a worker unless other processes do that work.

    Make it with `Runtime.open`, or with `Runtime.assemble` around any graph.
    """

    db: Database
    keys: KeyService
    done_requests: DoneRequests
    audit_log: AuditLog
    audit: AuditService
    connections: Connections
    instances: Instances
    service: SessionService
    versions: FlowVersions
    flow_writer: FlowWriter
    flows: FlowService
    fleet: FleetService
    flow_tests: FlowTestService
    test_sets: TestSetService
    guards: GuardService
    previews: Previews
    conversations: Conversations
    summaries: Summaries
    knowledge: KnowledgeService
    catalogue: CatalogueService
    node_types: NodeTypes
    attachments: AttachmentService
    expected_costs: ExpectedCosts
    artifacts: ArtifactService
    shares: ShareService
    certificates: CertificateService
    feed: Feed
    health: HealthReporter

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, worker: bool, paused: bool = False) -> AsyncGenerator["Runtime"]:
        """Migrate, connect and start; with `paused`, all workers of the database wait. Leaving the block drains within
        about 10 s.

        Raises ConfigurationError without a database, DatabaseUnavailableError when it does not answer.
        """
        # The agent with its model SDKs takes a second to import; a process that runs another graph needs none of it.
        from flowise_dev_agent.ops.dependencies import open_agent

        dsn, direct_dsn = settings.database.dsn, settings.database.direct_dsn
        if dsn is None:
            raise ConfigurationError(
                "No database is set.",
                hint="Set POSTGRES_DSN to a Postgres of your own, or start with --embedded to use a built-in one.",
            )
        configure_tracing(settings.tracing)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(sending_spans(settings.tracing))
            database = Database(
                dsn.get_secret_value(),
                min_size=settings.database.pool_min_size,
                max_size=settings.database.pool_max_size,
                connect_timeout=settings.database.connect_timeout_secs,
                pooler=direct_dsn is not None,
            )
            connections = Connections(settings, database)
            agent = await stack.enter_async_context(open_agent(settings, database, connections))
            yield await stack.enter_async_context(
                cls.assemble(
                    database,
                    (direct_dsn or dsn).get_secret_value(),
                    agent,
                    connections,
                    worker=worker,
                    paused=paused,
                    concurrency=settings.server.worker_concurrency,
                    attempts=settings.limits.run_attempts,
                    outage_secs=settings.flowise.outage_hours * 3600,
                    watch_secs=settings.flowise.watch_secs,
                    retention=settings.retention,
                    webhooks=WebhookConfig.from_settings(settings.server),
                    approvals=ApprovalRules.from_settings(settings.server),
                    signer=ShareSigner.from_settings(settings),
                    certificate_signer=CertificateSigner.from_settings(settings),
                )
            )

    @classmethod
    @asynccontextmanager
    async def assemble(
        cls,
        database: Database,
        direct_dsn: str,
        agent: Agent,
        connections: Connections | None = None,
        *,
        worker: bool,
        paused: bool = False,
        concurrency: int = 10,
        attempts: int = 5,
        outage_secs: float = 0.0,
        watch_secs: float = 0.0,
        retention: RetentionSettings | None = None,
        webhooks: WebhookConfig | None = None,
        approvals: ApprovalRules | None = None,
        signer: ShareSigner | None = None,
        certificate_signer: CertificateSigner | None = None,
        timings: Timings | None = None,
    ) -> AsyncGenerator["Runtime"]:
        """A runtime around `agent` on a database that is not open yet; `direct_dsn` is for LISTEN and migrations."""
        timings, webhooks = timings or Timings(), webhooks or WebhookConfig()
        retention, approvals = retention or RetentionSettings(), approvals or ApprovalRules()
        connections = connections or Connections(load_settings(), database)
        await migrate(direct_dsn)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(database)
            if paused:
                await pause(database, paused=True)
            await stack.enter_async_context(connections.watching())
            queue = Queue(direct_dsn, heartbeat_secs=timings.heartbeat)
            outbox = Outbox(queue, lambda row: render(row, agent.chatflow_link, webhooks.base_url))
            sessions, runs = Sessions(database, queue, outbox.add), Runs(database, queue, outbox.add)
            events, deliveries = Events(database), Deliveries(database, queue)
            refreshes, flow_tests = Refreshes(database, queue), FlowTests(database, queue)
            feed = await stack.enter_async_context(Feed(events, database.notices, direct_dsn, poll_secs=timings.poll))
            service = SessionService(
                database=database,
                sessions=sessions,
                events=events,
                feed=feed,
                agent=agent,
                webhooks=WebhookService(deliveries, webhooks),
                approvals=approvals,
            )
            audit_log = AuditLog(database)
            blobs, intents = Blobs(database), WriteIntents(database)
            kept, watched, sets = Versions(database, blobs), WatchedVersions(database), TestSets(database)
            index = FlowIndex(database, watched=watched if watch_secs else None)
            # Asked at each write, which costs little while nothing has changed.
            proposals = Proposals(agent.instances, NodeKnowledge(0, InstanceNodes(database)))
            flow_writer = FlowWriter(
                proposals=proposals,
                sessions=sessions,
                blobs=blobs,
                intents=intents,
                versions=kept,
                instances=agent.instances,
                approvals=approvals,
            )
            tester = FlowTestService(flow_tests, agent.instances, proposals, kept, sets)
            versions = FlowVersions(sessions=sessions, versions=kept, intents=intents, instances=agent.instances)
            guards = Guards(database)
            consumer: Worker | None = None
            if worker:
                await stack.enter_async_context(queue)
                executor = RunExecutor(
                    database=database,
                    runs=runs,
                    events=events,
                    agent=agent,
                    flow_writer=flow_writer,
                    timings=timings,
                    attempts=attempts,
                    outage_secs=outage_secs,
                    prepare=connections.prepare,
                )
                webhook_client = await stack.enter_async_context(
                    WebhookClient(webhooks.policy, webhooks.secrets, timeout=webhooks.timeout, tls=webhooks.tls)
                )
                consumer = Worker(
                    database=database,
                    queue=queue,
                    executor=executor,
                    recovery=Recovery(runs, timings, attempts=attempts),
                    retention=Retention(database, sessions, retention),
                    guards=GuardKeeper(guards, tester, agent.instances, webhook_client),
                    reconciler=Reconciler(Leftovers(database), agent.instances, failed_days=retention.drafts_days),
                    versions=versions,
                    deliveries=DeliveryWorker(deliveries, webhook_client, webhooks, timings),
                    refresher=Refresher(database, refreshes, agent.instances, timings),
                    flow_tester=FlowTester(flow_tests, agent.instances, proposals.schemas, timings),
                    watch=Watch(
                        database,
                        index=index,
                        blobs=blobs,
                        instances=agent.instances,
                        schemas=proposals.schemas,
                        tell=FlowEvents(webhook_client, webhooks.flow_url).tell if webhooks.flow_url else None,
                        every_secs=watch_secs,
                    )
                    if watch_secs
                    else None,
                    timings=timings,
                    concurrency=concurrency,
                )
                await stack.enter_async_context(consumer)
            # Streams end before the worker drains, so that the server can close its connections during that time.
            stack.callback(feed.end_streams)
            flows = FlowService(
                instances=agent.instances,
                sessions=sessions,
                versions=kept,
                blobs=blobs,
                proposals=proposals,
                index=index,
                link=agent.chatflow_link,
                audit_log=audit_log,
            )
            conversations = Conversations(sessions, Turns(database))
            previews = Previews(sessions=sessions, events=events, blobs=blobs, agent=agent)
            yield cls(
                db=database,
                keys=KeyService(database),
                done_requests=DoneRequests(database),
                audit_log=audit_log,
                audit=AuditService(audit_log),
                connections=connections,
                instances=agent.instances,
                service=service,
                versions=versions,
                flow_writer=flow_writer,
                flows=flows,
                flow_tests=tester,
                guards=GuardService(guards, agent.instances, webhooks),
                test_sets=TestSetService(sets, sessions, agent.instances),
                fleet=FleetService(
                    database, index=index, instances=agent.instances, versions=kept, link=agent.chatflow_link
                ),
                conversations=conversations,
                previews=previews,
                summaries=Summaries(
                    sessions=sessions,
                    events=events,
                    audit_log=audit_log,
                    flows=flows,
                    link=agent.chatflow_link,
                ),
                knowledge=KnowledgeService(database, refreshes, agent.instances),
                catalogue=CatalogueService(database, agent.instances),
                node_types=NodeTypes(agent),
                attachments=AttachmentService(Attachments(database)),
                expected_costs=ExpectedCosts(database, agent),
                artifacts=ArtifactService(NodeArtifacts(database), sessions),
                shares=ShareService(
                    database,
                    signer or ShareSigner(),
                    sessions=sessions,
                    versions=kept,
                    history=versions,
                    flows=flows,
                    conversations=conversations,
                    previews=previews,
                ),
                certificates=CertificateService(
                    certificate_signer or CertificateSigner(),
                    sessions=sessions,
                    acceptances=Acceptances(database),
                    blobs=blobs,
                    proposals=proposals,
                ),
                feed=feed,
                health=HealthReporter(database, agent.instances, feed, consumer, silent=timings.stalled),
            )
