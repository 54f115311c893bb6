"""The session log survives what disks, crashes and people do to it, and never harms a reply."""

from __future__ import annotations

import contextlib
import copy
import csv
import dataclasses
import errno
import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import KnownError, Message, Notice, PrefillProgress
from engine.telemetry import environment as env
from engine.telemetry import reader, schema
from engine.telemetry.check import check, contradictions, recompute, tokens_of, unjudged, unsaid
from engine.telemetry.export import REPLY_COLUMNS, ROUND_COLUMNS, ExportKind, export_logs, replies_csv, rounds_csv
from engine.telemetry.log import GROUP_LINES, SessionLog, rotated
from engine.telemetry.markdown import as_markdown
from engine.telemetry.reader import MAX_PROBLEMS, lines_of, read, read_lines
from tests.support.rounds import (
    CONDITIONS,
    ENVIRONMENT,
    INFO,
    PREFILL,
    REQUEST,
    SECRET,
    finished,
    prefills,
    rounds,
    some_round,
)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logs" / "session.jsonl"


def write_reply(log, seen, *, end=True, prefill=PREFILL):
    id_ = log.begin(INFO, REQUEST, ENVIRONMENT, CONDITIONS)
    log.prefill(prefill)
    for round_ in seen:
        log.round(round_)
    if end:
        log.end(finished(seen))
    return id_


def some_rounds(count):
    return [some_round(i) for i in range(count)]


# ------------------------------------------------------------------------------------------------------ round trip


@settings(max_examples=30)
@given(seen=st.lists(rounds, max_size=40), content=st.booleans())
def test_what_is_written_is_read_and_the_rows_give_the_footer(tmp_path_factory, seen, content):
    path = tmp_path_factory.mktemp("log") / "session.jsonl"
    log = SessionLog(path, content=content)
    write_reply(log, seen)
    found = read(path)
    assert found.problems == ()
    (reply,) = found.generations
    assert reply.complete
    assert check(reply) == []
    assert recompute(reply) == reply.stats == finished(seen).stats
    assert reply.prefill == (PREFILL, True)
    tokens = [r.tokens for r in reply.rounds]
    assert tokens == [r.tokens if content else () for r in seen]


def test_the_header_says_what_is_needed_to_judge(path):
    write_reply(SessionLog(path), some_rounds(1))
    (reply,) = read(path).generations
    header = reply.header
    assert header["version"] == schema.VERSION
    assert header["environment"]["mlx"] == "0.32.4"
    assert header["conditions"] == {"load": [0.5, 0.4, 0.3], "power": "mains"}
    assert header["timing"] == "plain"
    assert header["model"]["weights_hash"] == "abc123"
    assert header["model"]["verdict"]["kernel"] == "stock"
    assert header["model"]["drafter"]["representation"] == "4-bit group 64"
    assert header["request"]["seed"] == 7
    assert header["request"]["sampler"]["temperature"] == 0.8
    assert (header["request"]["messages"], header["request"]["stops"]) == (3, 1)


def test_no_word_of_the_chat_unless_asked(path):
    log = SessionLog(path)
    write_reply(log, some_rounds(3))
    text = path.read_text()
    assert SECRET not in text
    assert 'tokens":[' not in text.replace(" ", "")
    content = SessionLog(path.with_name("content.jsonl"), content=True)
    write_reply(content, some_rounds(3))
    (reply,) = read(path.with_name("content.jsonl")).generations
    assert reply.header["content"]["messages"][1]["segments"] == [{"kind": "prefill", "tokens": [1, 2]}]
    assert reply.header["content"]["messages"][1]["last_token"] == 3
    assert reply.footer["answer"] == SECRET


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ("/home/ada/m", "~/m"),
        ("/home/ada", "~"),
        ("/home/adam/m", "/home/adam/m"),
        ("org/name", "org/name"),
        ("/mnt/home/ada/m", "/mnt/home/ada/m"),
        ("No head in /home/ada/m, /home/ada/n.", "No head in ~/m, ~/n."),
    ],
)
def test_the_account_name_stays_at_home(monkeypatch, given_, shown):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    assert schema.without_home({"x": [given_, 3, None]}) == {"x": [shown, 3, None]}


def test_no_path_in_a_header_tells_the_account_name(path, monkeypatch):
    """That of the drafter, and the reason why there is none, once did."""
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    at_home = dataclasses.replace(
        INFO,
        path="/home/ada/m",
        drafter=dataclasses.replace(INFO.drafter, source="/home/ada/h"),
        drafter_reason="/home/ada/h is no head.",
    )
    log = SessionLog(path)
    log.begin(at_home, REQUEST, ENVIRONMENT, CONDITIONS)
    log.flush()
    assert "ada" not in path.read_text()


