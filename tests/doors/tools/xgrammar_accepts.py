"""Tell whether the grammar that xgrammar makes of a schema accepts texts, as vLLM makes it.

    python tests/doors/tools/xgrammar_accepts.py < cases.json

Reads a list of `{"schema": ..., "texts": [...]}` and prints a list of lists of booleans.
"""

import importlib
import json
import sys
import types
from typing import Any

# It looks for torch when it is imported, and must not find the stand-in below.
importlib.import_module("tvm_ffi")


class _Nothing(types.ModuleType):
    """A module of which every name is a class that takes anything.

    xgrammar imports torch and transformers, gigabytes with their CUDA libraries, for the masks of a model's tokens.
    Grammars and texts need neither.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **options: None})


for name in ("torch", "transformers"):
    sys.modules[name] = _Nothing(name)
xgrammar: Any = importlib.import_module("xgrammar")
testing: Any = importlib.import_module("xgrammar.testing")


def accepts(case: dict[str, Any]) -> list[bool]:
    grammar = xgrammar.Grammar.from_json_schema(json.dumps(case["schema"]))
    return [testing._is_grammar_accept_string(grammar, text) for text in case["texts"]]


print(json.dumps([accepts(case) for case in json.load(sys.stdin)]))
