"""Postgres: pool, migrations, the fenced saver, the queue and the repositories with all SQL.

To this package interrupts, answers and payloads are opaque JSON.
"""

from flowise_dev_agent.persistence.blobs import Blobs
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.persistence.deliveries import Deliveries, Outbox
from flowise_dev_agent.persistence.events import Events, NewEvent, StoredEvent
from flowise_dev_agent.persistence.instance_nodes import CatalogueHead, InstanceNodes
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.lease import Lease
from flowise_dev_agent.persistence.migrate import migrate
from flowise_dev_agent.persistence.patterns import NewPattern, Patterns, StoredPattern
from flowise_dev_agent.persistence.queue import Queue
from flowise_dev_agent.persistence.refreshes import Refreshes, RefreshRow
from flowise_dev_agent.persistence.retention import Retention
from flowise_dev_agent.persistence.runs import Claim, Runs
from flowise_dev_agent.persistence.saver import FencedSaver
from flowise_dev_agent.persistence.sessions import SessionFilter, SessionRow, Sessions
from flowise_dev_agent.persistence.templates import InstanceTemplates
from flowise_dev_agent.persistence.versions import FlowVersion, Versions

__all__ = [
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
    "NewEvent",
    "NewPattern",
    "Outbox",
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
