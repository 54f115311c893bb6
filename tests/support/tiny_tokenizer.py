"""A byte-level BPE tokenizer made on the spot: Qwen's shape, a few hundred tokens, milliseconds.

Like Qwen's it normalizes to NFC, splits with Qwen's pattern and has <think> as an added token that is not
special. Its few merges make characters, tags and words span several tokens, which is what tests need.
"""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from engine.chat.tokenizer import Tokenizer

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TAGS = ("<think>", "</think>")
VOCAB_SIZE = 400

# The pattern of Qwen2 and later (tokenizer.json, pre_tokenizer).
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CORPUS = (
    "The quick brown fox jumps over the lazy dog. A tail of an answer, then another answer.\n",
    "def answer(question):\n    return [word for word in question.split() if word]\n",
    "Grüße aus München, liebe Freunde; мир и дружба; 東京の天気は良いです。\n",
    "user system assistant think reasoning STOP END ### </s> ``` \n\n",
) * 4

# Keeps every earlier reply letter for letter, so that a next turn only appends.
KEEPING = """\
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and (m.reasoning_content or enable_thinking is defined) %}
{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined %}
{{- '<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}
"""

# As Qwen3.5's does: drops reasoning from history, trims, and writes <think> only before a reply.
REWRITING = """\
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' + m.content|trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{{- '<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and not enable_thinking else '<think>\\n' }}
{%- endif %}
"""


def write_tiny_tokenizer(folder: Path, *, template: str = KEEPING, vocab_size: int = VOCAB_SIZE) -> Path:
    """Writes tokenizer.json, tokenizer_config.json and generation_config.json into `folder`; returns it.

    Ids: the byte alphabet and merges first, then SPECIAL and TAGS, as in Qwen's files.
    """
    added = len(SPECIAL) + len(TAGS)
    core = tokenizers.Tokenizer(models.BPE())
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - added,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(CORPUS, trainer)
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    core.add_tokens([AddedToken(text, special=False, normalized=False) for text in TAGS])

    folder.mkdir(parents=True, exist_ok=True)
    core.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    ends = [core.token_to_id("<|im_end|>"), core.token_to_id("<|endoftext|>")]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}), encoding="utf-8")
    return folder


@functools.cache
def tiny_tokenizer(template: str = KEEPING) -> Tokenizer:
    """The same, loaded by the engine. One per template and test process."""
    with tempfile.TemporaryDirectory() as folder:
        return Tokenizer.load(write_tiny_tokenizer(Path(folder), template=template))
