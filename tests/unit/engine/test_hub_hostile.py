"""Repos that lie, settings that cannot be, disks that refuse: each ends in a sentence, none in a model that is not."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from engine.checkpoint.folder import name_of, open_folder
from engine.checkpoint.locate import locate
from engine.checkpoint.safetensors_header import parse_header
from engine.cli.main import main
from engine.errors import CheckpointError
from engine.hub import cache as caches
from engine.hub import plan as plans
from engine.hub.cache import RepoCache
from engine.hub.connection import Connection, Patience
from engine.hub.download import discard, download
from engine.hub.errors import DiskFull, HubError
from engine.hub.headers import inspect_repo
from engine.hub.hub import Hub
from engine.hub.local import find_local
from engine.hub.types import DownloadProgress, Step
from tests.support.fake_hub import FakeHub, FakeRepo, Fault, sha256
from tests.support.tiny_pair import Shape, write_target

REPO = "owner/model"
COMMIT = "c0ffee" + 34 * "0"
SHARDS = tuple(f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
FILES = {"config.json": b'{"model_type": "qwen3_5"}', SHARDS[0]: 3000 * b"a", SHARDS[1]: 3000 * b"b"}
IMPATIENT = Patience(tries=2, first_wait=0.0, longest_wait=0.0, stall=30.0)


@pytest.fixture
def hub(empty_hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setattr(plans, "_RESERVE", 0)
    empty_hub.repos = {REPO: FakeRepo(COMMIT, dict(FILES))}
    huggingface_hub.close_session()  # it remembers the proxies of an earlier test
    yield empty_hub
    huggingface_hub.close_session()


def connection(hub: FakeHub, token: str | None = None) -> Connection:
    return Connection(hub.endpoint, token, IMPATIENT)


def place() -> RepoCache:
    return RepoCache(caches.cache_folder(), REPO)


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:80", "ftp://hub", "not a hub", "http://[::1", "https://", "http://a b"]
)
def test_an_endpoint_that_is_none_is_refused_at_once(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: asked six times over 13 s, then "does not answer"; the one with a bracket ended in a traceback."""
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(HubError, match="HF_ENDPOINT is no address of a hub") as caught:
        Connection()
    assert "https://" in caught.value.todo


def test_an_endpoint_may_end_in_a_slash_or_have_a_path(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f" {hub.endpoint}// ")
    assert Connection().endpoint == hub.endpoint
    assert Connection("https://mirror/hub/").endpoint == "https://mirror/hub"
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert Connection().endpoint.startswith("https://"), "empty is not set"


def test_a_password_in_an_endpoint_is_not_shown() -> None:
    """Was: in the sentence about a hub that does not answer."""
    with pytest.raises(HubError, match=r"127\.0\.0\.1:9 does not answer") as caught:
        plans.plan(Connection("http://me:secret@127.0.0.1:9", None, IMPATIENT), REPO)
    assert "secret" not in f"{caught.value} {caught.value.detail}"
    with pytest.raises(HubError) as caught:
        Connection("ftp://me:secret@host")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5h://127.0.0.1:9"),
        ("HTTP_PROXY", "gopher://127.0.0.1"),
        ("HTTP_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/nowhere/at/all.pem"),
    ],
)
def test_a_proxy_or_certificate_that_cannot_be_used_is_named(
    name: str, value: str, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: a traceback from the depths of the HTTP client, ImportError for SOCKS."""
    monkeypatch.setenv(name, value)
    with pytest.raises(HubError, match="No connection can be set up") as caught:
        download(connection(hub), REPO)
    assert name in caught.value.todo
    assert hub.seen == []


@pytest.mark.parametrize("token", ["hf_é", "hf_a\nb", "hf_\x00"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token: str, hub: FakeHub) -> None:
    """Was: UnicodeEncodeError with the token in it."""
    with pytest.raises(HubError, match="characters that no token has") as caught:
        download(connection(hub, token), REPO)
    assert token not in f"{caught.value} {caught.value.detail}"
    assert hub.seen == []


def test_a_redirect_to_another_host_gets_no_token(hub: FakeHub) -> None:
    """Neither the storage nor where it may point to. Only the hub's own origin does."""
    hub.repos[REPO].gated, hub.tokens = True, {"hf_licensed"}
    hub.faults = [Fault(f"GET .*{SHARDS[0]}", status=302, headers={"Location": f"{hub.storage}/elsewhere?signature=1"})]
    download(connection(hub, "hf_licensed"), REPO)
    assert [s for s in hub.seen if s.path.startswith("/elsewhere")]
    assert {s.token for s in hub.seen if s.origin == "storage"} == {""}
    assert {s.token for s in hub.seen if s.origin == "hub"} == {"hf_licensed"}


def test_trouble_before_the_first_byte_is_told(hub: FakeHub) -> None:
    """Was: up to 15 s of silence while the hub refused to say what a repo holds."""
    hub.faults = [Fault("GET /api/models", times=1, status=503)]
    seen: list[DownloadProgress] = []
    download(connection(hub), REPO, progress=seen.append)
    assert (seen[1].step, seen[1].trouble) == (
        Step.LOOKING,
        "The hub has a fault of its own (HTTP 503). Trying again in 1 s.",
    )


def test_a_repo_that_lacks_its_own_shards_is_no_model(hub: FakeHub) -> None:
    """Was: fetched, and called whole, so that loading asked for one more download of it, for ever."""
    index = {"weight_map": {"a": SHARDS[0], "b": SHARDS[1], "c": "model-00003-of-00003.safetensors"}}
    hub.repos[REPO].files["model.safetensors.index.json"] = json.dumps(index).encode()
    hub.repos[REPO].files[SHARDS[1]] = bytes(plans.SMALL + 1)
    with pytest.raises(HubError, match=r"its index names 'model-00003-of-00003\.safetensors'"):
        download(connection(hub), REPO)
    assert not [s for s in hub.seen if s.path.endswith(SHARDS[1])], "before the large files are fetched"
    assert place().commit() is None
    with pytest.raises(HubError, match="is not whole on the hub"):
        inspect_repo(connection(hub), REPO)
    del index["weight_map"]["c"]
    hub.repos[REPO].files["model.safetensors.index.json"] = json.dumps(index).encode()
    assert download(connection(hub), REPO).files == 4


def test_an_index_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    """Was: the file it named was opened, wherever it lay."""
    (tmp_path / "config.json").write_text("{}")
    for name in ("../../other/model.safetensors", "/etc/passwd"):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(CheckpointError, match="names a file outside of its folder"):
            open_folder(tmp_path)


@pytest.mark.parametrize(
    ("shape", "offsets"), [([-2, -3], [0, 24]), ([6.5], [0, 24]), ([True, 6], [0, 24]), ([6], [0.2, 24.9])]
)
def test_a_header_counts_in_whole_numbers_from_zero(shape: list[object], offsets: list[object]) -> None:
    """Was: two negative sizes made a shape of the right product, and fractions were cut off."""
    raw = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}).encode()
    with pytest.raises(CheckpointError, match="the entry of tensor 'a' cannot be read"):
        parse_header(raw, Path("model.safetensors"), 100, 124)


