"""Postgres: pool, migrations, the fenced saver, the queue and the repositories with all SQL.

To this package interrupts, answers and payloads are opaque JSON. Names are loaded when they are used: whoever only
cleans a text needs no driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowise_dev_agent.persistence.api_keys import ApiKeys, KeyRow
    from flowise_dev_agent.persistence.attachments import AttachmentRow, Attachments
    from flowise_dev_agent.persistence.audit import AuditFilter, Fact, Ledger
    from flowise_dev_agent.persistence.blobs import Blobs
    from flowise_dev_agent.persistence.connections import ConnectionRow, StoredConnections
    from flowise_dev_agent.persistence.database import Database
    from flowise_dev_agent.persistence.deliveries import Deliveries, Outbox
    from flowise_dev_agent.persistence.done_requests import DoneRequest, DoneRequests
    from flowise_dev_agent.persistence.events import Events, NewEvent, StoredEvent
    from flowise_dev_agent.persistence.flow_tests import FlowTestRow, FlowTests
    from flowise_dev_agent.persistence.flow_versions import FlowVersion, Versions
    from flowise_dev_agent.persistence.instance_nodes import CatalogueHead, InstanceNodes
    from flowise_dev_agent.persistence.intents import WriteIntent, WriteIntents
    from flowise_dev_agent.persistence.lease import Lease
    from flowise_dev_agent.persistence.leftovers import Leftover, Leftovers
    from flowise_dev_agent.persistence.node_artifacts import ArtifactFilter, ArtifactRow, NodeArtifacts
    from flowise_dev_agent.persistence.notes import NoteRow, Notes
    from flowise_dev_agent.persistence.pattern_rows import NewPattern, Patterns, StoredPattern
    from flowise_dev_agent.persistence.queue import Queue
    from flowise_dev_agent.persistence.read_model import SessionFilter, SessionRow
    from flowise_dev_agent.persistence.refreshes import Refreshes, RefreshRow
    from flowise_dev_agent.persistence.retention import Retention
    from flowise_dev_agent.persistence.runs import Claim, Runs
    from flowise_dev_agent.persistence.saver import FencedSaver
    from flowise_dev_agent.persistence.schema import migrate
    from flowise_dev_agent.persistence.sessions import Sessions
    from flowise_dev_agent.persistence.shares import ShareRow, Shares
    from flowise_dev_agent.persistence.sign_ins import SignIns
    from flowise_dev_agent.persistence.templates import InstanceTemplates
    from flowise_dev_agent.persistence.turns import Turns

_HOMES = {
    "ApiKeys": "api_keys",
    "KeyRow": "api_keys",
    "Leftover": "leftovers",
    "Leftovers": "leftovers",
    "AttachmentRow": "attachments",
    "Attachments": "attachments",
    "ArtifactFilter": "node_artifacts",
    "ArtifactRow": "node_artifacts",
    "NodeArtifacts": "node_artifacts",
    "NoteRow": "notes",
    "Notes": "notes",
    "AuditFilter": "audit",
    "Blobs": "blobs",
    "CatalogueHead": "instance_nodes",
    "Claim": "runs",
    "ConnectionRow": "connections",
    "StoredConnections": "connections",
    "Database": "database",
    "Deliveries": "deliveries",
    "DoneRequest": "done_requests",
    "DoneRequests": "done_requests",
    "Events": "events",
    "Fact": "audit",
    "FencedSaver": "saver",
    "FlowTestRow": "flow_tests",
    "FlowTests": "flow_tests",
    "FlowVersion": "flow_versions",
    "InstanceNodes": "instance_nodes",
    "InstanceTemplates": "templates",
    "Lease": "lease",
    "Ledger": "audit",
    "NewEvent": "events",
    "NewPattern": "pattern_rows",
    "Outbox": "deliveries",
    "Patterns": "pattern_rows",
    "Queue": "queue",
    "RefreshRow": "refreshes",
    "Refreshes": "refreshes",
    "Retention": "retention",
    "Runs": "runs",
    "SessionFilter": "read_model",
    "SessionRow": "read_model",
    "Sessions": "sessions",
    "ShareRow": "shares",
    "Shares": "shares",
    "SignIns": "sign_ins",
    "StoredEvent": "events",
    "StoredPattern": "pattern_rows",
    "Turns": "turns",
    "Versions": "flow_versions",
    "WriteIntent": "intents",
    "WriteIntents": "intents",
    "migrate": "schema",
}

__all__ = [
    "ApiKeys",
    "ArtifactFilter",
    "ArtifactRow",
    "AttachmentRow",
    "Attachments",
    "AuditFilter",
    "Blobs",
    "CatalogueHead",
    "Claim",
    "ConnectionRow",
    "Database",
    "Deliveries",
    "DoneRequest",
    "DoneRequests",
    "Events",
    "Fact",
    "FencedSaver",
    "FlowTestRow",
    "FlowTests",
    "FlowVersion",
    "InstanceNodes",
    "InstanceTemplates",
    "KeyRow",
    "Lease",
    "Ledger",
    "Leftover",
    "Leftovers",
    "NewEvent",
    "NewPattern",
    "NodeArtifacts",
    "NoteRow",
    "Notes",
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
    "ShareRow",
    "Shares",
    "SignIns",
    "StoredConnections",
    "StoredEvent",
    "StoredPattern",
    "Turns",
    "Versions",
    "WriteIntent",
    "WriteIntents",
    "migrate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
