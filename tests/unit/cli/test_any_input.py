"""Whatever is typed: a sentence and an exit code of the documented ones, never a traceback."""

import contextlib
import io
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from flowise_dev_agent.cli import main
from flowise_dev_agent.cli.main import app
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import transport

#: They stay, or start parts of a service: their options are read like those of the others.
STARTS = {"serve", "worker", "mcp", "demo", "migrate", "doctor", "resume"}


def leaves(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The commands with their options."""
    if commands := getattr(command, "commands", None):
        for name, one in commands.items():
            yield from leaves(one, (*path, name))
    else:
        params = getattr(command, "params", [])
        yield path, [option for one in params for option in one.opts if option.startswith("-")]


COMMANDS = [(path, options) for path, options in leaves(typer.main.get_command(app)) if path[0] not in STARTS]
#: Files are written into the test's own folder only.
WORDS = st.one_of(
    st.sampled_from(
        ["00000000-0000-0000-0000-000000000001", "", "-", "0", "-1", "1e9", "nan", "x.json", "--", "{}", "a=b"]
    ),
    st.text(st.characters(exclude_characters="/\\"), max_size=40),
)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    path, options = draw(st.sampled_from(COMMANDS))
    words = draw(st.lists(st.one_of(WORDS, st.sampled_from(options)), max_size=6))
    # A part of the way is a command line as well.
    return [*path[: draw(st.integers(0 if not words else len(path), len(path)))], *words]


@given(arguments=command_lines())
def test_no_command_line_ends_in_a_traceback(arguments: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["flowise-dev-agent", *arguments, "--url", "http://127.0.0.1:1"]),
        patch.object(sys, "stdin", io.StringIO("")),
        patch.object(transport, "PAUSE_SECS", 0),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    said = out.getvalue() + err.getvalue()
    assert ended.value.code in {code.value for code in Exit} - {Exit.INTERRUPTED}, said
    assert "Traceback" not in said
    assert "Something unexpected" not in said, said
    if ended.value.code:
        assert said.strip()


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_every_command_can_print_json(path: tuple[str, ...]) -> None:
    options = dict(COMMANDS)[path]
    # What these print is a file: JSON, JSON Lines or CSV.
    assert ("--json" in options) is (
        path not in {("export",), ("audit", "export"), ("certificate",), ("flows", "tests", "export")}
    )
