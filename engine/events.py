"""What the engine tells. Every event is an immutable value that can cross threads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from engine.request import Segment


class ExactnessState(StrEnum):
    """What is known about "a verify block gives the bytes of single steps" here. A pass is not a proof."""

    NOT_RUN = "not run"
    EXACT_STOCK = "exact on stock kernels"
    EXACT_FORCED = "exact with other kernels"
    DECLINED = "declined"
    INEXACT_ALLOWED = "inexact by your choice"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The exactness decision and its reason.

    kernel: name of the engaged verify kernel ("stock", "forced_qmv", ...; "" when declined).
    widths: block sizes that may be used. inputs: number of inputs on which block and chain were compared.
    cost: verify time relative to stock, 1.0 for stock. seconds: what the probe itself took.
    """

    state: ExactnessState
    kernel: str
    reason: str
    widths: tuple[int, ...] = ()
    inputs: int = 0
    cost: float = 1.0
    seconds: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class DrafterInfo:
    """The MTP head as it is loaded.

    bytes: as it lies in memory. dense_bytes, packed_bytes: what it has in 16 bit and quantized, whichever is in force.
    hash: of its tensors as they lie in the checkpoint, "" when unknown.
    """

    source: str
    representation: str  # "dense bfloat16", "4-bit group 64", ...
    decided_by: str  # where the switch came from: "default", "setting", "environment", "checkpoint"
    bytes: int
    dense_bytes: int
    skipped: tuple[str, ...] = ()  # projections left dense, each with its reason
    packed_bytes: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What is loaded, for the window, the log header and `pacenote doctor`."""

    name: str
    path: str
    parameters: int
    target_bytes: int
    quantization: str
    context_length: int
    device: str
    policy: str  # the backend's decisions in words
    weights_hash: str
    revision: str  # hub commit, "" for a folder
    drafter: DrafterInfo | None
    drafter_reason: str  # why there is no drafter, "" when there is one
    verdict: Verdict
    load_seconds: float
    supports_thinking: bool
    classic_ms: float = 0.0  # of one classic step, timed while loading; 0 where nothing was to be compared with it


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """While a model loads. total is None where it cannot be known."""

    stage: str
    done: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Prompt tokens read so far. restored: how many came from a kept boundary without work.

    remaining: estimated seconds until all are read; None while nothing was measured yet.
    """

    done: int
    total: int
    restored: int
    seconds: float
    remaining: float | None = None


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How full the context is, and the memory that chats are kept in. Told after the prompt and after the reply.

    tokens: of prompt and reply so far. limit: what the model reads. dropped: messages that the model does not see
    (`WhenFull.DROP_OLDEST`). boundaries, boundary_bytes: kept for later turns of all chats. budget: their bytes at
    most.
    """

    tokens: int
    limit: int
    dropped: int
    boundaries: int
    boundary_bytes: int
    budget: int


@dataclass(frozen=True, slots=True)
class Text:
    """New text. Never a broken character, never a part of a stop string."""

    text: str
    channel: Literal["answer", "reasoning"] = "answer"


@dataclass(frozen=True, slots=True)
class Round:
    """One round of decode. width 1 is a classic step: no drafts, and only verify_ms and host_ms.

    accepted: drafts that agreed with the target. cut: tokens the walk produced after the end of the reply
    (EOS, stop string, budget); they are dropped from text and caches alike. emitted = accepted + 1 - cut.
    position: absolute position of the first emitted token. Times in milliseconds. With detailed timing
    each stage is synchronised before its time is taken; without it draft_ms lands in verify_ms.
    parked: a classic step that the pace chose because speculation would not pay.
    ends: (characters of the answer, of the reasoning) before the round and after each of its tokens: which text a
    token stands for.
    """

    index: int
    position: int
    width: int
    drafted: int
    accepted: int
    emitted: int
    cut: int
    draft_ms: float
    verify_ms: float
    rollback_ms: float
    hook_ms: float
    host_ms: float
    tokens: tuple[int, ...]
    parked: bool = False
    ends: tuple[tuple[int, int], ...] = ()

    @property
    def total_ms(self) -> float:
        return self.draft_ms + self.verify_ms + self.rollback_ms + self.hook_ms + self.host_ms


@dataclass(frozen=True, slots=True)
class Notice:
    """A decline, skip, park or choice of width with its reason, for the screen and the log."""

    kind: Literal["park", "unpark", "width", "pace", "decline", "cache", "drafter", "context", "reasoning", "log"]
    text: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """Outcome of replaying a reply by classic decode.

    compared: tokens that were equal, counted from the first. complete: False when it was stopped before a result.
    position .. replayed_logit: the first difference, counted from the reply's first token; None when identical.
    Logits are before any processing by the sampler.
    """

    identical: bool
    compared: int
    tokens: int
    complete: bool
    position: int | None = None
    written: int | None = None
    replayed: int | None = None
    written_logit: float | None = None
    replayed_logit: float | None = None

    def __str__(self) -> str:
        if not self.complete:
            return f"stopped after {self.compared} of {self.tokens} tokens, all equal so far"
        if self.identical:
            return f"identical, {self.tokens} tokens"
        return (
            f"differs at token {self.position}: written {self.written} (logit {self.written_logit:.6g}), "
            f"classic decode gives {self.replayed} (logit {self.replayed_logit:.6g})"
        )


class EndReason(StrEnum):
    EOS = "eos"
    STOP_STRING = "stop string"
    BUDGET = "budget"
    STOPPED = "stopped"  # by the user
    CONTEXT = "context full"


@dataclass(frozen=True, slots=True)
class ReplyStats:
    """Figures of one reply. Times in seconds unless the name says ms.

    Definitions: acceptance rate = accepted / drafted; mean acceptance length = 1 + accepted / rounds;
    per-position rate = accepted at that position / rounds that drafted it. Identity:
    tokens = 1 (the prefill's token) + accepted + rounds - cut, over speculative and classic rounds alike.
    parked_ms: what the parked rounds took, already in verify_ms and host_ms.
    """

    tokens: int
    prompt_tokens: int
    restored_tokens: int
    prefill_seconds: float
    decode_seconds: float
    rounds: int
    drafted: int
    accepted: int
    cut: int
    accepted_at: tuple[int, ...]
    drafted_at: tuple[int, ...]
    draft_ms: float
    verify_ms: float
    rollback_ms: float
    hook_ms: float
    host_ms: float
    parked_rounds: int = 0
    parked_ms: float = 0.0

    @property
    def acceptance_rate(self) -> float:
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def mean_acceptance_length(self) -> float:
        return 1.0 + self.accepted / self.rounds if self.rounds else 1.0

    @property
    def decoded(self) -> int:
        """Tokens that the rounds gave: all but the first, which comes with the prompt; of replies that were put
        together (`merge`), all but the first of each."""
        return self.accepted + self.rounds - self.cut

    @property
    def tokens_per_second(self) -> float:
        """Decode speed: what the rounds gave over their time."""
        return self.decoded / self.decode_seconds if self.decode_seconds > 0 else 0.0

    @property
    def per_position(self) -> tuple[float, ...]:
        return tuple(a / d if d else 0.0 for a, d in zip(self.accepted_at, self.drafted_at, strict=True))


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a generation. Always sent, also after Stop.

    segments: the schedule of this turn, to be stored with the reply: one or two prefills, one decode.
    tokens: all of them; the last one is in no cache and starts the next turn's prefill (`Message.last_token`).
    """

    reason: EndReason
    tokens: tuple[int, ...]
    segments: tuple[Segment, ...]
    answer: str
    reasoning: str
    stats: ReplyStats
    seed: int


Event = PrefillProgress | ContextUse | Text | Round | Notice | Finished