def test_notices_and_a_reply_stopped_while_reading(path):
    log = SessionLog(path)
    log.begin(INFO, REQUEST, ENVIRONMENT, CONDITIONS, timing="detailed")
    log.prefill(PrefillProgress(512, 2000, 0, 1.0), token=False)
    log.notice(Notice("park", "width 3 costs more than it gives"))
    log.flush()
    (reply,) = read(path).generations
    assert reply.notices == [Notice("park", "width 3 costs more than it gives")]
    assert not reply.complete
    assert recompute(reply).tokens == 0
    assert reply.header["timing"] == "detailed"


# --------------------------------------------------------------------------------------------- groups and rotation


def test_lines_are_grouped_by_number_and_by_age(path):
    clock = Clock()
    log = SessionLog(path, clock=clock)
    log.begin(INFO, REQUEST, ENVIRONMENT, CONDITIONS)
    log.prefill(PREFILL)
    assert not path.exists()
    for i in range(GROUP_LINES - 2):
        log.round(some_round(i))
    assert len(path.read_bytes().splitlines()) == GROUP_LINES
    log.round(some_round(100))
    clock.now += 10
    log.round(some_round(101))
    assert len(path.read_bytes().splitlines()) == GROUP_LINES + 2


def test_rotation_bounds_the_log_and_every_file_reads_alone(path):
    log = SessionLog(path, max_bytes=20_000, files=3)
    ids = [write_reply(log, some_rounds(60 + n), end=n % 3 > 0) for n in range(12)]
    files = sorted(path.parent.iterdir())
    assert files == sorted([path, rotated(path, 1), rotated(path, 2)])
    assert all(file.stat().st_size <= 20_000 for file in files)
    for file in files:
        for reply in read(file).generations:
            assert reply.header is not None
    found = read(path, older=True)
    assert [g.id for g in found.generations] == ids[-len(found.generations) :]
    for reply in found.generations[1:]:
        assert reply.complete == (ids.index(reply.id) % 3 > 0)
        assert not reply.complete or check(reply) == []
    # The oldest file may begin inside a reply. It says so, and is not taken for whole.
    cut_off = {found.generations[0].id, *ids[::3]}
    assert all(any(id_ in problem for id_ in cut_off) for problem in found.problems)


def test_a_reply_over_several_files_is_one_reply(path):
    log = SessionLog(path, max_bytes=15_000, files=10)
    seen = some_rounds(300)
    write_reply(log, seen)
    assert rotated(path, 2).exists()
    found = read(path, older=True)
    assert found.problems == ()
    (reply,) = found.generations
    assert recompute(reply) == finished(seen).stats
    parts = [json.loads(p.read_text().splitlines()[0])["part"] for p in (rotated(path, 2), rotated(path, 1), path)]
    assert parts == sorted(parts)


def test_one_file_is_allowed(path):
    log = SessionLog(path, max_bytes=5_000, files=1)
    for _ in range(5):
        write_reply(log, some_rounds(10))
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_size <= 5_000


def test_a_file_deleted_or_moved_under_the_writer_costs_only_itself(path):
    log = SessionLog(path)
    write_reply(log, some_rounds(3))
    path.unlink()
    id_ = write_reply(log, some_rounds(3))
    assert [g.id for g in read(path).generations] == [id_]


@settings(max_examples=25)
@given(turns=st.lists(st.integers(0, 2), min_size=20, max_size=120))
def test_several_writers_of_one_log_lose_nothing(tmp_path_factory, turns):
    """Rotation by one of them in the middle of another's reply: every file still holds the headers of its replies."""
    path = tmp_path_factory.mktemp("log") / "session.jsonl"
    logs = [SessionLog(path, max_bytes=20_000, files=99) for _ in range(3)]
    ids = [log.begin(INFO, REQUEST, ENVIRONMENT, CONDITIONS) for log in logs]
    seen = [[], [], []]
    for log in logs:
        log.prefill(PREFILL)
    for who in turns:
        for _ in range(7):
            seen[who].append(some_round(len(seen[who])))
            logs[who].round(seen[who][-1])
        logs[who].flush()
    for log, mine in zip(logs, seen, strict=True):
        log.end(finished(mine))
        assert log.take_notice() is None
    found = read(path, older=True)
    assert found.problems == ()
    assert {g.id for g in found.generations} == set(ids)
    assert all(g.complete and check(g) == [] for g in found.generations)
    for file in path.parent.iterdir():
        assert file.stat().st_size <= 22_000, "the header that is repeated is not foreseen"
        assert not any("header is missing" in p for p in read(file).problems)


