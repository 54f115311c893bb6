"""Entries of the catalogue against the hub: headers and small files, no tensor."""

from __future__ import annotations

from collections.abc import Iterator

from engine.checkpoint.folder import Checkpoint
from engine.checkpoint.kind import MODEL_TYPES, is_standalone, prefix_of, what_it_is
from engine.errors import KnownError
from engine.hub import errors
from engine.hub.connection import Connection
from engine.hub.headers import INDEX, inspect_repo, read_json
from engine.hub.plan import wanted
from engine.hub.ranges import RangeClient
from engine.hub.repo import Repo, open_repo
from engine.hub.types import CataloguePair, Checked
from engine.quantize import Scheme

_SIZE_TOLERANCE = 0.05


def check(connection: Connection, pair: CataloguePair) -> Checked:
    """Compare an entry with the hub: a few small requests and headers, no tensor.

    Raises:
        HubError: no way to the hub. A repo that is not there is a problem, not an error.
        LoadCancelled: `connection.stop` was set.
    """
    problems: list[str] = []
    found: Checkpoint | None = None
    size, licence = 0, ""
    try:
        target = inspect_repo(connection, pair.target)
        found, licence = target.checkpoint, target.repo.licence
        size = sum(file.size or 0 for name, file in target.repo.files.items() if wanted(name))
        problems += _of_target(pair, found, size, licence)
    except KnownError as error:
        problems.append(_refusal("target", error))
    for role, repo_id in (("head", pair.head), ("original", pair.original)):
        if repo_id:
            problems += _of_head(connection, role, repo_id)
    block = found.quantization() if found is not None else None
    return Checked(
        pair,
        tuple(problems),
        size,
        int(found.text_config.get("max_position_embeddings", 0)) if found is not None else 0,
        licence,
        str(Scheme.from_block(block)) if block is not None else "",
    )


def _refusal(role: str, error: KnownError) -> str:
    """A repo's own fault as a problem; without a way to the hub nothing was compared."""
    if isinstance(error, errors.HubError) and error.status not in (401, 403, 404):
        raise error
    return f"{role}: {error.what}"


def _of_target(pair: CataloguePair, found: Checkpoint, size: int, licence: str) -> Iterator[str]:
    if found.model_type not in MODEL_TYPES:
        yield f"target: it is {what_it_is(found.model_type)}"
    block = found.quantization()
    scheme = str(Scheme.from_block(block)) if block is not None else "none"
    context = int(found.text_config.get("max_position_embeddings", 0))
    if scheme != pair.quantization:
        yield f"quantization: {scheme}, the entry says {pair.quantization}"
    if context != pair.context:
        yield f"context: {context}, the entry says {pair.context or 'nothing'}"
    if licence != pair.licence:
        yield f"licence: {licence or 'none named'}, the entry says {pair.licence or 'nothing'}"
    if abs(size - pair.bytes) > _SIZE_TOLERANCE * size:
        yield f"bytes: {size}, the entry says {pair.bytes or 'nothing'}"


def _of_head(connection: Connection, role: str, repo_id: str) -> Iterator[str]:
    """Whether a repo holds a head. Of a sharded original the index tells, its headers are not read."""
    try:
        repo = open_repo(connection, repo_id)
        if role == "original" and INDEX in repo.files:
            names = _indexed(connection, repo)
            if prefix_of(names) is None:
                yield f"{role}: {repo_id} holds no mtp.* tensors"
            return
        held = inspect_repo(connection, repo_id).checkpoint
        if prefix_of(held.tensors) is None and not is_standalone(held):
            yield f"{role}: {repo_id} holds no MTP head"
    except KnownError as error:
        yield _refusal(role, error)


def _indexed(connection: Connection, repo: Repo) -> list[str]:
    table = read_json(RangeClient(connection), repo, INDEX).get("weight_map")
    return list(table) if isinstance(table, dict) else []
