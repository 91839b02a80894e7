"""Tags in a chatflow's `category` and a document store's description, by which a session finds what it made.

Flowise drops client-supplied ids and allows equal names, so a create can be recognised only by a free-text column.
`category` is `;`-separated, survives PUTs of other columns and a save in the editor (Flowise 3.1.4, measured).
"""

PREFIX = "fda:"


def flow_tag(session_id: str) -> str:
    """The tag of the chatflow that a session made, until it is accepted."""
    return f"{PREFIX}{session_id}:flow"


def draft_tag(session_id: str) -> str:
    """The tag of the draft on which a session tries out a change to a flow that is in use."""
    return f"{PREFIX}{session_id}:draft"


def copy_tag(session_id: str) -> str:
    """The tag of the copy of a flow that a session tests: what changes the world is simulated there."""
    return f"{PREFIX}{session_id}:test"


def store_tag(session_id: str, key: str = "") -> str:
    """The tag of a document store that a session made, in its description until the flow is accepted; `key` tells one
    store of the session from another, and without it the tag is the beginning of all of them."""
    return f"{PREFIX}{session_id}:store:{key}"


def tool_tag(session_id: str, key: str) -> str:
    """The tag of a custom tool that a session makes; it is known here only, Flowise keeps none."""
    return f"{PREFIX}{session_id}:tool:{key}"


def is_draft(category: str | None) -> bool:
    """True for the category of a chatflow that is the draft of a session, or the copy that it tests."""
    return any(part.startswith(PREFIX) and part.endswith((":draft", ":test")) for part in _split(category))


def is_store(tag: str) -> bool:
    """True for the tag of a document store."""
    return ":store:" in tag


def is_tool(tag: str) -> bool:
    """True for the tag of a custom tool."""
    return ":tool:" in tag


def with_tag(category: str | None, tag: str) -> str:
    """`category` with `tag` at its end, and without tags of other sessions."""
    return ";".join(filter(None, (without_tags(category), tag)))


def without_tags(category: str | None) -> str:
    """`category` without tags of sessions."""
    return ";".join(part for part in _split(category) if not part.startswith(PREFIX))


def without_tag(category: str | None, tag: str) -> str:
    """`category` without `tag`; the person's own tags keep their order."""
    return ";".join(part for part in _split(category) if part != tag)


def _split(category: str | None) -> list[str]:
    return [part.strip() for part in (category or "").split(";") if part.strip()]