def test_two_processes_that_rotate_at_once_rotate_once(path, monkeypatch):
    """Both found the file full. The slower one once pushed the fresh file of the other out of its place."""
    one, other = (SessionLog(path, max_bytes=20_000, files=5) for _ in range(2))
    write_reply(one, some_rounds(85))
    rotate = SessionLog._rotate
    looked = []

    def late(self):
        if not looked:
            looked.append(True)
            write_reply(other, some_rounds(85))  # finds the file full and held, so it goes on in it
        rotate(self)

    monkeypatch.setattr(SessionLog, "_rotate", late)
    write_reply(one, some_rounds(85))
    assert looked
    found = read(path, older=True)
    assert [g.complete for g in found.generations] == [True] * 3
    assert found.problems == ()
    assert not rotated(path, 2).exists()


def test_one_that_opened_the_file_before_another_rotated_it_does_not_rotate(path, monkeypatch):
    one, other = (SessionLog(path, max_bytes=20_000, files=5) for _ in range(2))
    write_reply(one, some_rounds(85))
    alone = SessionLog._alone_with
    looked = []

    def late(self, file):
        if self is one and not looked:
            looked.append(True)
            write_reply(other, some_rounds(5))
        return alone(self, file)

    monkeypatch.setattr(SessionLog, "_alone_with", late)
    write_reply(one, some_rounds(5))
    assert looked
    found = read(path, older=True)
    assert [g.complete for g in found.generations] == [True] * 3
    assert found.problems == ()
    assert not rotated(path, 2).exists()


def test_a_header_as_large_as_a_file_does_not_push_its_own_reply_out(path):
    """With texts on a long chat's header may be larger than a file. Every group then began a file with it."""
    long = dataclasses.replace(REQUEST, messages=(Message("user", "word " * 8_000),))
    log = SessionLog(path, max_bytes=20_000, files=3, content=True)
    log.begin(INFO, long, ENVIRONMENT, CONDITIONS)
    log.prefill(PREFILL)
    seen = some_rounds(150)
    for round_ in seen:
        log.round(round_)
    log.end(finished(seen))
    found = read(path, older=True)
    assert found.problems == ()
    assert found.generations[0].complete


# --------------------------------------------------------------------------------------------------------- crashes


def test_every_torn_end_is_read_up_to_the_last_whole_line(path):
    """A crash may cut the file at any byte."""
    write_reply(SessionLog(path), some_rounds(3))
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for size in range(0, len(data), 7):
        found = read_lines(io.BytesIO(data[:size]))
        whole = data[:size].count(b"\n")
        read_rows = sum(len(g.rounds) + (g.header is not None) + (g.prefill is not None) for g in found.generations)
        torn_is_whole = size + 1 <= len(data) and data[size : size + 1] == b"\n"
        assert read_rows == min(whole + torn_is_whole, len(lines) - 1)
        assert not any(g.complete for g in found.generations) or size >= len(data) - 1
        assert any("torn" in p for p in found.problems) == (data[:size][-1:] not in (b"", b"\n") and not torn_is_whole)


def test_the_next_writer_starts_on_a_new_line(path):
    write_reply(SessionLog(path), some_rounds(3))
    with path.open("ab") as file:
        file.write(b'{"kind":"round","gen"')
    id_ = write_reply(SessionLog(path), some_rounds(3))
    found = read(path)
    assert [g.complete for g in found.generations] == [True, True]
    assert found.generations[1].id == id_
    assert len(found.problems) == 1


def test_a_reply_that_never_ended_does_not_mix_with_the_next(path):
    log = SessionLog(path)
    first = write_reply(log, some_rounds(3), end=False)
    second = write_reply(log, some_rounds(3))
    found = read(path)
    assert [(g.id, g.complete) for g in found.generations] == [(first, False), (second, True)]
    assert [p for p in found.problems if first in p] == list(found.problems)


