"""The range client against a hub that misbehaves in every way a real one can."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import LoadCancelled
from engine.hub.connection import Connection, Patience
from engine.hub.errors import FileChanged, HubError, RangeIgnored
from engine.hub.ranges import RangeClient
from engine.hub.repo import RemoteFile, Repo, open_repo
from tests.support.fake_hub import FakeHub, FakeRepo, Fault

DATA = random.Random(0).randbytes(300_000)
SMALL = b'{"hidden_size": 64}'
REPO = "owner/model"
IMPATIENT = Patience(tries=3, first_wait=0.0, longest_wait=0.0, stall=0.3)


@pytest.fixture
def hub(empty_hub: FakeHub) -> FakeHub:
    empty_hub.repos = {REPO: FakeRepo("c0ffee" + 34 * "0", {"model.safetensors": DATA, "config.json": SMALL})}
    return empty_hub


def client(hub: FakeHub, token: str | None = None, patience: Patience = IMPATIENT) -> RangeClient:
    return RangeClient(Connection(hub.endpoint, token, patience))


def opened(of: RangeClient, name: str = "model.safetensors") -> RemoteFile:
    return of.open(open_repo(of.connection, REPO), name)


def test_a_repo_says_its_commit_sizes_and_hashes(hub: FakeHub) -> None:
    repo = open_repo(client(hub).connection, REPO)
    assert repo.revision == "c0ffee" + 34 * "0"
    assert repo.files["model.safetensors"].size == len(DATA)
    assert len(repo.files["model.safetensors"].sha256) == 64
    assert (repo.files["config.json"].size, repo.files["config.json"].sha256) == (len(SMALL), "")


@pytest.mark.parametrize(("start", "end"), [(0, None), (0, 8), (8, 5000), (299_999, None), (7, 7)])
def test_any_range_of_a_large_and_a_small_file(start: int, end: int | None, hub: FakeHub) -> None:
    of = client(hub)
    assert of.read(opened(of), start, end) == DATA[start:end]
    assert of.fetched == len(DATA[start:end])
    small = opened(of, "config.json")
    assert of.read(small) == SMALL


def test_the_token_goes_to_the_hub_and_never_to_the_storage(hub: FakeHub) -> None:
    of = client(hub, "hf_good")
    of.read(opened(of), 0, 100)
    assert {s.token for s in hub.seen if s.origin == "hub"} == {"hf_good"}
    assert {s.token for s in hub.seen if s.origin == "storage"} == {""}


def test_environment_names_hub_and_token(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    of = RangeClient(Connection(patience=IMPATIENT))
    assert of.read(opened(of), 5, 50) == DATA[5:50]
    assert {s.token for s in hub.seen if s.origin == "hub"} == {"hf_good"}


def test_offline_mode_asks_nobody(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    of = client(hub)
    file = opened(of)
    hub.seen = []
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for ask in (
        lambda: open_repo(of.connection, REPO),
        lambda: of.open(Repo(REPO, "main", {}), "x"),
        lambda: of.read(file),
    ):
        with pytest.raises(HubError, match="offline mode is on"):
            ask()
    assert hub.seen == []


STORAGE = "GET .*safetensors$"


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(STORAGE, cut=1000)],
        [Fault(STORAGE, cut=1000), Fault(STORAGE, cut=1), Fault(STORAGE, cut=100_000)],
        [Fault(STORAGE, status=503), Fault(STORAGE, status=500)],
        [Fault(STORAGE, status=429, headers={"Retry-After": "60"})],
        [Fault(STORAGE, status=429, headers={"RateLimit": '"resolvers";r=0;t=55'})],
        [Fault(STORAGE, status=403)],
        [Fault(STORAGE, stall=2000)],
        [Fault("HEAD .*safetensors", status=502), Fault(STORAGE, cut=0)],
        [Fault("GET /api", status=504)],
    ],
    ids=lambda faults: " then ".join(f"{f.match} {f.status or ''} {f.cut} {f.stall}" for f in faults),
)
def test_what_passes_is_waited_out_and_no_byte_is_fetched_twice(faults: list[Fault], hub: FakeHub) -> None:
    """Truncated bodies, stalls, 5xx, 429, an expired signature: the transfer goes on where it broke."""
    hub.faults = faults
    of = client(hub)
    assert of.read(opened(of), 100) == DATA[100:]
    assert all(fault.times == 0 for fault in faults), "or the fault was not met"
    assert of.fetched == len(DATA) - 100
    hub.expired = set()


@pytest.mark.parametrize(
    ("faults", "kind", "words"),
    [
        ([Fault(STORAGE, 99, status=500)], HubError, "fault of its own"),
        ([Fault(STORAGE, 99, status=429)], HubError, "slow down"),
        ([Fault(STORAGE, 99, status=403)], HubError, "no access to owner/model"),
        ([Fault(STORAGE, 99, status=401)], HubError, "needs a token"),
        ([Fault(STORAGE, 99, status=404)], HubError, "does not have what was asked for"),
        ([Fault(STORAGE, 99, cut=0)], HubError, "does not answer"),
        ([Fault(STORAGE, 99, stall=0)], HubError, "does not answer"),
        ([Fault(STORAGE, 99, status=416)], HubError, "refuses bytes"),
        ([Fault(STORAGE, 99, status=418)], HubError, "HTTP 418"),
        ([Fault(STORAGE, 99, whole=True)], RangeIgnored, "ignores byte ranges"),
        ([Fault(STORAGE, 99, circle=True)], HubError, "in circles"),
        ([Fault(STORAGE, 99, shift=1)], HubError, "other bytes"),
        ([Fault(STORAGE, 99, more=3)], HubError, "more of model.safetensors"),
        ([Fault(STORAGE, cut=10), Fault(STORAGE, etag="another")], FileChanged, "changed on the hub"),
        ([Fault(STORAGE, cut=10), Fault("HEAD", etag="another")], FileChanged, "changed on the hub"),
        ([Fault(STORAGE, total=300_001)], FileChanged, "it has 300001 bytes, it had 300000"),
        ([Fault("HEAD .*safetensors", 99, status=500)], HubError, "fault of its own"),
    ],
)
def test_what_stays_ends_in_words(faults: list[Fault], kind: type[HubError], words: str, hub: FakeHub) -> None:
    of = client(hub)
    if not faults[0].match.startswith("HEAD"):
        file = opened(of)
        hub.faults = faults
        with pytest.raises(kind, match=words) as caught:
            of.read(file, 0, 200_000)
    else:
        hub.faults = faults
        with pytest.raises(kind, match=words) as caught:
            opened(of)
    assert caught.value.todo
    assert "signature" not in str(caught.value) + caught.value.detail, "signed addresses are secrets"


def test_a_whole_file_needs_no_ranges(hub: FakeHub) -> None:
    hub.faults = [Fault(STORAGE, whole=True)]
    of = client(hub)
    assert of.read(opened(of)) == DATA


def test_a_file_that_shrank_is_changed_not_out_of_range(hub: FakeHub) -> None:
    of = client(hub)
    file = opened(of)
    hub.repos[REPO].files["model.safetensors"] = DATA[:1000]
    with pytest.raises(FileChanged, match=r"model.safetensors was changed"):
        of.read(file, 5000, 6000)


def test_an_expired_location_is_asked_for_anew(hub: FakeHub) -> None:
    of = client(hub)
    file = opened(of)
    hub.expired = {hub.signatures}
    assert of.read(file, 0, 10) == DATA[:10]


@pytest.mark.parametrize(
    ("prepare", "token", "words"),
    [
        (lambda hub: hub.repos.clear(), None, "needs a token, or is not there"),
        (lambda hub: hub.repos.clear(), "hf_good", "does not have what was asked for"),
        (lambda hub: None, "hf_wrong", "does not accept the token"),
        (lambda hub: setattr(hub.repos[REPO], "private", True), None, "needs a token, or is not there"),
        (lambda hub: setattr(hub.repos[REPO], "gated", True), None, "needs a token"),
        (lambda hub: setattr(hub.repos[REPO], "gated", True), "hf_good", "accept its licence"),
        (lambda hub: hub.repos[REPO].files.pop("model.safetensors"), None, "owner/model has no file model.safetensors"),
    ],
)
def test_who_may_not_is_told_what_to_do(prepare: object, token: str | None, words: str, hub: FakeHub) -> None:
    prepare(hub)  # type: ignore[operator]
    with pytest.raises(HubError, match=words):
        opened(client(hub, token))


def test_a_revision_that_is_not_there_is_named(hub: FakeHub) -> None:
    with pytest.raises(HubError, match="owner/model has no such revision"):
        open_repo(client(hub).connection, REPO, "v9")
    assert open_repo(client(hub).connection, REPO, hub.repos[REPO].commit).revision == hub.repos[REPO].commit


def test_a_licensed_token_opens_a_gated_repo(hub: FakeHub) -> None:
    hub.repos[REPO].gated = True
    hub.tokens.add("hf_licensed")
    of = client(hub, "hf_licensed")
    assert of.read(opened(of), 0, 10) == DATA[:10]


def test_a_name_that_is_none_and_a_host_that_is_not_there(hub: FakeHub) -> None:
    with pytest.raises(HubError, match="no name of a repo"):
        open_repo(client(hub).connection, "a/b/c")
    nowhere = Connection("http://127.0.0.1:9", None, IMPATIENT)
    with pytest.raises(HubError, match="does not answer") as caught:
        open_repo(nowhere, REPO)
    assert "proxy" in caught.value.todo


def test_stop_ends_a_transfer_and_a_wait(hub: FakeHub) -> None:
    of = client(hub)
    pieces = of.stream(opened(of))
    next(pieces)
    of.connection.stop.set()
    with pytest.raises(LoadCancelled):
        list(pieces)
    stop = threading.Event()
    waiting = RangeClient(Connection(hub.endpoint, None, Patience(first_wait=3600, longest_wait=3600), stop))
    file = opened(waiting)
    hub.faults = [Fault(STORAGE, status=500)]
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    with pytest.raises(LoadCancelled):
        waiting.read(file)
    timer.join()


def test_waits_double_up_to_a_bound_and_follow_the_server() -> None:
    patience = Patience(first_wait=1.0, longest_wait=8.0)
    waits = [patience.wait(n, None) for n in range(1, 8)]
    assert all(0.75 * full <= wait <= full for wait, full in zip(waits, (1, 2, 4, 8, 8, 8, 8), strict=True))
    assert patience.wait(1, 5.0) == 5.0
    assert patience.wait(1, 3600.0) == 8.0


@given(a=st.integers(0, 5000), b=st.integers(0, 5000), cuts=st.lists(st.integers(0, 3000), max_size=4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_cut_anywhere_comes_whole(a: int, b: int, cuts: list[int], hub: FakeHub) -> None:
    """Any bytes, with bodies that end early anywhere, each time with at least one new byte."""
    start, end = sorted((a, b))
    hub.faults = [Fault(STORAGE, cut=max(cut, 1)) for cut in cuts]
    of = client(hub)
    assert of.read(opened(of), start, end) == DATA[start:end]
    assert of.fetched == end - start
