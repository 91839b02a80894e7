"""Postgres: pool, migrations, the fenced saver, the queue and the repositories with all SQL.

To this package interrupts, answers and payloads are opaque JSON.
"""

from flowise_dev_agent.persistence.blobs import Blobs
from flowise_dev_agent.persistence.database import Database
from flowise_dev_agent.persistence.events import Events, NewEvent, StoredEvent
from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
from flowise_dev_agent.persistence.lease import Lease
from flowise_dev_agent.persistence.migrate import migrate
from flowise_dev_agent.persistence.patterns import NewPattern, Patterns, StoredPattern
from flowise_dev_agent.persistence.queue import Queue
from flowise_dev_agent.persistence.runs import Claim, Runs
from flowise_dev_agent.persistence.saver import FencedSaver
from flowise_dev_agent.persistence.sessions import SessionRow, Sessions
from flowise_dev_agent.persistence.versions import FlowVersion, Versions

__all__ = [
    "Blobs",
    "Claim",
    "Database",
    "Events",
    "FencedSaver",
    "FlowVersion",
    "Lease",
    "NewEvent",
    "NewPattern",
    "Patterns",
    "Queue",
    "Runs",
    "SessionRow",
    "Sessions",
    "StoredEvent",
    "StoredPattern",
    "Versions",
    "WriteIntent",
    "WriteIntents",
    "migrate",
]
