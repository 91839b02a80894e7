"""Code that may reach something outside of its function."""

import pytest

from flowise_dev_agent.patch.model.javascript import MOST_CHARS, reaches_out

OUTSIDE = [
    "const r = await fetch($url); return r.text();",
    "const axios = require('axios'); return 1;",
    "const load = require; return load('axios');",
    "const a = '/*'; await fetch($url); // */",
    "const a = 'x\\\n//'; await fetch($url);",
    "/* a\n// */ await fetch($url)",
    "// a\u2028await fetch($url)",
    "// a\rawait fetch($url)",
    "const a = /[//]/; await fetch($url)",
    "const a = `\n// ${await fetch($url)}`",
    r"return r\u0065quire('ax' + 'ios').post($url)",
    r"return \u{00072}equire('http')",
    "await import/**/('node:http')",
    "module['req' + 'uire']('http')",
    "arguments[1]('http')",
    "return global['fe' + 'tch']('https://shop.example')",
    "return this['fe' + 'tch']('https://shop.example')",
    "return Reflect.get({}, 'x')",
    "return process.getBuiltinModule('http')",
    "return process.env.KEY",
    "return []['con' + 'structor']['con' + 'structor']('return 1')()",
    r"return []['\x63onstructor']",
    "return []['constructor']",
    "return [].constructor",
    "return [][String.fromCharCode(99)]",
    "const { constructor: make } = []; return make",
    "const { 'constructor': make } = []; return make",
    "const { ['con' + 'structor']: make } = []; return make",
    "return Object.getPrototypeOf([])",
    "const t = { a: 1 }; const more = (t) => t[$k.slice(1)]; return more",
    "const t = { a: 1 }; { const t = []; return t[$k.slice(1)]; }",
    "let t = { a: 1 }; t = []; return t[$k.slice(1)]",
    "const t = { a: [].map }; return t[$k.slice(1)]",
    "const t = { a }; return t[$k.slice(1)]",
    "const t = { a: 1 }; return t[$k.slice(1)][$k.slice(2)]",
    "const t = { a: 1 }; return t[$k.slice(1)].constructor",
    "return eval('1')",
    "return new Function('return 1')()",
    "return 1; //" + "x" * MOST_CHARS,
]
INSIDE = [
    "return $a + 1;",
    "return 'fetching';",
    "// require nothing\nreturn 1; // no fetch",
    "/* no fetch,\n * no require */\nreturn 1;",
    "return '5 \\u20ac, process the order, this one';",
    "const rates = { eur: 1.1, 'us dollar': 1 }; return rates[$currency] * rates['eur'];",
    "let sum = 0; for (let i = 0; i < $rows.length; i++) { sum += $rows[i][i + 1]; } return sum;",
    "const all = JSON.parse($list); return all[Math.floor(Math.random() * all.length)];",
    "const [minutes, seconds] = $pace.split(':').map(Number); return `${minutes}:${seconds}`;",
    "try { return new Date($day).toISOString(); } catch (error) { return 'no day: ' + error.message; }",
    "return {{ question }}.length;",
    "const digits = { DE: 22, 'AT': 20, list: ['a', null] }; return digits[$iban.trim().slice(0, 2)];",
    "const days = ['Sun', 'Mon']; return days[new Date($day).getDay()];",
]


@pytest.mark.parametrize("code", OUTSIDE)
def test_code_that_leaves_its_function_or_finds_names_as_it_runs_reaches_out(code: str) -> None:
    assert reaches_out(code)


@pytest.mark.parametrize("code", INSIDE)
def test_code_that_only_computes_does_not(code: str) -> None:
    assert not reaches_out(code)
