"""The examples in the docstrings of the package run and say what happens."""

import doctest
import pkgutil
from importlib import import_module

import pytest

from flowise_dev_agent import patch

#: Public functions that must have an example.
SHOWN = {
    "GraphIR",
    "canvas_view",
    "compile_ops",
    "decompile",
    "diff",
    "example_op",
    "ops_from_json",
    "outline",
    "summarize",
    "validate_flow",
}
MODULES = [module.name for module in pkgutil.walk_packages(patch.__path__, "flowise_dev_agent.patch.")]
EXAMPLES = [
    example
    for name in MODULES
    for example in doctest.DocTestFinder(exclude_empty=True).find(import_module(name))
    if example.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name.removeprefix("flowise_dev_agent."))
def test_the_example_of_a_docstring_says_what_happens(example: doctest.DocTest) -> None:
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)

    assert not failed, "".join(report)


def test_every_public_function_has_an_example() -> None:
    assert {example.name.rpartition(".")[2] for example in EXAMPLES} >= SHOWN