@pytest.mark.parametrize("name", ["a\x1b]0;title\x07.json", "line\nbreak", "x" * 241])
def test_names_that_no_disk_should_hold_are_refused(name: str, hub: FakeHub) -> None:
    """Was: control characters reached the terminal; a long name was called a fault of the disk."""
    hub.repos[REPO].files[name] = b"{}"
    with pytest.raises(HubError, match="a name that no disk should hold") as caught:
        download(connection(hub), REPO)
    assert caught.value.what.isprintable()
    assert not place().folder.exists()


def test_a_file_that_is_also_a_folder_is_the_repos_fault(hub: FakeHub) -> None:
    """Was: "the cache cannot be written"."""
    hub.repos[REPO].files |= {"a": b"1", "a/b": b"2"}
    with pytest.raises(HubError, match="lists a as a file and as the folder of a/b"):
        download(connection(hub), REPO)


def test_a_licence_that_would_paint_the_terminal_is_not_shown(hub: FakeHub) -> None:
    hub.repos[REPO].licence = "mit\x1b[2J"
    assert download(connection(hub), REPO).licence == ""


def refuse_locks(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(path: Path, timeout: float | None = None) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("huggingface_hub.utils.WeakFileLock", refuse)


def test_a_disk_without_room_for_a_lock_is_a_full_disk(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: "the output cannot be written" in the terminal, "Pacenote made a mistake" in the window."""
    refuse_locks(monkeypatch, errno.ENOSPC)
    with pytest.raises(DiskFull):
        download(connection(hub), REPO)


def test_discard_on_a_disk_that_cannot_be_written_says_so(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: a traceback."""
    place().prepare()
    place().part(sha256(FILES[SHARDS[0]])).write_bytes(b"a")
    refuse_locks(monkeypatch, errno.EROFS)
    with pytest.raises(HubError, match="cannot be written"):
        discard(REPO)


def test_what_is_whole_needs_no_writing(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: a whole model on a read-only disk was "kept; going on fetches only the rest"."""
    first = download(connection(hub), REPO)

    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    again = download(connection(hub), REPO)
    assert (again.folder, again.fetched) == (first.folder, 0)


def test_a_file_that_was_cut_since_is_fetched_again(hub: FakeHub) -> None:
    """A branch and a link say that it is whole; its size says that it is not."""
    folder = download(connection(hub), REPO).folder
    (folder / SHARDS[0]).resolve().write_bytes(b"a")
    assert download(connection(hub), REPO).fetched == len(FILES[SHARDS[0]])
    assert (folder / SHARDS[0]).read_bytes() == FILES[SHARDS[0]]


def test_a_branch_that_cannot_be_read_is_no_model_and_no_crash(hub: FakeHub) -> None:
    """Was: UnicodeDecodeError, and no model was listed at all. Half a part that goes meanwhile is no crash either."""
    folder = download(connection(hub), REPO).folder
    other = RepoCache(caches.cache_folder(), "owner/other")
    for content in (b"\xff\xfe\x00", b"../../..", b""):
        other.set_ref("main", "x")
        (other.folder / "refs" / "main").write_bytes(content)
        assert other.commit() is None
        assert [broken.place for broken in find_local().unusable] == [REPO]
    assert folder.is_dir()


def test_two_that_set_one_branch_at_once_do_not_trip(hub: FakeHub) -> None:
    """Was: both wrote one temporary file, and the slower one failed to move it."""
    place().prepare()
    start, failed = threading.Barrier(4), []

    def many() -> None:
        start.wait()
        for _ in range(50):
            try:
                place().set_ref("main", COMMIT)
            except HubError as error:
                failed.append(error)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [path.name for path in (place().folder / "refs").iterdir()] == ["main"]
    assert stat.S_IMODE((place().folder / "refs" / "main").stat().st_mode) & 0o444 == 0o444, "others read it too"


def test_a_revision_that_is_not_main_is_used_by_its_folder(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Was: "use it: --model owner/model", which then was not found: a name stands for the main branch."""
    hub.add(REPO, write_target(tmp_path / "target", Shape(), bits=4))
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    assert main(["download", REPO, "--revision", COMMIT]) == 0
    used = capsys.readouterr().out.split("--model ")[1].strip()
    assert locate(used)[0] == place().snapshot(COMMIT).resolve()
    assert main(["download", REPO]) == 0
    assert f"--model {REPO}\n" in capsys.readouterr().out


def test_a_cached_model_is_called_by_its_repo(hub: FakeHub) -> None:
    """Was: "c0ffee00... is incomplete", the commit that the cache's folder is named after."""
    folder = download(connection(hub), REPO).folder
    assert name_of(folder) == REPO
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match="owner/model is not a model folder"):
        open_folder(folder)


def test_what_to_type_is_in_the_sentence() -> None:
    with pytest.raises(CheckpointError) as caught:
        locate("owner/never-seen")
    assert "pacenote download owner/never-seen" in caught.value.todo


def test_a_model_that_this_program_cannot_run_is_told_before_it_is_fetched(hub: FakeHub, tmp_path: Path) -> None:
    """Was: fetched whole by the window, after which its line was gone without a word."""
    hub.repos[REPO].files["config.json"] = b'{"model_type": "llama"}'
    with pytest.raises(HubError, match="owner/model is a llama model") as caught:
        Hub(tmp_path / "heads", endpoint=hub.endpoint).download(REPO, threading.Event(), lambda step: None)
    assert "Qwen3.5 family" in caught.value.todo
    assert not [s for s in hub.seen if s.origin == "storage"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("llama", "note      it is a llama model; Pacenote runs the Qwen3.5 family only"),
        ("qwen3_5_mtp", f"use it    pacenote chat --model MODEL --drafter {REPO}"),
        ("qwen3_5", f"use it    pacenote chat --model {REPO}"),
        ("damaged", "note      Pacenote cannot use it: model.safetensors is damaged: its header is not JSON."),
    ],
)
def test_the_command_says_what_can_be_done_with_what_it_fetched(
    kind: str,
    words: str,
    hub: FakeHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Was: "pacenote chat --model" for whatever it was."""
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    published = hub.add(REPO, write_target(tmp_path / "target", Shape(), bits=4))
    if kind == "damaged":
        published.files["model.safetensors"] = b"\x02" + bytes(7) + b"[["
    else:
        published.files["config.json"] = json.dumps({"model_type": kind}).encode()
    assert main(["download", REPO]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == words


def test_one_broken_model_does_not_end_the_list(
    hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Was: the command stopped at the first model of which nobody knows whether it fits, catalogue and all."""
    folder = write_target(tmp_path / "target", Shape(), bits=4)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["linear_num_key_heads"] = "many"
    (folder / "config.json").write_text(json.dumps(config))
    hub.add(REPO, folder)
    download(connection(hub), REPO)
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "cannot be used: A number in the config.json of owner/model cannot be read" in said
    assert "Catalogue" in said
    monkeypatch.setattr("engine.hub.catalogue.FILE", tmp_path / "nowhere.toml")
    assert main(["models"]) == 1
    told = capsys.readouterr()
    assert "owner/model" in told.out, "what is here does not hang on the catalogue"
    assert "cannot be read" in told.err


@pytest.mark.parametrize("tokens", ["0", "-5", "many"])
def test_a_context_is_a_number_of_tokens(tokens: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Was: "needs about 756 KiB at -5 tokens"."""
    with pytest.raises(SystemExit):
        main(["models", f"--context={tokens}"])
    assert "--context" in capsys.readouterr().err
