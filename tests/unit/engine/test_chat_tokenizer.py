"""The tokenizer is what its files say, and a bad file is refused in words."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import engine
from engine import CheckpointError, Message
from engine.chat.template import ChatTemplate
from engine.chat.tokenizer import Tokenizer
from tests.support.texts import texts
from tests.support.tiny_tokenizer import KEEPING, REWRITING, tiny_tokenizer, write_tiny_tokenizer

TOKENIZER = tiny_tokenizer()
any_tokens = st.lists(st.integers(0, TOKENIZER.vocab_size + 3), max_size=40)


@pytest.fixture
def folder(tmp_path):
    return write_tiny_tokenizer(tmp_path)


def edit(path, **fields):
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, **fields}))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The same file in Hugging Face's own library."""
    return tokenizers.Tokenizer.from_file(str(write_tiny_tokenizer(tmp_path_factory.mktemp("t")) / "tokenizer.json"))


@given(text=texts)
def test_ids_are_those_of_the_library(reference, text):
    assert TOKENIZER.encode(text) == reference.encode(text, add_special_tokens=False).ids


@given(tokens=any_tokens)
def test_decode_is_that_of_the_library_for_any_ids(reference, tokens):
    assert TOKENIZER.decode(tokens) == reference.decode(tokens, skip_special_tokens=False)
    assert TOKENIZER.decode(tokens, skip_special=True) == reference.decode(tokens, skip_special_tokens=True)


