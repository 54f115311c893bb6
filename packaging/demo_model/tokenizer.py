"""Train the byte-level BPE tokenizer (8,192 tokens) on the natural text and write the files that real checkpoints carry.

python -m demo_model.tokenizer        (in packaging/; about 30 s on 2 cores)
"""

import json
from itertools import chain

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from demo_model.paths import TOKENIZER
from demo_model.sources import natural_texts

VOCAB_SIZE = 8192
# Ids 0..4, in this order: the trainer, the exporter and the tests rely on it.
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
ENDOFTEXT, IM_START, IM_END, THINK, END_THINK = range(5)

# The pattern that Qwen3.5's tokenizers declare. It must be the same: transformers' AutoTokenizer puts it in place for
# model_type qwen3_5 whatever tokenizer.json says, so any other pattern would tokenize differently there.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# ChatML, as Qwen3.5 has it, cut to what a small text model can honour. Reasoning is written only when asked for
# (enable_thinking=True opens the block for the model), and earlier turns' reasoning is dropped from the history.
CHAT_TEMPLATE = """\
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.content is not string and message.content is iterable %}
        {%- set parts = namespace(text='') %}
        {%- for part in message.content %}{% if part.text is defined %}{% set parts.text = parts.text + part.text %}{% endif %}{% endfor %}
        {%- set content = parts.text %}
    {%- endif %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is true %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}
"""

TOKENIZER_CONFIG = {
    "add_bos_token": False,
    "add_prefix_space": False,
    "bos_token": None,
    "clean_up_tokenization_spaces": False,
    "eos_token": "<|im_end|>",
    "errors": "replace",
    "model_max_length": 4096,
    "pad_token": "<|endoftext|>",
    "split_special_tokens": False,
    "tokenizer_class": "Qwen2TokenizerFast",
    "unk_token": None,
}


def build() -> Tokenizer:
    tok = Tokenizer(BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tok.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=[AddedToken(s, special=True, normalized=False) for s in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # ChatML's role names open every turn: see them often enough to become one token each.
    roles = ("user\nassistant\nsystem\n" for _ in range(20_000))
    tok.train_from_iterator(chain(natural_texts(), roles), trainer)
    return tok


def main() -> None:
    TOKENIZER.mkdir(parents=True, exist_ok=True)
    tok = build()
    assert [tok.token_to_id(s) for s in SPECIALS] == list(range(5))
    # <think> and </think> are ordinary text to a reader (the app splits on them), so they are not "special" in the files,
    # as in Qwen's own: skip_special_tokens must not remove them.
    state = json.loads(tok.to_str())
    for added in state["added_tokens"]:
        if "think" in added["content"]:
            added["special"] = False
    (TOKENIZER / "tokenizer.json").write_text(json.dumps(state, ensure_ascii=False))
    decoder = {
        str(a["id"]): {k: a[k] for k in ("content", "lstrip", "normalized", "rstrip", "single_word", "special")}
        for a in state["added_tokens"]
    }
    config = TOKENIZER_CONFIG | {"added_tokens_decoder": decoder, "chat_template": CHAT_TEMPLATE}
    (TOKENIZER / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False))
    (TOKENIZER / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    print(f"{tok.get_vocab_size()} tokens -> {TOKENIZER}")


if __name__ == "__main__":
    main()
