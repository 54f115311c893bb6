"""The command: so many random chats, resumable, with real restarts of the process.

python -m engine.bench.soak --chats 20
python -m engine.bench.soak --model TINY/target --head TINY/head --chunk-sensitive 16 --chats 300
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import NoReturn

from engine.backend import mlx_version
from engine.bench.progress import Progress
from engine.bench.soak.chats import Limits, RandomChat, Restart, Tally
from engine.bench.soak.run import restarted, run_chat
from engine.engine import Engine
from engine.loading import Pair, load_pair
from engine.request import LoadOptions
from engine.session.sensitive import chunk_sensitive


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.bench.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="folder; the demo pair when absent")
    parser.add_argument("--head", help="folder of the MTP head")
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-words", type=int, default=Limits().words[1], help="of a user's message")
    parser.add_argument("--most-tokens", type=int, default=Limits().tokens[1], help="of a reply")
    parser.add_argument("--chunk-sensitive", type=int, metavar="N", help="make wrong cuts visible, chunks of N")
    parser.add_argument("--same-process", action="store_true", help="a restart is only a new engine: faster")
    parser.add_argument("--work", type=Path, default=Path("soak"), help="folder for progress; run again to continue")
    return parser


class Soak:
    """One run of the command. A restart begins the process anew and goes on from the files in `work`."""

    def __init__(self, asked: argparse.Namespace, pair: Pair, argv: Sequence[str]) -> None:
        self._asked, self._pair, self._argv = asked, pair, list(argv)
        self._limits = Limits(words=(1, asked.most_words), tokens=(1, asked.most_tokens))
        key = f"{pair.info.weights_hash} {mlx_version()} {asked.seed} {self._limits} {asked.chunk_sensitive}"
        self.progress = Progress(asked.work / "progress.jsonl", key)
        self._state = asked.work / "state.json"
        self._kept = asked.work / "kept.safetensors"
        self._key = key

    def run(self) -> None:
        """All chats that are not in the progress file yet."""
        first, chat, tally = self._resumed()
        for number in range(first, self._asked.chats):
            if str(number) not in self.progress.rows:
                engine = restarted(self._pair, self._kept) if chat is not None else Engine(self._pair)
                engine.detailed_timing = False
                self._run(number, chat or RandomChat(self._asked.seed, number, self._limits), tally, engine)
            chat, tally = None, Tally()

    def _run(self, number: int, chat: RandomChat, tally: Tally, engine: Engine) -> None:
        def restart(step: Restart, engine: Engine) -> Engine:
            if not self._asked.same_process:
                self._keep(number, chat, tally)
                self._begin_anew()
            return restarted(self._pair, self._kept)

        run_chat(self._pair, chat, tally, self._kept, restart, engine)
        tally.steps += chat.counts
        self.progress.add(str(number), tally.to_json())
        self._state.unlink(missing_ok=True)
        if number % 10 == 9 or number + 1 == self._asked.chats:
            t = self.total()
            say(f"chat {number + 1}: {t.replies} replies, {t.tokens} tokens, {len(t.differences)} differ")

    def _begin_anew(self) -> NoReturn:
        """This process ends here; a new one with the same arguments goes on from the files."""
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "engine.bench.soak", *self._argv])

    def total(self) -> Tally:
        total = Tally()
        for number in range(self._asked.chats):
            if row := self.progress.rows.get(str(number)):
                total.add(Tally.from_json(row))
        return total

    def _keep(self, number: int, chat: RandomChat, tally: Tally) -> None:
        state = {"key": self._key, "number": number, "chat": chat.to_json(), "tally": tally.to_json()}
        part = self._state.with_suffix(".part")
        part.write_text(json.dumps(state), encoding="utf-8")
        os.replace(part, self._state)

    def _resumed(self) -> tuple[int, RandomChat | None, Tally]:
        """The chat that a restart interrupted, or the first one."""
        with contextlib.suppress(OSError, ValueError):
            state = json.loads(self._state.read_text(encoding="utf-8"))
            if state["key"] == self._key and str(state["number"]) not in self.progress.rows:
                chat = RandomChat.from_json(state["chat"], self._limits)
                return state["number"], chat, Tally.from_json(state["tally"])
        return 0, None, Tally()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    asked = arguments().parse_args(argv)
    asked.work.mkdir(parents=True, exist_ok=True)
    started = perf_counter()
    options = LoadOptions(asked.model, asked.head)
    pair = load_pair(options, lambda _: None, threading.Event())
    with contextlib.ExitStack() as stack:
        if asked.chunk_sensitive:
            stack.enter_context(chunk_sensitive(pair.target, asked.chunk_sensitive))
        soak = Soak(asked, pair, argv)
        soak.run()
    total = soak.total()
    say(f"{pair.info.name}, weights {pair.info.weights_hash}, seed {asked.seed}")
    say(f"steps: {', '.join(f'{n} {kind}' for kind, n in sorted(total.steps.items()))}")
    say(f"prompt tokens that came from a boundary: {total.restored} of {total.prompt}")
    say(f"this process: {perf_counter() - started:.0f} s, load {' '.join(f'{x:.2f}' for x in os.getloadavg())}")
    for text in total.differences[:20]:
        say(f"DIFFERS: {text}")
    say(
        f"{len(total.differences)} of {2 * total.replies} comparisons differ: {total.replies} replies, "
        f"{total.tokens} tokens and their caches, each against a cold replay with MTP off and with MTP on."
    )
    return 1 if total.differences or not total.replies else 0


if __name__ == "__main__":
    sys.exit(main())
