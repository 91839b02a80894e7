"""Tags in a chatflow's `category`, by which a session finds what it made.

Flowise drops client-supplied ids and allows equal names, so a create can be recognised only by a free-text column.
`category` is `;`-separated, survives PUTs of other columns and a save in the editor (Flowise 3.1.4, measured).
"""

PREFIX = "fda:"


def flow_tag(session_id: str) -> str:
    """The tag of the chatflow that a session made, until it is accepted."""
    return f"{PREFIX}{session_id}:flow"


def with_tag(category: str | None, tag: str) -> str:
    """`category` with `tag` added at the end, once."""
    tags = _split(category)
    return ";".join(tags if tag in tags else [*tags, tag])


def without_tag(category: str | None, tag: str) -> str:
    """`category` without `tag`; the person's own tags keep their order."""
    return ";".join(part for part in _split(category) if part != tag)


def has_tag(category: str | None, tag: str) -> bool:
    """Whether `category` carries exactly this tag."""
    return tag in _split(category)


def _split(category: str | None) -> list[str]:
    return [part.strip() for part in (category or "").split(";") if part.strip()]
