"""`pacenote chat`: one reply, a conversation, its log, Stop. The engine is real, its pair is tiny."""

from __future__ import annotations

import io
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import Engine, Event, LoadOptions, Request, Sampler, Segment, Text, WhenFull
from engine.cli import chat
from engine.cli.chat_session import Printer
from engine.cli.conversation import Conversation, Seeds
from engine.cli.interrupt import interruptible
from engine.cli.loading import load_options
from engine.cli.main import main, parser
from engine.loading import Pair
from engine.telemetry.check import check
from engine.telemetry.reader import read


class Spy(Engine):
    """The engine, remembering what it was asked."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self.requests: list[Request] = []
        self.on_text: Callable[[], None] = lambda: None

    def generate(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        self.requests.append(request)
        for event in super().generate(request, stop):
            yield event
            if isinstance(event, Text):
                self.on_text()


@pytest.fixture
def engine(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Spy:
    """`pacenote chat` talks to this one instead of loading again."""
    spy = Spy(pair)
    monkeypatch.setattr(chat, "load_engine", lambda _: spy)
    return spy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def talk(monkeypatch: pytest.MonkeyPatch, lines: list[str], *arguments: str) -> int:
    """Type lines at the prompt, then Ctrl-D."""
    typed = iter(lines)

    def type_line(prompt: str = "") -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", type_line)
    return main(["chat", "--max-tokens", "6", *arguments])


def test_one_reply_from_nothing(
    tiny_folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The whole command with a real load: text alone on stdout, progress and figures on stderr, a sound log."""
    target, head = map(str, tiny_folders)
    log = tmp_path / "log.jsonl"
    command = ["chat", "--model", target, "--head", head, "--prompt", "Hello", "--max-tokens", "12", "--mtp", "always"]
    assert main([*command, "--log", str(log)]) == 0
    said = capsys.readouterr()
    figures = said.err.splitlines()[-1]
    assert re.match(r"12 tokens · [\d.]+ tok/s · acceptance \d+%, [\d.]+ tokens a round · ms a round: draft", figures)
    assert "exact on stock kernels" in figures
    assert "Reading weights" in said.err
    (generation,) = read(log).generations
    assert generation.complete
    assert check(generation) == []
    assert main(command) == 0
    assert capsys.readouterr().out == said.out, "greedy text does not depend on the run"
    assert said.out.strip()
    assert "tok/s" not in said.out


