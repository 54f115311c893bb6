"""The catalogue against the hub, and the pairs that are on this computer already."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from engine.cli.main import main
from engine.errors import KnownError
from engine.hub import catalogue as catalogues
from engine.hub.cache import RepoCache
from engine.hub.catalogue import catalogue
from engine.hub.check import check
from engine.hub.connection import Connection, Patience
from engine.hub.download import download
from engine.hub.errors import HubError
from engine.hub.local import find_local
from engine.hub.types import CataloguePair
from tests.support.fake_hub import FakeHub, Fault
from tests.support.tiny_pair import Shape, write_head, write_target

SHAPE = Shape(hidden_size=128, mlp=256)
IMPATIENT = Patience(tries=2, first_wait=0.0, longest_wait=0.0, stall=0.3)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("models")
    write_target(base / "target", SHAPE, bits=4)
    write_head(base / "head", SHAPE)
    write_head(base / "other", replace(SHAPE, hidden_size=64))
    return base


@pytest.fixture
def hub(empty_hub: FakeHub, folders: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.setenv("HF_ENDPOINT", empty_hub.endpoint)
    for name in ("target", "head", "other"):
        empty_hub.add(f"owner/{name}", folders / name)
    return empty_hub


def entry(hub: FakeHub, **changes: object) -> CataloguePair:
    size = sum(len(data) for data in hub.repos["owner/target"].files.values())
    right = CataloguePair(
        name="Tiny", target="owner/target", head="owner/head", original="", quantization="4-bit group 32", bytes=size,
        head_bytes=0, context=2048, acceptance=0.0, acceptance_block=0, licence="apache-2.0", source="", checked="",
    )  # fmt: skip
    return replace(right, **changes)  # type: ignore[arg-type]


def connection(hub: FakeHub) -> Connection:
    return Connection(hub.endpoint, None, IMPATIENT)


def test_the_shipped_catalogue_reads_and_is_honest() -> None:
    """Every entry has its facts' source; nobody claims a check that did not happen."""
    pairs = catalogue()
    assert len({pair.target for pair in pairs}) == len(pairs) >= 8
    for pair in pairs:
        assert pair.source
        assert pair.head or pair.original, "there must be a way to a head"
        assert (pair.acceptance == 0) == (pair.acceptance_block == 0)
        assert pair.checked == ""


@pytest.mark.parametrize("text", ["not toml [", "other = 1", '[[pair]]\nname = "x"'])
def test_a_damaged_catalogue_is_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "catalogue.toml").write_text(text)
    with pytest.raises(KnownError, match="cannot be read"):
        catalogue(tmp_path / "catalogue.toml")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bytes", '"14 GB"'), ("bytes", "-1"), ("bytes", "true"), ("context", "1.5"), ("acceptance", '"high"'),
        ("acceptance", "66.0"), ("acceptance", "nan"), ("target", '"no-owner"'), ("target", '""'), ("head", '"a/b/c"'),
        ("original", '""'), ("checked", '"yes"'), ("name", "3"), ("surplus", "1"),
    ],
)  # fmt: skip
def test_a_malformed_entry_is_named(field: str, value: str, tmp_path: Path) -> None:
    """Was: read as it stood, to fail in a traceback where it was shown; and "yes" passed for a day of comparison."""
    good = {
        "name": '"x"', "target": '"a/b"', "head": '""', "original": '"a/c"', "quantization": '"4-bit"', "bytes": "1",
        "head_bytes": "1", "context": "1", "acceptance": "0.5", "acceptance_block": "2", "licence": '"mit"',
        "source": '"y"', "checked": '"2026-11-29"',
    }  # fmt: skip
    file = tmp_path / "catalogue.toml"

    def write(entry: dict[str, str]) -> None:
        file.write_text("[[pair]]\n" + "\n".join(f"{key} = {text}" for key, text in entry.items()))

    write(good)
    assert catalogue(file)[0].acceptance == 0.5
    write({**good, field: value})
    with pytest.raises(KnownError, match="cannot be read") as caught:
        catalogue(file)
    assert "entry 1" in caught.value.detail or "isoformat" in caught.value.detail


def test_an_entry_that_holds_has_no_problems(hub: FakeHub) -> None:
    found = check(connection(hub), entry(hub))
    assert found.problems == ()
    assert (found.context, found.licence, found.quantization) == (2048, "apache-2.0", "4-bit group 32")
    weights = len(hub.repos["owner/target"].files["model.safetensors"])
    assert hub.sent < weights / 2, "headers only"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quantization": "8-bit group 64"}, "quantization: 4-bit group 32, the entry says 8-bit"),
        ({"context": 0}, "context: 2048, the entry says nothing"),
        ({"licence": "mit"}, "licence: apache-2.0, the entry says mit"),
        ({"bytes": 5}, "the entry says 5"),
        ({"target": "owner/gone"}, "target: owner/gone needs a token, or is not there"),
        ({"head": "owner/target"}, "head: owner/target holds no MTP head"),
        ({"head": "", "original": "owner/target"}, "original: owner/target holds no MTP head"),
        ({"target": "owner/head"}, "target: it is a"),
    ],
)
def test_an_entry_that_is_wrong_says_where(changes: dict[str, object], words: str, hub: FakeHub) -> None:
    problems = check(connection(hub), entry(hub, **changes)).problems
    assert any(words in problem for problem in problems), problems


