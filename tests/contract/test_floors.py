"""The floors of the package: each imports only from those below it."""

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports


def test_every_import_goes_down() -> None:
    assert lint_imports() == EXIT_STATUS_SUCCESS