# ---------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_switches_the_log_off_and_says_so_once(path, monkeypatch, error):
    log = SessionLog(path)
    write_reply(log, some_rounds(3))
    before = path.read_bytes()

    def refuse(*_args, **_kwargs):
        raise OSError(error, "no")

    monkeypatch.setattr(Path, "open", refuse)
    write_reply(log, some_rounds(100))
    assert not log.enabled
    notice = log.take_notice()
    assert notice is not None
    assert "Replies are not affected" in notice.text
    assert ("full" in notice.text) == (error == errno.ENOSPC)
    assert log.take_notice() is None
    monkeypatch.undo()
    write_reply(log, some_rounds(3))
    log.flush()
    assert path.read_bytes() == before


def test_a_disk_that_fills_up_inside_a_group(path, monkeypatch):
    """Half a group is on the disk; the reader leaves out the torn line."""
    log = SessionLog(path)
    write_reply(log, some_rounds(3))
    opened = Path.open

    class Full(io.FileIO):
        def write(self, data):
            super().write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "open", lambda self, mode="r": Full(self, "a") if mode == "ab" else opened(self, mode))
    write_reply(log, some_rounds(100))
    monkeypatch.undo()
    assert not log.enabled
    found = read(path)
    assert [g.complete for g in found.generations] == [True, False]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    log = SessionLog(tmp_path / "file" / "session.jsonl")
    write_reply(log, some_rounds(3))
    assert log.take_notice() is not None


# ---------------------------------------------------------------------------------------------------------- reader


FOREIGN = [
    b"\n",
    b"not json\n",
    b"[1, 2]\n",
    b"null\n",
    b'{"kind":"round"}\n',
    b'{"kind":"round","gen":7,"n":1}\n',
    b'{"kind":"round","gen":"x","n":true}\n',
    b'{"kind":"round","gen":"x","n":-4}\n',
    b'{"kind":"unknown","gen":"x","n":1}\n',
    b'{"kind":"header","gen":"x","n":0,"log":"other","version":1}\n',
    b'{"kind":"round","gen":"x","n":1,"host_ms":NaN}\n',
    b"\xff\xfe\x00\n",
    b"[" * 100_000 + b"\n",
]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_a_log_with_foreign_repeated_and_reordered_lines_is_read_in_full(tmp_path_factory, seed, data):
    path = tmp_path_factory.mktemp("log") / "session.jsonl"
    log = SessionLog(path)
    for _ in range(2):
        write_reply(log, some_rounds(5))
    clean = read(path)
    lines = path.read_bytes().splitlines(keepends=True)
    chance = random.Random(seed)
    lines += chance.sample(lines, data.draw(st.integers(0, len(lines))))
    lines += data.draw(st.lists(st.sampled_from(FOREIGN), max_size=5))
    if data.draw(st.booleans()):
        chance.shuffle(lines)
    found = read_lines(lines)
    by_id = {g.id: g for g in found.generations}
    for expected in clean.generations:
        got = by_id[expected.id]
        assert (got.header, got.rounds, got.footer, got.complete) == (
            expected.header,
            expected.rounds,
            expected.footer,
            True,
        )
        assert check(got) == []
    bad = sum(1 for line in lines if line.strip()) - len(
        {line for line in lines if line.strip() and line not in FOREIGN}
    )
    told = [p for p in found.problems if p.startswith("log, line")]
    assert len(told) >= bad


def test_every_lost_line_is_noticed(path):
    write_reply(SessionLog(path), some_rounds(4))
    lines = path.read_bytes().splitlines(keepends=True)
    for lost in range(len(lines)):
        found = read_lines(lines[:lost] + lines[lost + 1 :])
        (reply,) = found.generations
        assert not reply.complete
        assert found.problems
        assert "missing" in check(reply)[-1]


def test_a_changed_figure_is_noticed(path):
    write_reply(SessionLog(path), some_rounds(4))
    lines = path.read_bytes().splitlines(keepends=True)
    for name, value in (("host_ms", 0.2), ("accepted", 2), ("emitted", 3), ("cut", 1)):
        row = json.loads(lines[3])
        assert row["kind"] == "round"
        changed = [*lines[:3], json.dumps({**row, name: value}).encode() + b"\n", *lines[4:]]
        (reply,) = read_lines(changed).generations
        assert check(reply), name
    (reply,) = read_lines(lines).generations
    assert check(reply) == []


