"""The write path to Flowise: guard, intent rows, adoption, read-back, acceptance, rollback."""
# pyright: reportUnusedImport=false

from flowise_dev_agent.flowise.flow_tags import draft_tag, flow_tag, is_draft, without_tag
from flowise_dev_agent.publish.drafts import (
    create_draft,
    draft_columns,
    find_tagged,
    remove_unclaimed,
    uploaded_file,
    why_not_staged,
)
from flowise_dev_agent.publish.outcomes import Base, Stale, Written, authorize, changes, stale_base
from flowise_dev_agent.publish.publisher import Publisher
from flowise_dev_agent.publish.store_files import StoreSpec
from flowise_dev_agent.publish.stores import MadeStore, remove_unclaimed_stores
from flowise_dev_agent.publish.tools import remove_unclaimed_tools
