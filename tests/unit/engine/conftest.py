"""Fixtures: tiny random pairs loaded once per session, in the compute policy that exercises packed weights; a hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from engine.loading import Pair
from tests.support.fake_hub import FakeHub, fake_hub
from tests.support.rig import load_tiny
from tests.support.tiny_pair import write_head, write_target


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Verdicts of this run only: a verdict of an earlier run must not decide a test."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(target, head): 4-bit target, dense stand-alone head."""
    folder = tmp_path_factory.mktemp("tiny")
    return write_target(folder / "target"), write_head(folder / "head")


@pytest.fixture(scope="session")
def pair(tiny_folders: tuple[Path, Path]) -> Pair:
    """The tiny pair, packed weights in float32 activations, drafter quantized."""
    # The policy is of this load alone: other tests must not depend on which of them ran before.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_COMPUTE", "float32")
        return load_tiny(*tiny_folders)


@pytest.fixture(scope="module")
def hub_server() -> Iterator[FakeHub]:
    with fake_hub() as served:
        yield served
    huggingface_hub.close_session()


@pytest.fixture
def empty_hub(hub_server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    """Nothing published, nothing in the cache; this computer's own settings for a hub do not count."""
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    hub_server.reset()
    return hub_server
