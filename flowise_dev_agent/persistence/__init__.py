"""Postgres: pool, migrations, the fenced saver, the queue and the repositories with all SQL.

To this package interrupts, answers and payloads are opaque JSON.
"""

from flowise_dev_agent.persistence.blobs import Blobs
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.persistence.deliveries import Deliveries, Outbox
from flowise_dev_agent.persistence.drafts import AbandonedDraft, AbandonedDrafts
from flowise_dev_agent.persistence.events import Events, NewEvent, StoredEvent
from flowise_dev_agent.persistence.instance_nodes import CatalogueHead, InstanceNodes
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.lease import Lease
from flowise_dev_agent.persistence.ledger import Ledger, Passage
from flowise_dev_agent.persistence.migrate import migrate
from flowise_dev_agent.persistence.patterns import NewPattern, Patterns, StoredPattern
from flowise_dev_agent.persistence.queue import Queue
from flowise_dev_agent.persistence.read_model import SessionFilter, SessionRow
from flowise_dev_agent.persistence.refreshes import Refreshes, RefreshRow
from flowise_dev_agent.persistence.retention import Retention
from flowise_dev_agent.persistence.runs import Claim, Runs
from flowise_dev_agent.persistence.saver import FencedSaver
from flowise_dev_agent.persistence.sessions import Sessions
from flowise_dev_agent.persistence.templates import InstanceTemplates
from flowise_dev_agent.persistence.versions import FlowVersion, Versions

__all__ = [
    "AbandonedDraft",
    "AbandonedDrafts",
    "Blobs",
    "CatalogueHead",
    "Claim",
    "Database",
    "Deliveries",
    "Events",
    "FencedSaver",
    "FlowVersion",
    "InstanceNodes",
    "InstanceTemplates",
    "Lease",
    "Ledger",
    "NewEvent",
    "NewPattern",
    "Outbox",
    "Passage",
    "Patterns",
    "Queue",
    "RefreshRow",
    "Refreshes",
    "Retention",
    "Runs",
    "SessionFilter",
    "SessionRow",
    "Sessions",
    "StoredEvent",
    "StoredPattern",
    "Versions",
    "WriteIntent",
    "WriteIntents",
    "migrate",
]
