"""Metadata that depends on where the package is built: its addresses, and a README whose links lead there.

A checkout does not know its own address; a workflow does, as GITHUB_REPOSITORY ("owner/name"). Without it the
package has no addresses and the README's links stay as they are, which is right for a private build.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?P<target>(?![a-z]+:|#)[^)\s]+)\)")
_SOURCE = re.compile(r'(?P<name>src|srcset)="(?P<target>(?![a-z]+:)[^"]+)"')


class Addresses(MetadataHookInterface):
    """Adds `urls` and `readme` to the project's metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if repository:
            server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
            home = f"{server}/{repository}"
            owner, _, name = repository.partition("/")
            metadata["urls"] = {
                "Documentation": f"https://{owner.lower()}.github.io/{name}",
                "Source": home,
                "Issues": f"{home}/issues",
                "Changelog": f"{home}/blob/main/CHANGELOG.md",
            }
            text = absolute(text, home, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, home: str, tag: str) -> str:
    """Return a README whose relative links and pictures lead to the files of a tag."""
    text = _SOURCE.sub(lambda m: f'{m["name"]}="{home}/raw/{tag}/{m["target"]}"', text)
    return _LINK.sub(
        lambda m: f"{m['picture']}{m['text']}({home}/{'raw' if m['picture'] else 'blob'}/{tag}/{m['target']})",
        text,
    )
