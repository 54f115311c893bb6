"""From what the user typed to a folder: a path, or a repo id that is already in the Hugging Face cache."""

from __future__ import annotations

import re
from pathlib import Path

from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.kind import find_prefix, is_standalone
from engine.errors import CheckpointError
from engine.request import LoadOptions

DEMO = Path(__file__).resolve().parents[2] / "resources" / "demo"
_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def demo_target() -> Path:
    """Folder of the bundled demo target."""
    return DEMO / "target"


def demo_head() -> Path:
    """Folder of the bundled demo head."""
    return DEMO / "head"


def locate(place: str) -> tuple[Path, str]:
    """Find the folder behind a path or repo id.

    Returns:
        The folder, and the hub commit when it came from the cache ("" otherwise).

    Raises:
        CheckpointError: neither a folder nor a complete cached snapshot. Nothing is downloaded.
    """
    if not place.strip():
        raise CheckpointError("No model was named.", todo="Give the path of a model folder, or a repo id.")
    try:
        path = Path(place).expanduser()
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, RuntimeError) as e:  # the latter: a ~name that nobody has
        raise CheckpointError(
            f"{place} cannot be looked at: {getattr(e, 'strerror', None) or str(e).rstrip('.')}.",
            todo="Give the path of a model folder that you may read, or a repo id.",
            detail=str(e),
        ) from e
    if is_folder:
        return path.resolve(), ""
    if exists:
        raise CheckpointError(
            f"{place} is a file, not a model folder.", todo="Choose the folder that holds config.json.", detail=place
        )
    if _REPO_ID.fullmatch(place) is None:
        raise CheckpointError(
            f"There is no folder {place}.",
            todo="Give the path of a model folder, or a repo id such as owner/name.",
            detail=place,
        )
    # Imported here: it takes a third of a second and folders do not need it.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        snapshot = Path(snapshot_download(place, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError) as e:
        raise CheckpointError(
            f"There is no folder {place}, and as a repo it is not in the Hugging Face cache on this computer.",
            todo=f"Download it first (pacenote download {place}), or give the path of a folder.",
            detail=str(e),
        ) from e
    return snapshot, snapshot.name


def head_checkpoint(checkpoint: Checkpoint, options: LoadOptions) -> Checkpoint:
    """Where the head of a target lies: as asked, beside it, or inside. Raises CheckpointError."""
    if options.head:
        path, revision = locate(options.head)
        return open_folder(path, revision)
    if options.target is None:
        return open_folder(demo_head())
    beside = checkpoint.path / "mtp"
    if find_prefix(checkpoint) is None and not is_standalone(checkpoint) and (beside / "config.json").exists():
        return open_folder(beside)
    return checkpoint
