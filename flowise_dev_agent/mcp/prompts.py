"""Prompts for the usual tasks, for the menu of a person's client."""

from collections.abc import Callable
from typing import Annotated, Final

from mcp.server.mcpserver.prompts import Prompt
from pydantic import Field

_DECIDES: Final = (
    "Show me every question in its own words and wait for my answer: what is approved or accepted is my decision."
)

Chatflow = Annotated[str, Field(max_length=200, description="Id or name of the chatflow.")]
Session = Annotated[str, Field(max_length=64, description="Id of the session.")]
Words = Annotated[str, Field(max_length=8_000)]


def build_chatflow(
    requirement: Annotated[Words, Field(description="What the chatflow is for, in your own words.")],
) -> str:
    """Build a new chatflow, from the requirement to the tested result."""
    return (
        "Build a new chatflow on Flowise with start_session (operation create) from the requirement below. "
        f"Show me its plan before you answer anything. {_DECIDES} At the end tell me its id and how its tests went."
        f"\n\nRequirement:\n{requirement}"
    )


def change_chatflow(
    chatflow: Chatflow, change: Annotated[Words, Field(description="What should be different.")]
) -> str:
    """Change an existing chatflow, tried on a draft first."""
    return (
        f"Find the chatflow {chatflow!r} with list_chatflows and read it with read_chatflow. Then use start_session "
        "with operation update, its id as target and the change below as the requirement, in these words. Before I "
        f"approve, tell me which settings and connections change. {_DECIDES}\n\nChange:\n{change}"
    )


def explain_chatflow(chatflow: Chatflow) -> str:
    """Explain what a chatflow does and how it came about."""
    return (
        f"Find the chatflow {chatflow!r} with list_chatflows. Explain with read_chatflow what it does, step by step, "
        "for somebody who does not know Flowise; then with list_chatflow_versions what was changed, when and why. "
        "Name what check_flow finds wrong with it. Change nothing."
    )


def test_chatflow(
    chatflow: Chatflow, expectations: Annotated[Words, Field(description="What it must be able to do.")]
) -> str:
    """Test a chatflow with conversations and say what does not work."""
    return (
        f"Find the chatflow {chatflow!r} with list_chatflows and read it. Write up to ten test conversations for the "
        "expectations below, each with what the answer must contain or must not contain. If it has tools that send or "
        "change something, ask me first. Run them with test_flow and report each failure with the question, the answer "
        f"and the likely reason.\n\nExpectations:\n{expectations}"
    )


def review_session(session: Session) -> str:
    """Prepare a person's decision about a waiting session."""
    return (
        f"Read the session {session} with get_session, and what it changes with compare_versions. Sum up in a few "
        "lines: what was required, what it does about it, what it leaves out, what the tests showed, what can go "
        f"wrong. Then show me its open question. {_DECIDES}"
    )


def undo_change(chatflow: Chatflow) -> str:
    """Restore an earlier version of a chatflow."""
    return (
        f"Find the chatflow {chatflow!r} with list_chatflows and list its versions with list_chatflow_versions. Show "
        "me with compare_chatflow_versions what would change for the version that I choose, and put it back with "
        "rollback once I have said so."
    )


_PROMPTS: Final[tuple[tuple[Callable[..., str], str], ...]] = (
    (build_chatflow, "Build a chatflow"),
    (change_chatflow, "Change a chatflow"),
    (explain_chatflow, "Explain a chatflow"),
    (test_chatflow, "Test a chatflow"),
    (review_session, "Prepare a decision"),
    (undo_change, "Undo a change"),
)
PROMPTS: Final = tuple(Prompt.from_function(function, title=title) for function, title in _PROMPTS)
