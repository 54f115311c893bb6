"""The checkpoint's Jinja chat template, run as Hugging Face runs it.

A template is a program from the internet: it runs sandboxed, and it cannot change what it is given.
Names and filters are those of `transformers.utils.chat_template_utils`, which templates are written for.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from engine.chat.reasoning import opens_reasoning
from engine.errors import CheckpointError
from engine.request import Message, Thinking

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
"""Values of `reasoning_effort` in the templates of the field, weakest first. No effort is the switch, turned off."""
COMMON_EFFORTS = ("low", "medium", "high")


class ChatTemplate:
    """A compiled template. specials: named special tokens that it may write (`eos_token`, ...)."""

    def __init__(self, source: str, specials: Mapping[str, str]) -> None:
        self._specials = dict(specials)
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise CheckpointError(
                "The model's chat template is broken.", todo="Download the model again.", detail=str(error)
            ) from error
        self.keeps_prompt = functools.lru_cache(maxsize=None)(self._keeps_prompt)

    def render(self, messages: Sequence[Message], thinking: Thinking, add_generation_prompt: bool = True) -> str:
        """The chat as text. Raises CheckpointError when the template refuses it."""
        switch: dict[str, bool | str] = {} if thinking is None else {"enable_thinking": bool(thinking)}
        if isinstance(thinking, str):
            switch["reasoning_effort"] = thinking
        try:
            return self._template.render(
                messages=[_as_dict(m) for m in messages],
                tools=None,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._specials,
                **switch,
            )
        # A template is foreign code: besides Jinja's own errors it raises TypeError, ValueError, RecursionError...
        except Exception as error:
            raise CheckpointError(
                f"The model's chat template refused this chat: {error}",
                kept="The chat is unchanged.",
                todo="Remove or merge the messages it names, or choose another model.",
                detail=repr(error),
            ) from error

    @functools.cached_property
    def supports_thinking(self) -> bool:
        """Found by trying, not by searching the source: a comment may mention the switch too."""
        chat = (Message("user", "Hi"),)
        return self.render(chat, True) != self.render(chat, False)

    @functools.cached_property
    def efforts(self) -> tuple[str, ...]:
        """Those of EFFORTS that make a difference, weakest first; found by trying as well."""
        chat = (Message("user", "Hi"),)
        prompts: dict[str, str] = {}
        for effort in (*EFFORTS, "zq"):
            try:
                prompts[effort] = self.render(chat, effort)
            except CheckpointError:
                continue  # templates refuse an effort that they do not know
        if "zq" in prompts.pop("zq", ""):
            return COMMON_EFFORTS  # it writes whatever it is given, which says nothing about what the model knows
        # An effort without a prompt of its own is one that the template does not look at.
        times = Counter(prompts.values())
        return tuple(e for e, prompt in prompts.items() if times[prompt] == 1 and prompt != self.render(chat, True))

    def _keeps_prompt(self, thinking: Thinking) -> bool:
        """Found by trying a chat of two turns."""
        question = Message("user", "Hi")
        prompt = self.render((question,), thinking)
        reply = Message("assistant", "Yes", reasoning="Well" if opens_reasoning(prompt) else "")
        return self.render((question, reply, Message("user", "Go")), thinking).startswith(prompt)


def _as_dict(message: Message) -> dict[str, str]:
    fields = {"role": message.role, "content": message.content}
    if message.role == "assistant":
        # Always a string, also when empty: otherwise Qwen's template searches the answer for "</think>" and
        # cuts an answer that merely quotes the tag.
        fields["reasoning_content"] = message.reasoning
    return fields


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes HTML, which no model was trained on.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(format_: str) -> str:
    return datetime.datetime.now().strftime(format_)


class _Generation(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %} marks replies for training; when chatting it is only its body."""

    tags = {"generation"}  # noqa: RUF012 - the attribute is Jinja's

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()