@pytest.mark.parametrize("index", [1, 2, -1])
@pytest.mark.parametrize("value", [None, "x", True, [], {}, 1e999, 1e300, -5, 10**30, 10**400, [10**400]])
def test_no_field_of_any_type_breaks_the_reader(path, index, value):
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().splitlines(keepends=True)
    row = json.loads(lines[index])
    for at in (row, row.get("stats", row)):
        for name in at:
            former, at[name] = at[name], value
            changed = list(lines)
            changed[index] = json.dumps(row).encode() + b"\n"
            at[name] = former
            log_ = read_lines(changed)
            for reply in log_.generations:
                check(reply)
                contradictions(reply)
                recompute(reply)
            list(as_markdown(log_))
            replies_csv(log_.generations, io.StringIO())


DAMAGE = st.sampled_from(
    [None, "x|\n#", True, [], {}, [{}], 1e999, 1e300, -5, 0, 10**30, 10**400, "\ud800", {"a": None}]
)


@settings(max_examples=60)
@given(content=st.booleans(), changes=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), DAMAGE), max_size=6))
def test_no_damage_breaks_a_check_or_an_export(tmp_path_factory, content, changes):
    """Any value anywhere, also deep in a header: a log of a stranger must not end the program."""
    path = tmp_path_factory.mktemp("log") / "session.jsonl"
    write_reply(SessionLog(path, content=content), some_rounds(3))
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]

    def places(row):
        for key in row:
            yield row, key
            if isinstance(row[key], dict):
                yield from places(row[key])

    for line, place, value in changes:
        found = list(places(rows[line % len(rows)]))
        at, key = found[place % len(found)]
        at[key] = copy.deepcopy(value)  # a shared one could come to hold itself
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read(path)
    for reply in log.generations:
        check(reply)
        contradictions(reply)
        tokens_of(reply)
        with contextlib.suppress(ValueError):
            schema.request_from(reply.header or {})
    for kind in ExportKind:
        with contextlib.suppress(KnownError):  # no reply is left
            export_logs([path], kind, path.with_name("out"))


@pytest.mark.parametrize("n", [0, -1])
def test_a_line_with_an_impossible_number_costs_only_itself(path, n):
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().splitlines(keepends=True)
    row = json.dumps({**json.loads(lines[2]), "n": n}).encode() + b"\n"
    found = read_lines([*lines, row])
    assert found.generations[0].complete
    assert len(found.problems) == 1


def test_a_number_too_large_for_a_float_is_no_time(path):
    write_reply(SessionLog(path), some_rounds(2))
    found = read_lines(path.read_bytes().replace(b'"draft_ms":0.1,', b'"draft_ms":1e999,', 1).splitlines(keepends=True))
    (reply,) = found.generations
    assert len(reply.rounds) == 1
    assert "`draft_ms` is out of range" in found.problems[0]
    recompute(reply)


def test_a_newer_version_is_read_named_and_not_judged(path):
    """Its figures were once compared with what they mean in this version."""
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().replace(b'"version":1', b'"version":2,"new":[]').splitlines(keepends=True)
    found = read_lines(lines)
    assert found.generations[0].complete
    assert "version 2" in found.problems[0]
    assert "this program knows 1" in unjudged(found.generations[0])


@pytest.mark.parametrize("version", [b"0", b"-1", b"true", b"1.0", b'"1"', b"null", b"[" * 900 + b"]" * 900])
def test_a_version_that_never_was_is_no_header(path, version):
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().replace(b'"version":1', b'"version":' + version).splitlines(keepends=True)
    found = read_lines(lines)
    assert "of the format, which there is not" in found.problems[0]
    assert not found.generations[0].complete


def test_headers_of_one_reply_that_are_not_alike_are_told(path):
    """A second header that says something else was once a duplicate, or, with another part, no problem at all."""
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().splitlines(keepends=True)
    header = json.loads(lines[0])
    for part in (0, 1):
        other = {**header, "part": part, "request": {**header["request"], "seed": 8}}
        found = read_lines([*lines, json.dumps(other).encode() + b"\n"])
        assert "another header of this reply" in found.problems[0]
        assert not found.generations[0].complete
    assert read_lines([*lines, json.dumps({**header, "part": 1}).encode() + b"\n"]).problems == ()


@pytest.mark.parametrize("kind", ["prefill", "footer", "notice"])
def test_a_second_prefill_or_footer_and_lines_behind_it_are_told(path, kind):
    """With numbers of their own, as a hand could write them. The last footer once won without a word."""
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    row = next((r for r in rows if r["kind"] == kind), {**rows[1], "kind": "notice", "about": "park", "text": "x"})
    found = read_lines([*lines, json.dumps({**row, "n": len(lines)}).encode() + b"\n"])
    assert not found.generations[0].complete
    assert any("a second" in p or "behind its footer" in p for p in found.problems)


