"""A checkpoint's tokenizer, exactly as its files say.

`transformers.AutoTokenizer` is not used: for qwen3_5 it replaces the normalizer and pre-tokenizer of
tokenizer.json with its own, and the ids differ from those the model was trained on. It also costs two
seconds to import. `tokenizers` reads the same file without opinions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers

from engine.chat import files
from engine.chat.reasoning import THINK_CLOSE, THINK_OPEN
from engine.chat.template import ChatTemplate
from engine.errors import CheckpointError
from engine.request import Message, Thinking


def _byte_alphabet() -> dict[str, int]:
    """The printable stand-in of every byte in a byte-level vocabulary (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in printable}
    for n, b in enumerate(b for b in range(256) if b not in set(printable)):
        table[chr(256 + n)] = b
    return table


_BYTES = _byte_alphabet()


class Tokenizer:
    """Ids and text of one checkpoint. Immutable after loading; safe to share between threads.

    eos_ids: every id that ends a reply, from all the files that name one.
    hidden_ids: special tokens that are never shown (all but the reasoning tags).
    """

    def __init__(
        self,
        core: tokenizers.Tokenizer,
        template: ChatTemplate,
        eos_ids: Iterable[int],
    ) -> None:
        # Truncation and padding settings are saved into tokenizer.json by training scripts. A prompt must
        # never be cut or padded silently.
        core.no_truncation()
        core.no_padding()
        self._core = core
        self._template = template
        self.eos_ids = frozenset(eos_ids)
        self.hidden_ids = frozenset(
            id_
            for id_, token in core.get_added_tokens_decoder().items()
            if token.special and token.content not in (THINK_OPEN, THINK_CLOSE)
        )
        self.vocab_size = core.get_vocab_size(with_added_tokens=True)
        # Bound to the instance, so that a dropped tokenizer drops its cache.
        self.token_bytes = functools.lru_cache(maxsize=None)(self._token_bytes)

    @classmethod
    def load(cls, folder: Path | str) -> Tokenizer:
        """Reads tokenizer.json, the chat template and the end-of-reply ids from a checkpoint folder.

        Raises:
            CheckpointError: a file is missing or damaged, there is no chat template or no end token, or
                the vocabulary is not byte-level (Qwen's are; streaming relies on it).
        """
        folder = Path(folder)
        path = folder / "tokenizer.json"
        text = files.read_text(path)
        try:
            core = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the Rust side raises bare Exception for any damage
            raise files.damaged(path, str(error)) from error
        if not _is_byte_level(core):
            raise CheckpointError(
                f"The tokenizer in {folder} is not a byte-level one.",
                todo="Choose a model of the Qwen3.5 family.",
                detail=f"decoder: {core.decoder!r}",
            )
        config = files.read_json(folder / "tokenizer_config.json", optional=True)
        specials = files.special_tokens(config)
        return cls(
            core,
            ChatTemplate(files.chat_template(folder, config), specials),
            files.eos_ids(folder, specials, core.token_to_id),
        )

    def encode(self, text: str) -> list[int]:
        """Ids of a text. Special tokens written in it become their ids; nothing is added around it."""
        # As a batch of one: `encode` itself holds the interpreter throughout, 2.8 s for 1 MB, and a window with it.
        return self._core.encode_batch_fast([_well_formed(text)], add_special_tokens=False)[0].ids

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """Text of ids. Bytes that form no character become U+FFFD; ids outside the vocabulary are empty."""
        if skip_special:
            ids = [i for i in ids if i not in self.hidden_ids]
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def _token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; b"" for the padding rows above the vocabulary."""
        piece = self._core.id_to_token(token)
        if piece is None:
            return b""
        try:
            return bytes([_BYTES[char] for char in piece])
        except KeyError:  # an added token is stored as it reads, not in the byte alphabet
            return piece.encode()

    def normalize(self, text: str) -> str:
        """What `encode` sees of a text: Qwen composes to NFC, so "e" + U+0301 is read as "é"."""
        text = _well_formed(text)
        normalizer = self._core.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def render(self, messages: Sequence[Message], thinking: Thinking, add_generation_prompt: bool = True) -> str:
        """The chat as the model reads it. thinking: see `Request.thinking`.

        Raises:
            CheckpointError: the template is broken or refuses this chat (says why).
        """
        return self._template.render(messages, thinking, add_generation_prompt)

    @property
    def supports_thinking(self) -> bool:
        """Whether the template has a reasoning switch."""
        return self._template.supports_thinking

    @property
    def efforts(self) -> tuple[str, ...]:
        """The efforts of reasoning that the template tells apart, weakest first."""
        return self._template.efforts

    def keeps_prompt(self, thinking: Thinking) -> bool:
        """Whether the next turn's prompt starts with this turn's, letter for letter.

        False for templates that write something before a reply which they leave out of the history: Qwen3.5
        opens <think> there, or writes an empty pair of tags.
        """
        return self._template.keeps_prompt(thinking)


def _well_formed(text: str) -> str:
    """Half a surrogate pair, which a clipboard can hold, is no character and would not pass into Rust."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _is_byte_level(core: tokenizers.Tokenizer) -> bool:
    return type(core.decoder).__name__ == "ByteLevel"
