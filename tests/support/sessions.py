"""Sessions of two usual kinds: a new flow by a form, for which no model is needed, and a change by a scripted model."""

from typing import Any, Final

from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.requests import StartSession

#: A plain assistant as a form describes it, for bodies of requests.
ASSISTANT: Final[dict[str, Any]] = {
    "name": "Customer support",
    "prompt": "You answer the questions of our customers in short, friendly sentences.",
    "model": "gpt-4o",
}
#: What a session of that form has as its requirement.
ASSISTANT_TEXT: Final = DesignForm.model_validate(ASSISTANT).as_text()

#: Rows and bytes that a session leaves, as Postgres has them.
KEPT: Final = """
    SELECT count(*) AS n, sum(size) AS bytes FROM (
        SELECT pg_column_size(one.*) AS size FROM sessions AS one WHERE id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM runs AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM session_events AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM node_artifacts AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM blobs AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM write_intents AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM flow_versions AS one WHERE session_id = %(id)s
        UNION ALL SELECT pg_column_size(one.*) FROM checkpoints AS one WHERE thread_id = %(id)s::text
        UNION ALL SELECT pg_column_size(one.*) FROM checkpoint_blobs AS one WHERE thread_id = %(id)s::text
        UNION ALL SELECT pg_column_size(one.*) FROM checkpoint_writes AS one WHERE thread_id = %(id)s::text
        UNION ALL SELECT pg_column_size(one.*) FROM procrastinate_jobs AS one WHERE task_name = 'run'
    ) AS kept
"""


def new_flow(**request: Any) -> StartSession:
    """Start a session for a plain assistant."""
    return StartSession.model_validate({"design": ASSISTANT, **request})