@given(text=texts)
def test_encode_then_decode_is_the_normalized_text(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == TOKENIZER.normalize(text)


def test_special_tokens_in_a_text_become_their_ids():
    ids = TOKENIZER.encode("<|im_start|>user\n<think>")
    assert len(ids) == 4
    assert ids[0] in TOKENIZER.hidden_ids
    assert TOKENIZER.encode("<|im_end|>")[0] in TOKENIZER.eos_ids


def test_reasoning_tags_are_never_hidden_even_if_the_file_calls_them_special(folder):
    data = json.loads((folder / "tokenizer.json").read_text())
    for token in data["added_tokens"]:
        token["special"] = True
    (folder / "tokenizer.json").write_text(json.dumps(data))
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.decode(tokenizer.encode("<think>x</think><|im_end|>"), skip_special=True) == "<think>x</think>"


def test_half_a_surrogate_pair_is_no_crash():
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud83db")) == "a\ufffdb"
    assert TOKENIZER.normalize("a\udc00") == "a\ufffd"


def test_saved_truncation_and_padding_do_not_touch_a_prompt(folder):
    core = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    core.enable_truncation(4)
    core.enable_padding(length=50)
    core.save(str(folder / "tokenizer.json"))
    text = "The quick brown fox jumps over the lazy dog"
    assert Tokenizer.load(folder).encode(text) == TOKENIZER.encode(text)


def test_an_added_token_outside_the_byte_alphabet_decodes_as_it_reads(folder):
    core = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    core.add_tokens([tokenizers.AddedToken("two words 東", normalized=False)])
    core.save(str(folder / "tokenizer.json"))
    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.encode("two words 東")
    assert len(ids) == 1
    assert tokenizer.decode(ids) == "two words 東"


class TestEndTokens:
    def ids(self, folder):
        return {TOKENIZER.decode([i]) for i in Tokenizer.load(folder).eos_ids}

    def test_union_of_all_files(self, folder):
        (folder / "generation_config.json").unlink()
        id_ = TOKENIZER.encode("<|endoftext|>")[0]
        (folder / "config.json").write_text(json.dumps({"text_config": {"eos_token_id": id_}}))
        assert self.ids(folder) == {"<|endoftext|>", "<|im_end|>"}

    def test_token_written_as_an_object(self, folder):
        (folder / "generation_config.json").unlink()
        edit(folder / "tokenizer_config.json", eos_token={"__type": "AddedToken", "content": "<|im_end|>"})
        assert self.ids(folder) == {"<|im_end|>"}

    def test_none_anywhere_is_refused(self, folder):
        (folder / "generation_config.json").unlink()
        edit(folder / "tokenizer_config.json", eos_token=None)
        with pytest.raises(CheckpointError, match="ends a reply"):
            Tokenizer.load(folder)


class TestRefusals:
    """Each says which file, and what to do."""

    @pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
    @pytest.mark.parametrize("damage", [b"", b"{", b"[1, 2]", b"\xff\xfe\x00", b'{"model": 3}'])
    def test_damaged(self, folder, name, damage):
        (folder / name).write_bytes(damage)
        if (name, damage) == ("generation_config.json", b'{"model": 3}'):
            Tokenizer.load(folder)  # sound JSON that says nothing; the end token is named elsewhere
            return
        with pytest.raises(CheckpointError) as refusal:
            Tokenizer.load(folder)
        assert refusal.value.todo

    def test_missing_tokenizer(self, tmp_path):
        with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
            Tokenizer.load(tmp_path)

    def test_no_template(self, folder):
        edit(folder / "tokenizer_config.json", chat_template=None)
        with pytest.raises(CheckpointError, match="no chat template"):
            Tokenizer.load(folder)

    def test_broken_template(self, folder):
        edit(folder / "tokenizer_config.json", chat_template="{% if %}")
        with pytest.raises(CheckpointError, match="broken"):
            Tokenizer.load(folder)

    def test_not_byte_level(self, folder):
        data = json.loads((folder / "tokenizer.json").read_text())
        data["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        (folder / "tokenizer.json").write_text(json.dumps(data))
        with pytest.raises(CheckpointError, match="byte-level"):
            Tokenizer.load(folder)


class TestTemplate:
    def test_file_wins_over_the_config(self, folder):
        (folder / "chat_template.jinja").write_text("{{ messages[0].content }}!")
        assert Tokenizer.load(folder).render([Message("user", "Hi")], None) == "Hi!"

    def test_named_templates(self, folder):
        named = [{"name": "tool", "template": "no"}, {"name": "default", "template": "yes"}]
        edit(folder / "tokenizer_config.json", chat_template=named)
        assert Tokenizer.load(folder).render([Message("user", "Hi")], None) == "yes"

    def test_thinking_switch(self):
        chat = [Message("user", "Hi")]
        assert TOKENIZER.render(chat, True).endswith("<think>\n")
        assert TOKENIZER.render(chat, False).endswith("<think>\n\n</think>\n\n")
        assert TOKENIZER.render(chat, None).endswith("assistant\n")
        assert TOKENIZER.supports_thinking
        assert not ChatTemplate("{# enable_thinking #}{{ messages[0].content }}", {}).supports_thinking

    @pytest.mark.parametrize(
        ("source", "efforts"),
        [
            ("{{ messages[0].content }}", ()),
            ("{# reasoning_effort #}{{ '<think>' if enable_thinking }}", ()),
            ("Reasoning: {{ reasoning_effort or 'medium' }}", ("low", "medium", "high")),
            ("{{ {'low': 'a little', 'high': 'a lot'}.get(reasoning_effort, 'some') }}", ("low", "high")),
            (
                "{% if reasoning_effort is defined and reasoning_effort not in ['low', 'high'] %}"
                "{{ raise_exception('unknown effort') }}{% endif %}{{ reasoning_effort }}",
                ("low", "high"),
            ),
        ],
    )
    def test_efforts_are_those_that_the_template_tells_apart(self, source: str, efforts: tuple[str, ...]):
        """Found by trying: a template that writes any word at all is believed for the three common ones only."""
        assert ChatTemplate(source, {}).efforts == efforts

    def test_an_effort_turns_reasoning_on(self):
        source = "{{ enable_thinking }} {{ reasoning_effort }}"
        assert ChatTemplate(source, {}).render([Message("user", "Hi")], "low") == "True low"
        assert ChatTemplate(source, {}).render([Message("user", "Hi")], False) == "False "

    def test_an_answer_that_quotes_the_tag_is_not_cut(self):
        """Qwen's template searches the content for </think> unless the reasoning is given apart."""
        source = (
            "{%- set m = messages[0] %}"
            "{{- m.content if m.reasoning_content is string else m.content.split('</think>')[-1] }}"
        )
        assert (
            ChatTemplate(source, {}).render([Message("assistant", "`</think>` ends it")], None) == "`</think>` ends it"
        )

    def test_which_templates_keep_the_prompt(self):
        assert all(TOKENIZER.keeps_prompt(t) for t in (None, True, False))
        assert not any(tiny_tokenizer(REWRITING).keeps_prompt(t) for t in (None, True, False))

    def test_refusal_carries_the_templates_words(self):
        template = ChatTemplate("{{ raise_exception('roles must alternate') }}", {})
        with pytest.raises(CheckpointError, match="roles must alternate"):
            template.render([Message("user", "Hi")], None)

    @pytest.mark.parametrize(
        "source",
        [
            "{{ messages.__class__.__mro__ }}",
            "{{ messages.append(1) }}",
            "{{ ''.__class__.__base__.__subclasses__() }}",
            "{% for i in range(10 ** 9) %}{% endfor %}",
        ],
    )
    def test_a_template_is_a_program_from_the_internet(self, source):
        with pytest.raises(CheckpointError):
            ChatTemplate("{{ 0 if false }}" + source, {}).render([Message("user", "Hi")], None)


TEMPLATES = {
    "keeping": KEEPING,
    "rewriting": REWRITING,
    "whitespace": "{% for m in messages %}\n  {% if m.role == 'user' %}\n  {{ m.content }}\n  {% endif %}{% endfor %}",
    "tojson": "{{ messages[:2] | tojson }} {{ messages[:2] | tojson(indent=2) }} {{ '<a & b>é' | tojson }}",
    "loop controls": "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% break %}"
    "{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "specials": "{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ x is defined }}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_render_as_in_transformers(name):
    from transformers.utils.chat_template_utils import render_jinja_template

    messages = [Message("system", " Be brief. "), Message("user", "Hi <b> é"), Message("assistant", "Yo\n", "Hm")]
    specials = {"bos_token": "<s>", "eos_token": "</s>"}
    chat = [{"role": m.role, "content": m.content} for m in messages]
    chat[-1]["reasoning_content"] = "Hm"
    for thinking in (True, False):
        (expected,), _ = render_jinja_template(
            [chat], chat_template=TEMPLATES[name], add_generation_prompt=True, enable_thinking=thinking, **specials
        )
        assert ChatTemplate(TEMPLATES[name], specials).render(messages, thinking) == expected


def test_chat_and_telemetry_import_neither_mlx_nor_transformers_nor_qt():
    """transformers alone takes two seconds. `engine/__init__` is stepped over: it may load what it likes."""
    code = (
        "import sys, types\n"
        "sys.modules['engine'] = engine = types.ModuleType('engine')\n"
        f"engine.__path__ = {list(engine.__path__)!r}\n"
        "import engine.chat.prompt, engine.telemetry.export, engine.telemetry.environment\n"
        "heavy = {'mlx', 'mlx_lm', 'transformers', 'PySide6', 'numpy', 'app'}\n"
        "sys.exit(', '.join(heavy & {name.split('.')[0] for name in sys.modules}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_reading_a_long_text_lets_other_threads_run():
    """A pasted megabyte stopped the window for as long as it was read: other threads got no turn at all."""
    go, ran = threading.Event(), threading.Event()

    def other():
        go.wait()
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nobody is made to give way, so a turn comes only of what lets go
    try:
        go.set()
        ids = TOKENIZER.encode("some words of a long text, " * 40_000)
        had_a_turn = ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert len(ids) > 40_000
    assert had_a_turn
