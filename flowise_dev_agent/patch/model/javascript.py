"""JavaScript of functions and tools: its syntax tree, and whether it may reach something else."""

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: Longer code is not read.
MOST_CHARS: Final = 100_000
#: What the server puts in the place of a variable is a value.
VARIABLE: Final = re.compile(r"\{\{[^{}]{0,500}\}\}")
#: Ends of lines that the parser does not know.
_LINE_ENDS: Final = re.compile(r"\r\n?|[\u2028\u2029]")
#: Names by which code leaves its function. Flowise's own sandbox has but `require` and `module` of them (3.1.4,
#: measured), and makes no code of texts; E2B, which it may use instead, is a whole Node.
_OUTSIDE: Final = frozenset(
    {
        *("require", "module", "exports", "global", "globalThis", "self", "process", "arguments"),
        *("fetch", "axios", "XMLHttpRequest", "WebSocket", "EventSource"),
        *("eval", "Function", "Reflect", "Proxy", "WebAssembly", "Atomics"),
    }
)
#: Properties that lead from a value to what made it.
_MAKERS: Final = frozenset(
    {
        *("constructor", "__proto__", "prototype", "callee", "caller", "prepareStackTrace"),
        *("getPrototypeOf", "getOwnPropertyDescriptor", "getOwnPropertyDescriptors", "getOwnPropertyNames"),
        *("__lookupGetter__", "__defineGetter__"),
    }
)
_NAMES: Final = frozenset(
    {
        *("identifier", "property_identifier", "shorthand_property_identifier", "private_property_identifier"),
        *("shorthand_property_identifier_pattern", "statement_identifier"),
    }
)
#: Node type -> its field with a key.
_KEYS: Final = {"subscript_expression": "index", "pair": "key", "pair_pattern": "key"}
#: Node types that give a name a meaning, the declaration of a constant among them.
_BINDING: Final = frozenset(
    {
        *("variable_declarator", "formal_parameters", "arrow_function", "catch_clause", "for_in_statement"),
        *("array_pattern", "object_pattern", "pair_pattern", "rest_pattern", "assignment_pattern"),
        *("object_assignment_pattern", "function_declaration", "function_expression", "class_declaration", "class"),
        *("generator_function_declaration", "generator_function"),
    }
)
_STATEMENTS: Final = frozenset({"this", "import", "import_statement", "with_statement"})
#: Types of nodes of a table: it holds no code.
_LITERALS: Final = frozenset(
    {"string", "number", "true", "false", "null", "unary_expression", "array", "object", "pair", "comment"}
)
#: Keys that are put together only while the code runs.
_BUILT: Final = frozenset({"string", "template_string", "regex", "call_expression", "new_expression"})


def parsed(text: str) -> "Node":
    """The syntax tree of code as the body of a function; Flowise's variables in it stand for a value."""
    body = f"async function _() {{\n{VARIABLE.sub('0', text)}\n}}"
    return _parser().parse(body.encode("utf-8", "replace")).root_node


def reaches_out(code: str) -> bool:
    """True for code that may call, read or change something outside of its function, and for code that finds names or
    makes code only while it runs.
    """
    if len(code) > MOST_CHARS:
        return True
    root = parsed(_LINE_ENDS.sub("\n", code))
    tables = _tables(root)
    # Each node, and whether it is part of a key.
    queue = [(root, False)]
    while queue:
        node, in_key = queue.pop()
        if _leads_out(node) or (in_key and node.type in _BUILT and not _is_of_math(node)):
            return True
        key = node.child_by_field_name(_KEYS.get(node.type, "_"))
        said = _text(key) if key is not None and key.type == "string" else ""
        if "\\" in said or said[1:-1] in _MAKERS:
            return True
        if node.type == "computed_property_name":
            in_key = True
        searched = node.child_by_field_name("object") if node.type == "subscript_expression" else None
        is_search = searched is not None and searched.type == "identifier" and _text(searched) in tables
        queue.extend((child, in_key or (child == key and not said and not is_search)) for child in node.children)
    return False


def _tables(root: "Node") -> set[str]:
    """Constants of literals alone, whose names mean nothing else in the code. One look-up in such a table gives one of
    its values, or what each object has: what leads further is a name of its own, or a second look-up.
    """
    bound: Counter[str] = Counter()
    found: set[str] = set()
    queue = [root]
    while queue:
        node = queue.pop()
        queue.extend(node.children)
        if node.type == "variable_declarator":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            is_constant = node.parent is not None and node.parent.children[0].type == "const"
            if name is not None and value is not None and is_constant and _is_literal(value):
                found.add(_text(name))
        if node.type in _BINDING:
            bound.update(_text(child) for child in node.children if child.type in _NAMES)
    return {name for name in found if bound[name] == 1}


def _is_literal(value: "Node") -> bool:
    if value.type not in ("object", "array"):
        return False
    queue = [value]
    while queue:
        node = queue.pop()
        if node.is_named and node.type not in _LITERALS:
            # Names of keys, and the pieces of a text.
            inside = node.parent.type if node.parent is not None else ""
            if (inside, node.type) != ("pair", "property_identifier") and inside != "string":
                return False
        queue.extend(node.children)
    return True


def _leads_out(node: "Node") -> bool:
    if node.type not in _NAMES:
        return node.type in _STATEMENTS
    name = _text(node)
    # A letter may be written as its number.
    return "\\" in name or name in _MAKERS or (node.type != "property_identifier" and name in _OUTSIDE)


def _is_of_math(call: "Node") -> bool:
    """True for a call such as `Math.floor(...)`."""
    called = call.child_by_field_name("function")
    of = called.child_by_field_name("object") if called is not None else None
    return of is not None and of.type == "identifier" and of.text == b"Math"


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


@cache
def _parser() -> "Parser":
    # Only flows with functions need it.
    import tree_sitter_javascript
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_javascript.language()))
