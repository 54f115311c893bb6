"""`pacenote verify-log` and `export-log`: another person checks a log, and gets it in other forms. Tiny real pair."""

from __future__ import annotations

import csv
import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Engine, EventLog, Finished, Message, PrefillProgress, Receipt, Request, Sampler, Speculation
from engine.cli import verify_log
from engine.cli.main import main
from engine.loading import Pair
from engine.telemetry import schema
from engine.telemetry.reader import read
from tests.support.rounds import CONDITIONS, ENVIRONMENT, INFO, REQUEST

NEVER = threading.Event()


@pytest.fixture(scope="module")
def logged(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three turns of a chat with sampling, and a reply that was cut and went on; texts are logged."""
    path = tmp_path_factory.mktemp("log") / "session.jsonl"
    engine, log = Engine(pair), EventLog(path, content=True)
    messages: tuple[Message, ...] = (Message("system", "Be brief."),)
    sampler = Sampler(temperature=0.9, top_k=40, repetition_penalty=1.1, logit_bias=((5, 1.5), (6, -2.0)))
    for turn in range(3):
        messages = (*messages, Message("user", f"Turn {turn}"))
        mode = Speculation.OFF if turn == 1 else Speculation.ALWAYS
        request = Request(
            messages, sampler, seed=turn, max_tokens=9, speculation=mode, stop=("never said",), ignore_eos=True
        )
        done = _write(engine, log, request)
        messages = (*messages, Message("assistant", done.answer, done.reasoning, done.segments, done.tokens[-1]))
    _write(engine, log, replace(request, begun=done.tokens))
    return path


def _write(engine: Engine, log: EventLog, request: Request) -> Finished:
    log.begin(engine.info, request, detailed=True)
    last = None
    for event in engine.generate(request, NEVER):
        log.write(event)
        last = event
    assert isinstance(last, Finished)
    return last


@pytest.fixture
def here(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other machine has the same weights loaded."""
    monkeypatch.setattr(verify_log, "load_engine", lambda _: Engine(pair))


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: object) -> Engine:
        raise AssertionError("no model is needed for this")

    monkeypatch.setattr(verify_log, "load_engine", load)


