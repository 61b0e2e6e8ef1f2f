"""Settings every test shares, and which tests run where only a part of the extras is installed."""

import io
import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

# Before torch or NumPy start their thread pools: one thread each, as the worker processes fill the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Figures are drawn to files; no test may need a screen.
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("suite"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "suite")

# A shell lets its background jobs ignore Ctrl-C, and nohup hang-ups: tests that send one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What a folder, or a single file, needs beyond the library itself.
NEEDS = {
    "laboratory/tests": ("generic_adam_laboratory", "torch", "dask", "sklearn"),
    "tests/adapters": ("torch", "transformers", "pytorch_lightning"),
    "tests/benchmarks": ("torch", "generic_adam_laboratory"),
    "tests/conformance": ("torch",),
    "tests/docs": ("mkdocs", "selenium", "torch", "generic_adam_laboratory"),
    "tests/optax": ("jax", "optax"),
    "tests/answers/test_figures.py": ("matplotlib",),
    "tests/answers/test_plots.py": ("matplotlib",),
    "tests/torch": ("torch",),
    "tests/cli/test_check_plot.py": ("matplotlib",),
    "tests/cli/test_check_sources.py": ("torch", "transformers", "pytorch_lightning"),
    "tests/test_certification.py": ("torch",),
    "tests/test_docstrings.py": ("torch", "optax", "matplotlib", "generic_adam_laboratory"),
    "tests/test_extras.py": ("torch", "optax", "matplotlib"),
    "tests/test_packaging.py": ("hatchling", "check_jsonschema", "yaml"),
    "tests/test_public_names.py": ("torch", "optax"),
    "tests/test_readme.py": ("torch",),
}
LEFT_OUT = {
    name: absent
    for name, modules in NEEDS.items()
    if (absent := [module for module in modules if find_spec(module) is None])
}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of parts that are not installed."""
    here = Path(__file__).parent
    if not collection_path.is_relative_to(here):
        return None
    # With the folders above it, for one of them may be named on the command line.
    relative = collection_path.relative_to(here)
    return True if {part.as_posix() for part in (relative, *relative.parents)} & LEFT_OUT.keys() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the wording of answers anew."""
    parser.addoption("--update-answers", action="store_true", help="write tests/answers/snapshots anew")


def pytest_report_header() -> list[str]:
    """Say what is left out: silence would look like success."""
    return [f"left out: {name} ({', '.join(absent)} not installed)" for name, absent in LEFT_OUT.items()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count what needs a browser, a site or several processes as slow, wherever it is."""
    for item in items:
        if {"site", "site_build", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run a command with standard output on a pseudo-terminal; return its lines without colours."""
    from generic_adam.cli import main

    def run(width: int, *arguments: str) -> list[str]:
        ours, theirs = pty.openpty()
        chunks: list[bytes] = []

        def read() -> None:
            try:
                while chunk := os.read(ours, 65536):
                    chunks.append(chunk)
            except OSError:  # how Linux says that the other side is closed
                pass

        reader = threading.Thread(target=read)
        reader.start()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm-256color")
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            patched.setattr(sys, "stderr", io.StringIO())
            main(list(arguments))
        reader.join()
        os.close(ours)
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(chunks).decode())
        return [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]

    return run