def test_piped_text_is_the_prompt(engine: Spy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Tell me\nmore.\n"))
    assert main(["chat", "--max-tokens", "2", "--system", "Be brief."]) == 0
    (request,) = engine.requests
    assert [(m.role, m.content) for m in request.messages] == [("system", "Be brief."), ("user", "Tell me\nmore.\n")]


@pytest.mark.parametrize(("options", "timing"), [([], "detailed"), (["--no-stage-times"], "plain")])
def test_waiting_for_each_stage_is_a_switch_and_is_logged(
    engine: Spy, tmp_path: Path, options: list[str], timing: str
) -> None:
    log = tmp_path / "log.jsonl"
    assert main(["chat", "--prompt", "Hello", "--max-tokens", "6", "--log", str(log), *options]) == 0
    (generation,) = read(log).generations
    assert generation.header is not None
    assert generation.header["timing"] == timing
    assert engine.detailed_timing is (timing == "detailed")


def test_the_next_turn_restores_its_boundary(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replies go back with their segments and last token, so that only the new text is read."""
    assert talk(monkeypatch, ["Hi", "And?"]) == 0
    reply = engine.requests[1].messages[1]
    assert [segment.kind for segment in reply.segments] == ["prefill", "decode"]
    assert reply.last_token is not None
    assert isinstance(reply.segments[0], Segment)
    assert re.search(r"[1-9]\d* of \d+ prompt tokens restored", capsys.readouterr().err)


def test_commands_of_the_prompt(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """/regenerate asks again with another seed, /new forgets, /stats and /why show, /quit ends; no more is sent."""
    lines = [
        "/regenerate",
        "/verify",
        "Hi",
        "/regenerate",
        "/verify",
        "/stats",
        "/why",
        "/help",
        "",
        "/new",
        "Ho",
        "/quit",
        "x",
    ]
    assert talk(monkeypatch, lines, "--seed", "5", "--temperature", "0.9") == 0
    first, second, third = engine.requests
    assert first.messages == second.messages
    assert first.seed == 5 != second.seed
    assert [m.content for m in third.messages] == ["Ho"]
    said = capsys.readouterr().err
    assert "no message to answer" in said
    assert "no reply to verify" in said
    assert "Receipt: identical, 6 tokens" in said
    assert "replies    2," in said
    assert re.search(r"prefill +\d+\.\d{3} s +\d+%  \d+ of \d+ prompt tokens read", said)
    assert re.search(r"classic steps? of", said), "why it was as fast as it was"
    assert "rows: expected" not in said, "choices of a width are for the log"
    assert "device     " in said
    assert said.count("Ctrl-C stops a reply") == 2, "at the start, and for a command that is none"


def test_ctrl_c_in_a_reply_keeps_it(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first text raises SIGINT: the reply ends as stopped, is kept, and the chat goes on."""

    def interrupt() -> None:
        engine.on_text = lambda: None
        signal.raise_signal(signal.SIGINT)

    engine.on_text = interrupt
    before = signal.getsignal(signal.SIGINT)  # a job in the background ignores it, and so do these tests then
    assert talk(monkeypatch, ["Hi", "And?"], "--max-tokens", "400") == 0
    assert "ended by stopped" in capsys.readouterr().err
    assert [m.role for m in engine.requests[1].messages] == ["user", "assistant", "user"]
    assert signal.getsignal(signal.SIGINT) is before


def test_continue_goes_on_where_a_reply_was_cut(
    pair: Pair, engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bug: the window had Continue and the terminal had not. The same request, behind the same tokens, same seed."""
    sampling = ("--seed", "5", "--temperature", "0.9")
    lines = ["/continue", "Hi", "/continue", "/continue", "/verify", "/stats", "And?", "/new", "/continue"]
    assert talk(monkeypatch, lines, *sampling) == 0
    first, second, third, after = engine.requests
    said = capsys.readouterr()
    assert (len(second.begun), len(third.begun), third.begun[:6]) == (6, 12, second.begun)
    assert second == replace(first, begun=second.begun), "what the window asks for"
    reply = after.messages[1]
    assert reply.last_token is not None
    assert len(reply.segments[-1].tokens) == 17, "the next turn takes it for one reply"
    assert "Receipt: identical, 18 tokens" in said.err
    assert "replies    1, 18 tokens" in said.err
    assert said.err.count("ended by budget · /continue goes on") == 4
    assert said.err.count("There is no reply that was cut.") == 2, "before the first message, and in a new chat"
    whole = Spy(pair)
    monkeypatch.setattr(chat, "load_engine", lambda _: whole)
    assert talk(monkeypatch, ["Hi", "And?"], *sampling, "--max-tokens", "18") == 0
    assert whole.requests[1].seed == after.seed, "it draws no seed"
    assert whole.requests[1].messages == after.messages
    assert said.out.replace("\n", "").startswith(capsys.readouterr().out.partition("\n")[0]), "nothing is shown twice"


def test_continue_after_ctrl_c_and_not_after_an_end_or_a_refused_message(
    pair: Pair, engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        engine.on_text = lambda: None
        signal.raise_signal(signal.SIGINT)

    engine.on_text = interrupt
    assert talk(monkeypatch, ["Hi", "/continue", LONG * 2, "/continue"]) == 0
    assert [bool(request.begun) for request in engine.requests] == [False, True, False]
    end = next(iter(pair.tokenizer.eos_ids))
    again = Spy(pair)
    monkeypatch.setattr(chat, "load_engine", lambda _: again)
    monkeypatch.setattr(chat, "Sampler", lambda *_: Sampler(logit_bias=((end, 1000.0),)))
    assert talk(monkeypatch, ["Hi", "/continue"]) == 0
    assert len(again.requests) == 1
    assert capsys.readouterr().err.count("There is no reply that was cut.") == 2


def test_the_log_of_a_reply_that_went_on_is_sound(engine: Spy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two generations of one reply; the second says how many tokens were there before."""
    log = tmp_path / "log.jsonl"
    assert talk(monkeypatch, ["Hi", "/continue"], "--log", str(log), "--log-text") == 0
    generations = read(log).generations
    assert [check(generation) for generation in generations] == [[], []]
    assert [generation.header["request"]["begun"] for generation in generations if generation.header] == [0, 6]


def test_a_printer_goes_on_behind_what_is_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """It is told all from the beginning. A part may end inside a character, which the whole has."""
    printer = Printer()
    for text in (Text("why", "reasoning"), Text("on"), Text("e \ufffd")):
        printer.show(text)
    before = printer.shown
    printer = Printer(before)
    assert printer.shown == before, "it may be stopped before it is told anything"
    capsys.readouterr()
    for text in (Text("wh", "reasoning"), Text("y", "reasoning"), Text("one"), Text(" "), Text("é"), Text(" two")):
        printer.show(text)
    assert capsys.readouterr() == ("é two", "")
    assert printer.shown == {"answer": "one é two", "reasoning": "why"}


def test_a_second_ctrl_c_gets_out() -> None:
    """Whatever hangs, nobody is locked in."""
    with interruptible() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_at_the_prompt_ends_the_chat(engine: Spy, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(prompt: str = "") -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", interrupted)
    assert main(["chat"]) == 0


def test_a_chat_that_no_longer_fits_says_so_and_goes_on(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A known error ends a reply, not the chat; its message is replaced by the next one."""
    assert talk(monkeypatch, ["word " * 3000, "Hi"]) == 0
    assert "the model reads 2048. All messages are kept." in capsys.readouterr().err
    assert [m.content for m in engine.requests[1].messages] == ["Hi"]


LONG = "word " * 1030
"""Two of them are more than the tiny model reads."""


def test_a_refused_message_is_answered_once_the_oldest_turns_may_go(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, [LONG, "Hi " + LONG, "/drop-oldest"]) == 0
    refused, answered = engine.requests[1:]
    assert (refused.when_full, answered.when_full) == (WhenFull.REFUSE, WhenFull.DROP_OLDEST)
    assert answered.messages == refused.messages
    said = capsys.readouterr().err
    assert "/drop-oldest" in said.partition("Leave out the oldest turns")[0], "the commands say how"
    assert "Its oldest turn (messages 1 to 2) stays in the chat" in said


def test_the_oldest_turns_may_go_from_the_start(
    engine: Spy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, ["/drop-oldest", "Hi"], "--drop-oldest") == 0
    assert [r.when_full for r in engine.requests] == [WhenFull.DROP_OLDEST]
    assert "When the chat no longer fits, its oldest turns are left out." in capsys.readouterr().err


def test_reasoning_may_have_an_effort(engine: Spy, capsys: pytest.CaptureFixture[str]) -> None:
    """A model without efforts says so; an effort and the switch at once are a mistake."""
    assert main(["chat", "--max-tokens", "2", "--prompt", "Hi", "--effort", "low"]) == 0
    assert engine.requests[0].thinking == "low"
    assert "no reasoning effort “low”; it knows none." in capsys.readouterr().err
    for wrong in (["--effort", "low", "--no-thinking"], ["--effort", ""]):
        with pytest.raises(SystemExit) as gone:
            main(["chat", "--prompt", "Hi", *wrong])
        assert gone.value.code == 2


def test_a_log_that_cannot_be_written_does_not_cost_the_reply(
    engine: Spy, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert main(["chat", "--prompt", "Hi", "--max-tokens", "3", "--log", str(tmp_path / "file" / "log.jsonl")]) == 0
    said = capsys.readouterr()
    assert said.out.strip()
    assert "The session log is off" in said.err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--block", "1"],
        ["--temperature", "-1"],
        ["--top-p", "0"],
        ["--seed", "-1"],
        ["--max-tokens", "0"],
        ["--mtp", "maybe"],
        ["--prompt", " "],
    ],
)
def test_wrong_options_are_refused_before_loading(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 and a sentence; a load of seconds would be wasted."""
    with pytest.raises(SystemExit) as done:
        main(["chat", *(["--prompt", "x"] if "--prompt" not in wrong else []), *wrong])
    assert done.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_reasoning_stays_out_of_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere than on a terminal only the answer is on stdout; on one, reasoning is dimmed and dimming ends."""

    def show() -> None:
        printer = Printer()
        for text in (Text("why", "reasoning"), Text("because"), Text("\x1b]0;!\x07")):
            printer.show(text)
        printer.end()

    show()
    said = capsys.readouterr()
    assert (said.out, said.err.split()) == ("because\x1b]0;!\x07\n", ["why"]), "a file gets what was written"
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    show()
    assert screen.getvalue() == "\x1b[2mwhy\x1b[22m\nbecause]0;!\n", "a terminal obeys no model"


def test_a_wider_block_is_probed() -> None:
    """Asking for 8 rows must not be declined only because a load probes 5 by default."""
    arguments = parser().parse_args(["chat", "--block", "8", "--dense-drafter"])
    options = load_options(arguments)
    assert (options.max_block, options.quantize_drafter) == (8, False)
    assert load_options(parser().parse_args(["chat"])) == LoadOptions()


def test_seeds_of_a_chat_can_be_repeated() -> None:
    """--seed fixes the first reply and all after it; without it two chats differ."""
    a, b = Seeds(5), Seeds(5)
    assert [a.draw() for _ in range(3)] == [b.draw() for _ in range(3)]
    assert Seeds(5).draw() == 5
    assert Seeds(None).draw() != Seeds(None).draw()


def test_a_message_without_a_reply_is_replaced() -> None:
    """Two user messages in a row would be a chat that the model was never trained on."""
    conversation = Conversation("S")
    conversation.ask("a")
    conversation.ask("b")
    assert [m.content for m in conversation.messages] == ["S", "b"]
    assert not Conversation().withdraw_reply()