def test_without_a_way_to_the_hub_nothing_counts_as_checked(hub: FakeHub) -> None:
    hub.faults = [Fault("", times=99, status=503)]
    with pytest.raises(HubError):
        check(connection(hub), entry(hub))


def test_the_command_lists_checks_and_fails(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 when an entry differs, 0 when all hold."""
    pairs = (entry(hub), entry(hub, name="Wrong", context=1))
    monkeypatch.setattr(catalogues, "catalogue", lambda: pairs)
    assert main(["models", "--check"]) == 1
    said = capsys.readouterr().out
    assert "Tiny: as the hub says" in said
    assert "Wrong: differs\n  context: 2048, the entry says 1" in said
    monkeypatch.setattr(catalogues, "catalogue", lambda: pairs[:1])
    assert main(["models", "--check"]) == 0
    assert main(["models", "owner/target"]) == 0
    assert "fits: needs about" in capsys.readouterr().out
    download(connection(hub), "owner/target")
    download(connection(hub), "owner/head")
    assert main(["models"]) == 0
    said = capsys.readouterr().out
    assert "owner/target: " in said
    assert "head owner/head" in said
    assert "never compared with the hub" in said


def test_pairs_in_the_cache_are_found_and_put_together(hub: FakeHub) -> None:
    """A head of other shapes is not offered; a target without a head is, at classic speed."""
    for repo in ("owner/target", "owner/other"):
        download(connection(hub), repo)
    (alone,) = find_local().models
    assert (alone.place, alone.head, alone.has_head, alone.context) == ("owner/target", "", False, 2048)
    download(connection(hub), "owner/head")
    (pair,) = find_local().models
    assert (pair.head, pair.has_head, pair.quantization) == ("owner/head", True, "4-bit group 32")


def test_the_catalogues_head_comes_first(hub: FakeHub, folders: Path) -> None:
    hub.add("owner/a-head", folders / "head")
    for repo in ("owner/target", "owner/a-head", "owner/head"):
        download(connection(hub), repo)
    assert find_local().models[0].head == "owner/a-head"
    assert find_local([entry(hub)]).models[0].head == "owner/head"


def test_folders_of_the_user_count_as_well(hub: FakeHub, folders: Path, tmp_path: Path) -> None:
    found = find_local(folders=[folders / "target", folders / "head", tmp_path / "gone"])
    assert [(m.place, m.head) for m in found.models] == [(str(folders / "target"), str(folders / "head"))]
    assert found.unusable == ()


def test_a_model_with_a_missing_shard_is_named_and_not_offered(hub: FakeHub, folders: Path, tmp_path: Path) -> None:
    """Nothing that cannot be loaded is offered, and nothing vanishes silently."""
    broken = tmp_path / "broken"
    shutil.copytree(folders / "target", broken)
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:-10])
    found = find_local(folders=[broken])
    assert found.models == ()
    assert (found.unusable[0].place, "damaged" in found.unusable[0].reason) == (str(broken), True)


@pytest.mark.parametrize("key", ["bits", "max_position_embeddings"])
def test_one_garbled_model_does_not_hide_the_others(key: str, hub: FakeHub, folders: Path, tmp_path: Path) -> None:
    """One config.json with a null in it ended the whole list in a traceback."""
    garbled = shutil.copytree(folders / "target", tmp_path / "garbled")
    config = json.loads((garbled / "config.json").read_text())
    (config["quantization"] if key == "bits" else config["text_config"])[key] = None
    (garbled / "config.json").write_text(json.dumps(config))
    found = find_local(folders=[garbled, folders / "target"])
    assert [m.place for m in found.models] == [str(folders / "target")]
    assert (found.unusable[0].place, "cannot be read" in found.unusable[0].reason) == (str(garbled), True)


def test_a_download_that_is_half_there_is_not_offered(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.faults = [Fault("GET .*safetensors$", cut=100), Fault("GET .*safetensors$", times=99, status=503)]
    with pytest.raises(HubError):
        download(connection(hub), "owner/target")
    assert RepoCache(Path(huggingface_hub.constants.HF_HUB_CACHE), "owner/target").parts()
    assert find_local().models == ()
