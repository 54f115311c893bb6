"""A request as it is stored with its reply, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from engine import Message, Request, Sampler, Speculation, WhenFull


def request_dict(request: Request) -> dict[str, Any]:
    """What is stored about how a reply was asked for; the seed has its own column."""
    first = request.messages[0]
    return {
        # A chat's system prompt may change; this reply was written with this one.
        "system": first.content if first.role == "system" else "",
        "sampler": dataclasses.asdict(request.sampler),
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
        "speculation": str(request.speculation),
        "block_size": request.block_size,
        "thinking": request.thinking,
        "when_full": str(request.when_full),
    }


def request_from(kept: dict[str, Any], messages: tuple[Message, ...], seed: int) -> Request:
    """The request that `request_dict` was made of."""
    sampler = dict(kept["sampler"])
    sampler["logit_bias"] = tuple((int(token), float(value)) for token, value in sampler.get("logit_bias", ()))
    return Request(
        messages=messages,
        sampler=Sampler(**sampler),
        seed=seed,
        max_tokens=kept["max_tokens"],
        stop=tuple(kept["stop"]),
        speculation=Speculation(kept["speculation"]),
        block_size=kept["block_size"],
        thinking=kept["thinking"],
        when_full=WhenFull(kept.get("when_full", WhenFull.REFUSE)),  # older replies do not say
    )
