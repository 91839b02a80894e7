"""Write a GGUF of 0.5 to 1.6 MB that a real llama.cpp server loads: random weights, biased towards short answers.

    python tests/doors/tools/tiny_gguf.py tiny.gguf [--seed 1] [--calls-tools] [--text FILE ...]

With `--calls-tools` an answer begins with a call wherever the server's grammar allows one. Without `--text` a token is
a byte. With it, up to two thousand frequent pieces of that text become tokens, too, so that prompts like it have nearly
as many tokens as with usual models; answers are still written byte by byte.

Needs the packages `gguf` and `numpy`. The text that such a model writes means nothing. What is real is everything
around it: the server's checks of requests, its chat template, its grammars, its streams, calls, limits and errors.

The model is a `llama` of two layers whose first dimensions are reserved. Dimension 0 is the same for all tokens, so
that its output row is a bias for each token. Each of the next ones is set for one token only, so that its output row
says what is likely to follow that token. The other dimensions are noise.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 2, 64, 4, 128, 131_072
#: Sizes of the reserved dimensions before the last norm.
CONSTANT, MARK = 4.0, 8.0
#: What the bias is measured in: logits at the temperature that the answers are sampled at.
TEMPERATURE = 0.2
#: Spread of the noise in those units.
NOISE = 1.5

END, TURN, TURN_END, CALL, CALL_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"
NEW_LINE = "\u010a"  # As the tokenizer writes it.
SPECIAL = (END, TURN, TURN_END, CALL, CALL_END)

TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}
{%- endif %}
{{- 'You may call these functions:\\n<tools>' }}
{%- for tool in tools %}
{{- '\\n' + (tool | tojson) }}
{%- endfor %}
{{- '\\n</tools>\\nA call is written as ' }}
{{- '<tool_call>{"name": <name>, "arguments": <object>}</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}
{{- '\\n' + message.content }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{%- if call.function %}
{%- set call = call.function %}
{%- endif %}
{{- '\\n<tool_call>{"name": "' + call.name + '", "arguments": ' }}
{{- call.arguments if call.arguments is string else call.arguments | tojson }}
{{- '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def byte_names() -> list[str]:
    """The 256 bytes as the `gpt2` tokenizer writes them: printable ones as themselves, others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def frequent_pairs(text: str, most: int = 2_000) -> list[tuple[str, str]]:
    """The merges of a byte pair encoding of `text`, in their order."""
    names = byte_names()
    # About how the tokenizer cuts a text before it looks for pieces.
    counts = Counter(re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+", text))
    words = [[names[byte] for byte in word.encode()] for word in counts]
    weights = [*counts.values()]
    pairs: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)

    def count(place: int, sign: int) -> None:
        for pair in pairwise(words[place]):
            pairs[pair] += sign * weights[place]
            places[pair].add(place)

    for place in range(len(words)):
        count(place, 1)
    merges: list[tuple[str, str]] = []
    while len(merges) < most and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        if pairs[best] < 3:
            break
        merges.append(best)
        for place in places.pop(best):
            count(place, -1)
            word, at = words[place], 0
            while at < len(word) - 1:
                if (word[at], word[at + 1]) == best:
                    word[at : at + 2] = ["".join(best)]
                at += 1
            count(place, 1)
        del pairs[best]
    return merges


def bias(tokens: list[str]) -> np.ndarray:
    """Favour of each token: what ends a string, a list, an object or an answer more than what goes on."""
    sizes = np.full(len(tokens), -14.0)
    sizes[0x80:0x100] = -30.0
    sizes[0x61:0x7B] = 0.0
    sizes[0x30:0x3A] = sizes[0x41:0x5B] = -2.0
    favoured = {'"': 5.0, "]": 1.0, "}": 1.0, "{": 1.0, ",": 0.0, ":": 0.0, "[": 0.0, "-": -6.0, ".": -6.0, " ": -8.0}
    for character, size in favoured.items():
        sizes[ord(character)] = size
    sizes[256:] = -40.0
    sizes[tokens.index(TURN_END)] = 2.0
    return sizes


def followers(*, calls_tools: bool) -> dict[str, dict[str, float]]:
    """By a token: what is favoured after it. A line break is the last thing before an answer."""
    after = {NEW_LINE: {TURN_END: -10.0}, "}": {"]": 6.0, "}": 4.0}}
    if calls_tools:
        after[NEW_LINE][CALL] = 70.0
        after["}"][CALL_END] = 60.0
        after[CALL_END] = {TURN_END: 60.0}
    return after


def write(path: Path, *, seed: int, calls_tools: bool, merges: Sequence[tuple[str, str]] = ()) -> None:
    random = np.random.default_rng(seed)
    pieces = [*byte_names(), *dict.fromkeys("".join(pair) for pair in merges)]
    tokens = [*pieces, *SPECIAL]

    def noise(rows: int, columns: int, size: float) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * size).astype(np.float32)

    # What one unit of favour is in a row of the output, whose inputs are divided by their size.
    unit = TEMPERATURE * np.sqrt((CONSTANT**2 + WIDTH) / WIDTH)
    embedding = noise(len(tokens), WIDTH, 1.0)
    output = noise(len(tokens), WIDTH, NOISE * unit / np.sqrt(WIDTH))
    embedding[:, 0], output[:, 0] = CONSTANT, bias(tokens) * unit / CONSTANT
    after = followers(calls_tools=calls_tools)
    for dimension, (token, favoured) in enumerate(after.items(), start=1):
        embedding[:, dimension] = output[:, dimension] = 0.0
        embedding[tokens.index(token), dimension] = MARK
        for follower, size in favoured.items():
            output[tokens.index(follower), dimension] = size * unit / MARK

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.NORMAL] * len(pieces)
        + [gguf.TokenType.USER_DEFINED if token in (CALL, CALL_END) else gguf.TokenType.CONTROL for token in SPECIAL]
    )
    # The list must not be empty. No token has this name: the pair stays two bytes.
    writer.add_token_merges([" ".join(pair) for pair in merges] or ["q q"])
    writer.add_bos_token_id(tokens.index(END))
    writer.add_eos_token_id(tokens.index(TURN_END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    writer.add_tensor("token_embd.weight", embedding)
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", noise(WIDTH, WIDTH, WIDTH**-0.5))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", noise(INNER, WIDTH, WIDTH**-0.5))
        for name, inner in (("attn_output", WIDTH), ("ffn_down", INNER)):
            added = noise(WIDTH, inner, 0.3 * inner**-0.5)
            added[: 1 + len(after)] = 0.0  # Nothing is added to the reserved dimensions.
            writer.add_tensor(f"blk.{layer}.{name}.weight", added)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls-tools", action="store_true", help="begin an answer with a call of a tool")
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="files like the prompts: Markdown, JSON, TOML")
    given = parser.parse_args()
    pairs = frequent_pairs("\n".join(file.read_text() for file in given.text))
    write(given.path, seed=given.seed, calls_tools=given.calls_tools, merges=pairs)
    print(f"{given.path}: {given.path.stat().st_size:,} bytes")