@pytest.mark.parametrize("id_", ["x", "", "A" * 12, "0" * 13, "\x1b[2Jabcdef12", "0000\n0000000"])
def test_an_id_that_was_never_drawn_names_no_reply(path, id_):
    """It is printed: a stranger's log could once write to the terminal."""
    id_of = write_reply(SessionLog(path), some_rounds(1))
    row = json.dumps({"kind": "round", "gen": id_, "n": 1})
    found = read_lines([*path.read_bytes().splitlines(keepends=True), row.encode() + b"\n"])
    assert [g.id for g in found.generations] == [id_of]
    assert "belongs to no generation" in found.problems[0]


def test_a_line_without_end_is_left_out_and_fills_no_memory(path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE", 4096)
    write_reply(SessionLog(path), some_rounds(2))
    whole = path.read_bytes()
    path.write_bytes(b"[" + b" " * 3 * 4096 + b"]\n" + whole + b'{"' + b"x" * 5 * 4096)
    found = read(path)
    assert found.generations[0].complete
    assert ["longer than 4096 bytes" in p for p in found.problems] == [True, True]
    with path.open("rb") as data:
        assert max(map(len, lines_of(data))) <= 4096


def test_a_last_line_without_its_end_is_torn_only_when_it_is_no_json(path):
    write_reply(SessionLog(path), some_rounds(2))
    lines = path.read_bytes().splitlines(keepends=True)
    assert read_lines([*lines[:-1], lines[-1].rstrip()]).problems == ()
    assert "duplicate" in read_lines([*lines, lines[2].rstrip()]).problems[0]
    assert "torn" in read_lines([*lines, '{"kind":"é'.encode()[:-1]]).problems[0]


def test_a_footer_of_the_first_release_is_read_and_what_it_lacks_is_not_compared(path):
    """`parked_ms` came later; its absence is no difference."""
    parked = dataclasses.replace(some_round(0, draft_ms=0.0), width=1, drafted=0, accepted=0, emitted=1, parked=True)
    write_reply(SessionLog(path), [parked])
    lines = path.read_bytes().splitlines(keepends=True)
    footer = json.loads(lines[-1])
    del footer["stats"]["parked_ms"]
    (reply,) = read_lines([*lines[:-1], json.dumps(footer).encode() + b"\n"]).generations
    assert reply.complete
    assert unsaid(reply) == ["parked_ms"]
    assert check(reply) == []
    (reply,) = read_lines(lines).generations
    assert unsaid(reply) == []


def test_a_file_that_is_no_log_at_all_does_not_fill_the_memory():
    found = read_lines([b"x\n"] * 10_000)
    assert found.generations == ()
    assert len(found.problems) == MAX_PROBLEMS + 1
    assert "9800 more" in found.problems[-1]


# ---------------------------------------------------------------------------------------------------------- export


def test_csv_has_every_round_in_full_precision(path):
    seen = some_rounds(3)
    log = SessionLog(path)
    id_ = write_reply(log, seen)
    write_reply(log, some_rounds(1), end=False)
    log.flush()
    generations = read(path).generations

    out = io.StringIO()
    assert rounds_csv(generations, out) == 4
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert tuple(rows[0]) == ROUND_COLUMNS
    assert [float(r["verify_ms"]) for r in rows[:3]] == [r.verify_ms for r in seen]
    assert {r["gen"] for r in rows[:3]} == {id_}

    out = io.StringIO()
    assert replies_csv(generations, out) == 1
    (row,) = csv.DictReader(io.StringIO(out.getvalue()))
    assert tuple(row) == REPLY_COLUMNS
    stats = finished(seen).stats
    assert float(row["decode_seconds"]) == stats.decode_seconds
    assert float(row["tokens_per_second"]) == stats.tokens_per_second
    assert (row["model"], row["reason"]) == ("tiny", "eos")


# ----------------------------------------------------------------------------------------------------- environment


def test_environment_of_this_machine():
    here = env.environment()
    assert here.mlx
    assert here.mlx_lm
    assert here.os
    assert here.cpus > 0
    assert here.memory > 2**28
    assert env.conditions().power in ("mains", "battery", "unknown")


@given(last=prefills, token=st.booleans())
def test_prefill_rows_come_back(last, token):
    assert schema.prefill_from(json.loads(json.dumps(schema.prefill_row(last, token)))) == (last, token)
