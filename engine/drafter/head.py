"""The MTP head as a module: one gated full-attention layer behind a fusion projection. Reference mtp.md 1.3."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.qwen3_5 import DecoderLayer, TextModelArgs

from engine.quantize import Plan


class MTPHead(nn.Module):
    """Tensor names are those of the stand-alone layout, so weights load by name."""

    def __init__(self, args: TextModelArgs) -> None:
        super().__init__()
        size, eps = args.hidden_size, args.rms_norm_eps
        self.pre_fc_norm_embedding = nn.RMSNorm(size, eps=eps)
        self.pre_fc_norm_hidden = nn.RMSNorm(size, eps=eps)
        self.fc = nn.Linear(2 * size, size, bias=False)
        # The last layer of each interval is the full-attention one.
        self.layers = [DecoderLayer(args, args.full_attention_interval - 1)]
        self.norm = nn.RMSNorm(size, eps=eps)

    def __call__(self, embedding: mx.array, hidden: mx.array, cache: Any) -> mx.array:
        """Take n entries into the history and give the output of the last.

        The layer is the only one, so of the others nothing but keys and values is ever read: no queries, no
        feed-forward. For a prompt that is a seventh of the layer's work (docs/adr 0010).

        Args:
            embedding: [n, H], of the next tokens.
            hidden: [n, H], of these ones.

        Returns:
            [1, H], normed.
        """
        x = self._fused(embedding, hidden)
        if x.shape[1] > 1:
            self._keep(x[:, :-1], cache)
        return self.norm(self.layers[0](x[:, -1:], mask=None, cache=cache))[0]

    def remember(self, embedding: mx.array, hidden: mx.array, cache: Any) -> None:
        """The same without an output: entries that others follow."""
        self._keep(self._fused(embedding, hidden), cache)

    def _fused(self, embedding: mx.array, hidden: mx.array) -> mx.array:
        """[1, n, H]"""
        pair = mx.concatenate([self.pre_fc_norm_embedding(embedding), self.pre_fc_norm_hidden(hidden)], axis=-1)
        return self.fc(pair)[None]

    def _keep(self, x: mx.array, cache: Any) -> None:
        """Keys and values of rows [1, n, H], as the layer's attention makes them."""
        layer = self.layers[0]
        attention, rows = layer.self_attn, layer.input_layernorm(x)
        shape = (*rows.shape[:2], attention.num_key_value_heads, -1)
        keys = attention.k_norm(attention.k_proj(rows).reshape(shape)).transpose(0, 2, 1, 3)
        values = attention.v_proj(rows).reshape(shape).transpose(0, 2, 1, 3)
        cache.update_and_fetch(attention.rope(keys, offset=cache.offset), values)


def build_head(text_config: Mapping[str, Any], weights: Mapping[str, mx.array], plan: Plan) -> MTPHead:
    """Make a head and bind its weights.

    Args:
        text_config: the target's.
        weights: by stand-alone name; packed where `.scales` is present.
        plan: the scheme of each packed one.

    Raises:
        ValueError: names or shapes do not match (the inventory in `checkpoint.head` comes first).
    """
    head = MTPHead(TextModelArgs.from_dict(copy.deepcopy(dict(text_config))))  # from_dict edits what it is given

    def packed(path: str, module: nn.Module) -> bool | dict[str, Any]:
        if f"{path}.scales" not in weights:
            return False
        scheme = plan.named.get(path) or plan.default
        return {"group_size": scheme.group_size, "bits": scheme.bits}

    nn.quantize(head, class_predicate=packed)
    head.load_weights(list(weights.items()), strict=True)
    head.eval()
    return head
