"""Persistence on Postgres: pool, migrations, the fenced saver, the queue and the repositories with all SQL.

To this package interrupts, answers and payloads are opaque JSON.
"""
# pyright: reportUnusedImport=false

from flowise_dev_agent.persistence.acceptances import Acceptance, Acceptances
from flowise_dev_agent.persistence.api_keys import ApiKeys, KeyRow, SignIns
from flowise_dev_agent.persistence.attachments import AttachmentRow, Attachments
from flowise_dev_agent.persistence.audit import AuditFilter, AuditLog, Fact
from flowise_dev_agent.persistence.blobs import Blobs
from flowise_dev_agent.persistence.connections import ConnectionRow, StoredConnections
from flowise_dev_agent.persistence.database import Database, Lease
from flowise_dev_agent.persistence.deliveries import Deliveries, Outbox
from flowise_dev_agent.persistence.done_requests import DoneRequest, DoneRequests
from flowise_dev_agent.persistence.events import Events, NewEvent, StoredEvent
from flowise_dev_agent.persistence.flow_tests import FlowTestRow, FlowTests
from flowise_dev_agent.persistence.flow_versions import FlowVersion, Versions
from flowise_dev_agent.persistence.guards import Guards
from flowise_dev_agent.persistence.instance_nodes import CatalogueHead, InstanceNodes, InstanceTemplates
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.leftovers import Leftover, Leftovers
from flowise_dev_agent.persistence.model_capabilities import ModelCapabilityRows
from flowise_dev_agent.persistence.node_artifacts import ArtifactFilter, ArtifactRow, LoggedStep, NodeArtifacts
from flowise_dev_agent.persistence.notes import NoteRow, Notes
from flowise_dev_agent.persistence.pattern_rows import NewPattern, Patterns, StoredPattern
from flowise_dev_agent.persistence.queue import Queue
from flowise_dev_agent.persistence.read_model import SessionFilter, SessionRow, Turns
from flowise_dev_agent.persistence.refreshes import Refreshes, RefreshRow
from flowise_dev_agent.persistence.retention import Retention
from flowise_dev_agent.persistence.runs import Claim, Runs
from flowise_dev_agent.persistence.saver import FencedSaver
from flowise_dev_agent.persistence.schema import migrate
from flowise_dev_agent.persistence.sessions import Sessions
from flowise_dev_agent.persistence.shares import ShareRow, Shares
from flowise_dev_agent.persistence.test_sets import TestSets
from flowise_dev_agent.persistence.watched_versions import WatchedVersions
