"""Write a stand-alone head: a folder that is whole or not there.

Everything goes into a hidden folder beside the wanted one, is handed to the disk, and is renamed in one step.
A kill leaves at most that hidden folder, which the next run removes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.errors import CheckpointError
from engine.quantize import Plan

WEIGHTS = "model.safetensors"


def require_absent(folder: Path) -> None:
    """Raises CheckpointError when something other than an empty folder is there already, or nobody may look."""
    try:
        # No name: "." or "/". A link could not be replaced by a folder, wherever it leads.
        empty = folder.name and not folder.is_symlink() and folder.is_dir() and not any(folder.iterdir())
        taken = not folder.name or folder.is_symlink() or (folder.exists() and not empty)
    except OSError as error:
        raise refused(folder, error) from error
    if taken:
        raise CheckpointError(
            f"There is something at {folder} already.",
            kept="It was not touched.",
            todo="Name another place, or remove it first.",
        )


@contextmanager
def whole_or_not_at_all(folder: Path) -> Iterator[Path]:
    """A hidden folder to write into, which becomes `folder` at the end. On any error it is removed.

    Raises:
        CheckpointError: something is there already, or the disk refuses.
    """
    require_absent(folder)
    work = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(2)}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        work.mkdir()
        try:
            yield work
            for path in [*work.iterdir(), work]:
                _sync(path)
            os.rename(work, folder)  # replaces an empty folder, fails on any other
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as error:
        raise refused(folder, error) from error
    with suppress(OSError):  # it is there, whole; a parent that cannot be read cannot be handed to the disk
        _sync(folder.parent)


def write_head(
    folder: Path, weights: Mapping[str, mx.array], config: Mapping[str, Any], metadata: Mapping[str, str]
) -> None:
    """Write `config.json` and the weights into a folder that exists, see `whole_or_not_at_all`.

    Args:
        weights: by stand-alone name, norms as used.
        metadata: into the safetensors header; "format" is added, which converters look at.
    """
    try:
        mx.save_safetensors(str(folder / WEIGHTS), dict(weights), metadata={"format": "mlx", **metadata})
    except RuntimeError as error:  # MLX's word for a disk that refuses; it does not say why
        path = folder / WEIGHTS
        missing = sum(w.nbytes for w in weights.values()) - (path.stat().st_size if path.exists() else 0)
        number = errno.ENOSPC if shutil.disk_usage(folder).free < missing else errno.EIO
        raise OSError(number, f"MLX could not save {WEIGHTS}: {error}".rstrip(".")) from error
    write_json(folder / "config.json", config)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def standalone_config(config: Mapping[str, Any], *, moe: bool, plan: Plan | None) -> dict[str, Any]:
    """The configuration of a stand-alone head, from that of the checkpoint it comes from. Unknown keys are kept.

    plan: of its packed projections, None when it is dense. What described the source's packing goes.
    """
    out = {key: value for key, value in config.items() if key not in ("quantization", "quantization_config")}
    if isinstance(inner := out.get("text_config"), dict):
        out["text_config"] = {k: v for k, v in inner.items() if k not in ("quantization", "quantization_config")}
    if not str(config.get("model_type", "")).endswith("_mtp"):
        out["model_type"] = "qwen3_5_moe_mtp" if moe else "qwen3_5_mtp"
        out.pop("architectures", None)  # the target's
    if plan is not None:
        block: dict[str, Any] = plan.default.as_block()
        block |= {name: scheme.as_block() if scheme else False for name, scheme in sorted(plan.named.items())}
        out["quantization"] = block
    return out


def refused(folder: Path, error: OSError) -> CheckpointError:
    """What a disk refuses, in words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return CheckpointError(
        f"The head cannot be written to {folder}: {'the disk is full' if full else error.strerror or error}.",
        kept="Nothing was left there; what it was made from is unchanged.",
        todo="Free some space, or name another place." if full else "Name a place that you may write to.",
        detail=str(error),
    )


def _remove_leftovers(folder: Path) -> None:
    """Of runs that were killed. One whose process lives is at work."""
    try:
        beside = list(folder.parent.iterdir())
    except PermissionError:
        return  # a folder that may be written to and not listed
    for path in beside:
        owner = re.fullmatch(rf"\.{re.escape(folder.name)}\.(\d+)\.[0-9a-f]+\.partial", path.name)
        if owner and not _alive(int(owner[1])):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise  # what was written did not arrive
        # Some network disks cannot; then a power cut may cost the file, a kill may not.
    finally:
        os.close(descriptor)