def changed(logged: Path, path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The log with every line changed by `change`."""
    rows = [json.loads(line) for line in logged.read_text().splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# ---------------------------------------------------------------------------------------------------------- verifying


@pytest.mark.usefixtures("here")
def test_a_true_log_is_equal_in_figures_and_tokens(logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every reply, at a temperature, with MTP on or off, over turns, also one that was cut and went on."""
    assert main(["verify-log", str(logged)]) == 0
    said = capsys.readouterr().out
    assert said.count("figures equal\n") == 4
    assert said.count("tokens equal (identical, 9 tokens)") == 3
    assert "tokens equal (identical, 18 tokens)" in said
    assert "Replies: 4; figures equal: 4, tokens equal: 4, words equal: 4." in said


@pytest.mark.usefixtures("here")
def test_one_other_token_is_found_and_placed(logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In footer and round alike, so that the figures still agree."""
    first = read(logged).generations[0]
    place = len(first.footer["tokens"]) - 1

    def change(row: dict[str, Any]) -> None:
        if row["gen"] == first.id and row["kind"] == "footer":
            row["tokens"][-1] ^= 1
        if row["gen"] == first.id and row["kind"] == "round" and row["index"] == first.rounds[-1].index:
            row["tokens"][-1] ^= 1

    assert main(["verify-log", str(changed(logged, tmp_path / "x.jsonl", change))]) == 1
    said = capsys.readouterr().out
    assert f"{first.id}  figures equal" in said
    assert re.search(rf"{first.id}  tokens differ \(differs at token {place}: written ", said)
    assert said.count("tokens equal") == 4, "three lines and the sum"


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("kind", "field", "amount", "told"),
    [
        ("round", "verify_ms", 0.5, "verify_ms"),
        ("round", "position", 1, "does not begin where"),
        ("round", "index", 1, "stands where round"),
        ("footer", "accepted", 1, "accepted: the footer says"),
        ("footer", "parked_ms", 1.0, "parked_ms"),
    ],
)
def test_one_other_figure_is_found(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, field: str, amount: float, told: str
) -> None:
    first = read(logged).generations[0]

    def change(row: dict[str, Any]) -> None:
        at = row.get("stats", row)
        if row["gen"] == first.id and row["kind"] == kind and (kind == "footer" or row["n"] == 4):
            at[field] += amount

    assert main(["verify-log", "--no-replay", str(changed(logged, tmp_path / "x.jsonl", change))]) == 1
    said = capsys.readouterr().out
    assert f"{first.id}  figures differ (" in said
    assert told in said
    assert "figures differ: 1, figures equal: 3" in said


def _set(*path: Any, kind: str = "header") -> Callable[[dict[str, Any], str], None]:
    """Of the first reply: `path` but its last part leads to what becomes that."""
    *way, last, value = path

    def change(row: dict[str, Any], id_: str) -> None:
        if row["gen"] == id_ and row["kind"] == kind:
            for name in way:
                row = row[name]
            row[last] = value(row[last]) if callable(value) else value

    return change


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("request", "seed", 9), "seed: the header says 9, the footer 0"),
        (_set("seed", 9, kind="footer"), "seed: the header says 0, the footer 9"),
        (_set("request", "max_tokens", 8), "at most 8 were asked for"),
        (_set("request", "max_tokens", 10), "its budget of 10 tokens, but has 9"),
        (_set("request", "speculation", "off"), "speculation was off"),
        (_set("request", "block_size", 2), "at most 2 were asked for"),
        (_set("request", "begun", 1), "counts 1 begun"),
        (_set("request", "stops", 0), "counts 0 stop"),
        (_set("content", "begun", [1]), "does not begin with what was there"),
        (_set("content", "messages", [].copy()), "messages and holds 0"),
        (_set("model", "drafter", None), "but no drafter"),
        (_set("model", "verdict", "widths", [2]), "which the verdict does not allow"),
        (_set("model", "context_length", 10), "the model reads 10"),
        (_set("reason", "boredom", kind="footer"), "no reason that this version knows"),
        (_set("reason", "context full", kind="footer"), "by a full context"),
        (_set("tokens", lambda tokens: tokens[1:], kind="footer"), "it says that 9 were written"),
        (_set("tokens", lambda tokens: [7, *tokens], kind="footer"), "it says that 9 were written"),
        (_set("tokens", None, kind="footer"), "the footer has no tokens"),
        (_set("tokens", [], kind="round"), "a round does not hold its tokens"),
        (_set("content", None), "the header says nothing of texts"),
        (_set("done", lambda done: done - 1, kind="prefill"), "before the prompt was read"),
        (_set("restored", lambda n: n + 10**6, kind="prefill"), "that cannot be"),
        (_set("width", 4, kind="round"), "drafted is not width - 1"),
        (_set("parked", True, kind="round"), "parked and has drafts"),
    ],
)
def test_a_header_or_footer_that_says_something_else_than_the_rows_is_found(
    logged: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any], str], None],
    told: str,
) -> None:
    """Each of these once passed as "figures equal"."""
    first = read(logged).generations[0]
    path = changed(logged, tmp_path / "x.jsonl", lambda row: change(row, first.id))
    assert main(["verify-log", "--no-replay", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"{first.id}  figures differ (" in said
    assert told in said
    assert "figures differ: 1, figures equal: 3" in said


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("answer", lambda text: f"{text}!", kind="footer"), "the answer is not that of its tokens"),
        (_set("reasoning", "Hm.", kind="footer"), "the reasoning is not that of its tokens"),
        (_set("reason", "eos", kind="footer"), "it was ended by 'eos', its tokens say 'something else'"),
        (_set("reason", "stop string", kind="footer"), "it was ended by 'stop string'"),
        (_set("tokens", [-1] * 9, kind="footer"), "tokens that this model does not have"),
        (_set("tokens", [10**30] * 9, kind="footer"), "tokens that this model does not have"),
    ],
)
def test_words_that_are_not_those_of_the_tokens_are_found(
    logged: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any], str], None],
    told: str,
) -> None:
    """The text in a footer was once never looked at; ids beyond any table ended the program."""
    first = read(logged).generations[0]
    path = changed(logged, tmp_path / "x.jsonl", lambda row: change(row, first.id))
    assert main(["verify-log", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"{first.id}  words differ (" in said
    assert told in said
    assert "words differ: 1, words equal: 3" in said


@pytest.mark.usefixtures("here")
def test_a_stop_string_in_the_header_that_ends_the_reply_earlier_is_found(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = read(logged).generations[0]
    assert first.footer is not None
    early = first.footer["answer"][0]
    path = changed(logged, tmp_path / "x.jsonl", lambda row: _set("content", "stop", [early])(row, first.id))
    assert main(["verify-log", str(path)]) == 1
    assert f"{first.id}  words differ (the reply has ended)" in capsys.readouterr().out


ODD = [10**30, -1, 1e308, "x", "\x1b[2J", None, True, [], {}, [[10**9, 1.0]], [{"kind": "decode", "tokens": [10**30]}]]


@pytest.mark.usefixtures("here")
def test_no_value_in_a_request_ends_the_program(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also deep in the history of a chat. A token id beyond any table once did, and so did a bias for none."""
    of = read(logged).generations[2]

    def places(row: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        for key, value in row.items() if isinstance(row, dict) else enumerate(row[:2]):
            yield (*path, key)
            if isinstance(value, dict | list):
                yield from places(value, (*path, key))

    header = json.loads(json.dumps(of.header))
    lines = [line for line in logged.read_text().splitlines() if json.loads(line)["gen"] == of.id][1:]
    asked = [("request", *place) for place in places(header["request"])]
    history = [("content", "messages", 2, *place) for place in places(header["content"]["messages"][2])]
    made = []
    for n, place in enumerate([*asked, *history]):
        row = json.loads(json.dumps(header))
        _set(*place, ODD[n % len(ODD)])(row, of.id)
        made += [line.replace(of.id, f"{n:012x}") for line in (json.dumps(row), *lines)]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(made) + "\n")
    assert main(["verify-log", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"Replies: {len(asked) + len(history)}; " in said
    assert "tokens not checked" in said
    assert "\x1b" not in said


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (("request", "sampler", "logit_bias", [[10**9, 1.0]]), "logit_bias names a token outside"),
        (("content", "messages", 1, "content", "word " * 5_000), "This message has "),
    ],
    ids=["a token that is none", "a prompt that is too long here"],
)
def test_a_request_that_cannot_be_repeated_costs_only_its_own_reply(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: tuple[Any, ...], reason: str
) -> None:
    first, change = read(logged).generations[0], _set(*place)
    path = changed(logged, tmp_path / "x.jsonl", lambda row: change(row, first.id))
    assert main(["verify-log", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"{first.id}  tokens not checked ({reason}" in said
    assert said.count("  tokens equal") == 3


@pytest.mark.usefixtures("nowhere")
def test_a_log_of_a_newer_format_is_not_judged(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = changed(logged, tmp_path / "x.jsonl", lambda row: row.update(version=2) if "version" in row else None)
    assert main(["verify-log", str(path)]) == 1, "nothing could be checked"
    said = capsys.readouterr().out
    assert "figures not checked: 4, tokens not checked: 4" in said
    assert "version 2 of the format; this program knows 1" in said


@pytest.mark.usefixtures("nowhere")
def test_what_is_never_checked_is_said(logged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify-log", "--no-replay", str(logged)]) == 0
    assert "Never checked, because nobody can repeat it: times" in capsys.readouterr().out


@pytest.mark.usefixtures("nowhere")
def test_tokens_of_rounds_that_are_not_those_of_the_footer(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["kind"] == "footer":
            row["tokens"][-1] ^= 1

    assert main(["verify-log", "--no-replay", str(changed(logged, tmp_path / "x.jsonl", change))]) == 1
    assert "not the last ones of the footer" in capsys.readouterr().out


@pytest.mark.usefixtures("nowhere")
def test_without_texts_the_figures_are_checked_and_the_rest_is_said(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default log: no model is loaded for it, and it is no failure."""
    path = tmp_path / "session.jsonl"
    _write(Engine(pair), EventLog(path), Request((Message("user", "secret"),), max_tokens=6))
    assert main(["verify-log", str(path)]) == 0
    said = capsys.readouterr().out
    assert "tokens not checked (its texts were not logged)" in said
    assert "Replies: 1; figures equal: 1, tokens not checked: 1." in said


@pytest.mark.usefixtures("nowhere")
def test_torn_repeated_and_foreign_lines_are_told_and_the_rest_is_checked(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last reply's footer is torn: its figures cannot be checked; the others' can."""
    lines = logged.read_bytes().splitlines(keepends=True)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join([*lines[3:], *lines[:3], lines[2], b"{}\n", b"no log\n"])[:-1] + b"\n" + lines[-1][:40])
    assert main(["verify-log", "--no-replay", str(path)]) == 0, "its own footer stands further up"
    said = capsys.readouterr().out
    for problem in ("out of order", "a duplicate", "not a line of a session log", "no JSON", "is torn"):
        assert problem in said, problem
    assert "figures equal: 4" in said
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    assert main(["verify-log", "--no-replay", str(path)]) == 0
    assert "figures equal: 3, figures not checked: 1" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_other_weights_are_not_compared(logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["kind"] == "header":
            row["model"]["weights_hash"] = "other"

    assert main(["verify-log", str(changed(logged, tmp_path / "x.jsonl", change))]) == 0
    said = capsys.readouterr().out
    assert "other weights: written by" in said
    assert "tokens not checked: 4" in said


@pytest.mark.usefixtures("here")
def test_a_difference_on_another_device_says_what_else_may_be_behind_it(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["kind"] == "header":
            row["model"]["device"] = "Apple M9"
        if row["kind"] == "footer":
            row["tokens"][0] ^= 1

    assert main(["verify-log", str(changed(logged, tmp_path / "x.jsonl", change))]) == 1
    assert "It was written on Apple M9" in capsys.readouterr().out


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("text", ["", "no log\n"])
def test_a_file_with_nothing_to_check_is_no_pass(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    assert main(["verify-log", str(tmp_path / "x.jsonl")]) == 1
    assert "There is no reply of a session log in" in capsys.readouterr().out
    assert main(["verify-log", str(tmp_path / "missing.jsonl")]) == 1


def test_ctrl_c_says_what_was_not_compared(
    logged: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(Engine):
        def verify(
            self, request: Request, tokens: Sequence[int], stop: threading.Event
        ) -> Iterator[PrefillProgress | Receipt]:
            signal.raise_signal(signal.SIGINT)
            yield from super().verify(request, tokens, stop)

    monkeypatch.setattr(verify_log, "load_engine", lambda _: Interrupted(pair))
    assert main(["verify-log", str(logged)]) == 130
    assert "the tokens of 4 replies were not compared" in capsys.readouterr().out


@given(
    bias=st.lists(st.tuples(st.integers(0, 99), st.floats(-9, 9)), max_size=3),
    begun=st.lists(st.integers(0, 99), max_size=3),
    thinking=st.sampled_from([None, True, False, "low"]),
    speculation=st.sampled_from(list(Speculation)),
)
def test_a_request_comes_back_from_the_header(
    bias: list[tuple[int, float]], begun: list[int], thinking: bool | str | None, speculation: Speculation
) -> None:
    """All of it but what was written already, which is a part of the reply."""
    sampler = replace(REQUEST.sampler, logit_bias=tuple(bias))
    asked = replace(REQUEST, sampler=sampler, begun=tuple(begun), thinking=thinking, speculation=speculation)
    rows = {
        content: schema.header_row(
            INFO, asked, ENVIRONMENT, CONDITIONS, timing="plain", time=schema.datetime.now(), content=content
        )
        for content in (True, False)
    }
    assert schema.request_from(json.loads(json.dumps(rows[True]))) == replace(asked, begun=())
    with pytest.raises(ValueError, match="texts were not logged"):
        schema.request_from(rows[False])


@pytest.mark.parametrize("name", ["messages", "stop"])
@pytest.mark.parametrize("value", [None, 3, [3], [{}], [{"role": "user"}]])
def test_a_damaged_request_is_no_request(logged: Path, name: str, value: object) -> None:
    (header, *_) = (g.header for g in read(logged).generations)
    with pytest.raises(ValueError, match=r"request|empty|stop"):
        schema.request_from({**header, "content": {**header["content"], name: value}})


# ---------------------------------------------------------------------------------------------------------- exporting


def test_exports_of_chosen_replies(logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines as they are, a row a reply, a row a round, a page; by id, and the last ones."""
    first, *_, last = read(logged).generations
    out = tmp_path / "out"
    assert main(["export-log", str(logged), "--as", "jsonl", "--reply", first.id[:8], "--out", str(out)]) == 0
    assert "Replies written to" in capsys.readouterr().out
    whole = logged.read_text().splitlines()
    assert out.read_text().splitlines() == [line for line in whole if json.loads(line)["gen"] == first.id]
    assert main(["export-log", str(logged), "--as", "csv", "--last", "1", "--out", str(out)]) == 0
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert row["gen"] == last.id
    assert float(row["decode_seconds"]) == last.stats.decode_seconds
    assert main(["export-log", str(logged), "--as", "rounds-csv", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == sum(len(g.rounds) for g in read(logged).generations)
    assert main(["export-log", str(logged), "--out", str(out)]) == 0
    page = out.read_text()
    for must in (
        first.id,
        last.id,
        "tokens can be replayed",
        "### Decisions",
        "temperature 0.9",
    ):
        assert must in page, must
    assert "Turn 1" not in page, "a record shows figures, not words"


def test_an_export_is_whole_or_not_there(
    logged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.md"
    out.write_text("before")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("engine.telemetry.export.os.replace", refuse)
        assert main(["export-log", str(logged), "--out", str(out)]) == 1
    assert "could not be exported" in capsys.readouterr().err
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]
    assert main(["export-log", str(logged), "--reply", "zzz", "--out", str(out)]) == 1
    assert "no such reply" in capsys.readouterr().err
    assert main(["export-log", str(tmp_path / "missing"), "--out", str(out)]) == 1
    with pytest.raises(SystemExit):
        main(["export-log", str(logged), "--last", "0", "--out", str(out)])


def test_a_damaged_log_is_exported_as_far_as_it_is_sound(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the page says what is wrong with it."""
    lines = logged.read_bytes().splitlines(keepends=True)
    path, out = tmp_path / "x.jsonl", tmp_path / "out"
    path.write_bytes(b"no log\n" + b"".join(lines[:2] + lines[3:]) + b"\xff{torn")
    assert main(["export-log", str(path), "--out", str(out)]) == 0
    assert "1 line is missing" in capsys.readouterr().err
    page = out.read_text()
    assert "## What is wrong with the log" in page
    assert "lines are missing, or claim one place, so nothing of it can be checked" in page
    assert main(["export-log", str(path), "--as", "jsonl", "--out", str(out)]) == 0
    assert out.read_bytes().splitlines() == b"".join(lines[:2] + lines[3:]).splitlines()


def test_an_export_never_replaces_the_log_it_reads(
    logged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--reply ID --out LOG` once left of a log that one reply."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(logged.read_bytes())
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for out in (path, link):
        assert main(["export-log", str(path), "--as", "jsonl", "--last", "1", "--out", str(out)]) == 1
        assert "would replace the session log itself" in capsys.readouterr().err
    assert path.read_bytes() == logged.read_bytes()
    (tmp_path / "out.md.part").write_text("somebody's")
    assert main(["export-log", str(path), "--out", str(tmp_path / "out.md")]) == 0
    assert (tmp_path / "out.md.part").read_text() == "somebody's"


def test_a_line_that_was_edited_elsewhere_is_exported_whole(logged: Path, tmp_path: Path) -> None:
    """A carriage return between fields is JSON. The export once took it for the end of a line, and lost the line."""
    path, out = tmp_path / "x.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + logged.read_bytes().replace(b',"n"', b',\r"n"').replace(b"\n", b"\r\n"))
    assert main(["export-log", str(path), "--as", "jsonl", "--out", str(out)]) == 0
    assert [g.footer for g in read(out).generations] == [g.footer for g in read(logged).generations]
    assert read(out).problems == ()


def test_a_strangers_log_puts_no_formula_into_a_spreadsheet(logged: Path, tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["kind"] == "header":
            row["model"]["name"] = '=HYPERLINK("x")'

    out = tmp_path / "out.csv"
    log = changed(logged, tmp_path / "x.jsonl", change)
    assert main(["export-log", str(log), "--as", "csv", "--out", str(out)]) == 0
    assert {row["model"] for row in csv.DictReader(out.read_text().splitlines())} == {'\'=HYPERLINK("x")'}
