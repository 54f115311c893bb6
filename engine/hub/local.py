"""Pairs that are on this computer already: in the shared cache, or in folders the user named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.inventory import Unfit, check_tensors
from engine.checkpoint.kind import MODEL_TYPES, find_prefix, is_standalone
from engine.errors import CheckpointError
from engine.hub.cache import RepoCache, cache_folder, size_of
from engine.hub.need import head_tensors
from engine.hub.types import Begun, CataloguePair, Found, LocalModel, Unusable
from engine.quantize import Scheme


def find_local(pairs: Iterable[CataloguePair] = (), folders: Sequence[Path] = (), cache: Path | None = None) -> Found:
    """Look at the cache and at folders. Headers are read, no weight is.

    Args:
        pairs: the catalogue; where a target and its head are both here, they are put together as it says.
        folders: models and heads outside the cache.
    """
    opened: dict[str, Checkpoint] = {}
    unusable: list[Unusable] = []
    for place, folder in (*_cached(cache or cache_folder()), *((str(f), f) for f in folders)):
        try:
            checkpoint = open_folder(folder)
        except CheckpointError as error:
            if _of_the_family(folder):
                unusable.append(Unusable(place, error.what))
            continue
        opened[place] = checkpoint
    heads = {place: c for place, c in opened.items() if is_standalone(c)}
    named = {pair.target: pair.head for pair in pairs if pair.head}
    models: list[LocalModel] = []
    for place, checkpoint in opened.items():
        if place in heads or checkpoint.model_type not in MODEL_TYPES:
            continue
        try:
            models.append(_model(place, checkpoint, heads, named.get(place, "")))
        except (TypeError, ValueError, ArithmeticError) as error:
            unusable.append(Unusable(place, f"A number in its config.json cannot be read: {error}."))
    return Found(tuple(models), tuple(unusable), tuple(_begun(cache or cache_folder())))


def _cached(root: Path) -> Iterator[tuple[str, Path]]:
    """(repo id, folder of its main branch) of what a cache holds."""
    for folder in sorted(root.glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        place = RepoCache(root, repo)
        commit = place.commit()
        if commit is not None and (snapshot := place.snapshot(commit)).is_dir():
            yield repo, snapshot


def _begun(root: Path) -> Iterator[Begun]:
    """Repos of which a part is on its way, or was."""
    for folder in sorted(root.glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        if parts := RepoCache(root, repo).parts():
            yield Begun(repo, sum(size_of(part) or 0 for part in parts))


def _of_the_family(folder: Path) -> bool:
    """Whether a folder that cannot be opened at least says that it is one of ours."""
    try:
        return any(f'"{kind}"' in (folder / "config.json").read_text(encoding="utf-8") for kind in MODEL_TYPES)
    except (OSError, ValueError):
        return False


def _model(place: str, checkpoint: Checkpoint, heads: dict[str, Checkpoint], named: str) -> LocalModel:
    inside = find_prefix(checkpoint) is not None or (checkpoint.path / "mtp" / "config.json").exists()
    apart = ""
    if not inside:
        # The catalogue's word first; else any head that was made for these shapes.
        candidates = [named] * (named in heads) + sorted(heads)
        apart = next((h for h in candidates if _belongs(heads[h], checkpoint)), "")
    block = checkpoint.quantization()
    return LocalModel(
        place=place,
        head=apart,
        has_head=inside or bool(apart),
        bytes=checkpoint.nbytes,
        quantization=str(Scheme.from_block(block)) if block is not None else "none",
        context=int(checkpoint.text_config.get("max_position_embeddings", 0)),
    )


def _belongs(head: Checkpoint, target: Checkpoint) -> bool:
    """Whether a head has a target's shapes. Whether it was trained for it, acceptance tells in use."""
    own, needed = head.text_config.get("vocab_size"), target.text_config.get("vocab_size")
    if own is not None and own != needed:
        return False
    try:
        check_tensors(head_tensors(head), target.text_config)
    except (Unfit, CheckpointError):
        return False
    return True
