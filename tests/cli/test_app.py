"""The frame of the command line: one line for bad input, exit codes, help, colour on terminals alone."""

import os
import pty
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from generic_adam import __version__
from generic_adam.cli import app as app_module
from generic_adam.cli import main
from generic_adam.cli.app import OF_LABORATORY, SUBCOMMANDS, build_app, run
from generic_adam.extras import missing_extra
from generic_adam.methods import MethodError

COMMAND = (sys.executable, "-m", "generic_adam.cli")


@pytest.fixture
def failing(monkeypatch):
    """Runs a subcommand that raises the given error, through the real frame."""

    def run_with(error):
        def build(_only=None):
            app = typer.Typer()

            @app.callback()
            def root():
                pass

            @app.command()
            def fail():
                raise error

            return app

        monkeypatch.setattr(app_module, "build_app", build)
        return run(["fail"])

    return run_with


def only_line(captured):
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["method"], "generic-adam: no such command 'method'. Did you mean 'methods'?"),
        (["zzz"], "generic-adam: no such command 'zzz'"),
        (["--versoin"], "generic-adam: no such option: --versoin. Did you mean '--version'?"),
        (["methods", "--jsn"], "generic-adam: no such option: --jsn. Did you mean '--json'?"),
        (["methods", "extra"], "generic-adam: got unexpected extra argument(s) (extra)"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(arguments, message, capsys):
    assert main(arguments) == 2
    assert only_line(capsys.readouterr()) == message


def test_an_error_of_ours_is_one_line(failing, capsys):
    assert failing(MethodError("alpha: expected a finite number > 0")) == 2
    assert only_line(capsys.readouterr()) == "generic-adam: alpha: expected a finite number > 0"


def test_a_message_of_several_lines_is_joined(failing, capsys):
    assert failing(MethodError("first\n  second")) == 2
    assert only_line(capsys.readouterr()) == "generic-adam: first second"


def test_a_file_that_cannot_be_opened_is_named(failing, capsys):
    assert failing(FileNotFoundError(2, "No such file or directory", "runs/x.json")) == 2
    assert only_line(capsys.readouterr()) == "generic-adam: runs/x.json: No such file or directory"


@pytest.mark.parametrize("error", [ModuleNotFoundError("no", name="torch"), missing_extra("torch")])
def test_a_missing_dependency_names_its_extra(error, failing, capsys):
    assert failing(error) == 2
    line = only_line(capsys.readouterr())
    assert line == 'generic-adam: torch is not installed: pip install "generic-adam[torch]"'


def test_an_interrupt_is_130_and_one_line(failing, capsys):
    assert failing(KeyboardInterrupt()) == 130
    assert only_line(capsys.readouterr()) == "generic-adam: interrupted"


@pytest.mark.parametrize("error", [ValueError("a defect"), ModuleNotFoundError("no", name="nonsense"), KeyError("x")])
def test_a_defect_keeps_its_traceback_and_is_no_answer(error, failing, capsys):
    assert failing(error) == 70
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Traceback (most recent call last):")
    assert type(error).__name__ in told.err
    assert told.err.splitlines()[-1].startswith("generic-adam: the lines above are a defect")


@pytest.mark.parametrize("code", [0, 1, 3])
def test_exit_codes_of_subcommands_are_passed_on(code, failing):
    assert failing(typer.Exit(code)) == code


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"generic-adam {__version__}\n"
    assert main([]) == 0
    alone = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.split() == alone.split()
    shown = [line.split()[1] for line in alone.splitlines() if line.startswith("│ ") and line[2] != " "]
    assert [name for name in shown if name in SUBCOMMANDS] == list(SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_subcommand_is_there_alone_when_it_is_asked_for(name):
    app = build_app(name)
    assert [one.name for one in (*app.registered_commands, *app.registered_groups)] == [name]


@pytest.mark.parametrize("name", OF_LABORATORY)
def test_without_the_laboratory_its_commands_say_where_they_come_from(name, monkeypatch, capsys):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    assert main([name, "--help"]) == 2
    said = (
        f"generic-adam: {name!r} comes with the laboratory, which is not installed: pip install generic-adam-laboratory"
    )
    assert only_line(capsys.readouterr()) == said
    assert {one.name for one in build_app().registered_commands} == {*SUBCOMMANDS}


def test_options_before_a_command_are_no_obstacle(capsys):
    assert main(["--version", "methods"]) == 0
    assert capsys.readouterr().out == f"generic-adam {__version__}\n"
    assert main(["--help", "methods"]) == 0
    assert "check" in capsys.readouterr().out


def test_every_subcommand_is_registered_with_a_sentence_of_help():
    app = build_app()
    commands = [*app.registered_commands, *app.registered_groups]
    assert len(commands) >= len(SUBCOMMANDS)
    for command in app.registered_commands:
        assert command.callback is not None
        assert (command.help or command.callback.__doc__ or "").strip(), command.name


def test_the_installed_script_is_this_program():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"generic-adam": "generic_adam_command:main"}


@pytest.mark.parametrize("arguments", [["--version"], ["methods", "--json"]])
def test_a_reader_that_leaves_early_is_met_with_silence(arguments):
    # `generic-adam methods --json | head -1`
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


def exit_of(redirection, *arguments):
    """The exit code and standard error of the real program, started by a shell."""
    line = f"{shlex.join((*COMMAND, *arguments))} {redirection}"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["check", "certified_adam"], ["methods", "--json"], ["--version"]])
def test_an_output_that_cannot_be_written_is_no_answer(arguments):
    expected = (74, "generic-adam: cannot write the output: No space left on device\n")
    assert exit_of(">/dev/full", *arguments) == expected


def test_a_closed_output_is_no_answer():
    assert exit_of(">&-", "check", "adam") == (
        74,
        "generic-adam: cannot write the output: standard output is closed\n",
    )
    # Nobody hears the errors, but they do not turn up among the answers.
    out = subprocess.run(
        ["sh", "-c", f"{shlex.join((*COMMAND, 'check', 'nonsense'))} 2>&-"],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (out.returncode, out.stdout) == (2, b"")
    assert exit_of("2>/dev/full >/dev/null", "check", "nonsense")[0] == 2


def test_without_standard_input_or_a_terminal_nothing_changes():
    assert exit_of("<&- >/dev/null", "check", "certified_adam") == (0, "")


def test_a_terminal_without_greek_letters_is_no_error():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "recipes"], capture_output=True, env=environment, check=True)
    assert b"?" in done.stdout
    assert done.stderr == b""


def output_on_a_terminal(arguments, environment):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **environment}
    ) as process:
        os.close(theirs)
        chunks = []
        try:
            while chunk := os.read(ours, 65536):
                chunks.append(chunk)
        except OSError:  # how Linux says that the other side of the terminal is closed
            pass
        process.wait()
    os.close(ours)
    return b"".join(chunks).decode()


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="needs a pseudo-terminal")
def test_colour_on_a_terminal_and_nowhere_else():
    terminal = {"TERM": "xterm-256color", "COLUMNS": "200"}
    piped = subprocess.run([*COMMAND, "methods"], capture_output=True, text=True, check=True)
    assert "\x1b[" not in piped.stdout
    assert "\x1b[" in output_on_a_terminal(["methods"], terminal)
    assert "\x1b[3" not in output_on_a_terminal(["methods"], {**terminal, "NO_COLOR": "1"})


IN_A_CALLBACK = """
import os, signal, sys, weakref
import generic_adam.cli.app as app

class Dying: pass

def interrupted(_): os.kill(os.getpid(), signal.SIGINT)

def run(arguments):
    one = Dying()
    reference = weakref.ref(one, interrupted)
    del one
    print("went on")

app.run = run
sys.exit(__import__("generic_adam.cli").cli.main())
"""
BEFORE_THE_RUN = "interrupted before the run was open: nothing was begun or changed; start it with: generic-adam"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "adam"], "interrupted"),
        (["reproduce", "bound", "--out", "a b"], f"{BEFORE_THE_RUN} reproduce bound --out 'a b'"),
    ],
)
def test_an_interrupt_that_nobody_could_catch_ends_the_command_in_one_line(arguments, said):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"generic-adam: {said}\n")


AT_AN_EVENT = """
import os, sys
sys.argv[:2], at, seen = ["generic-adam"], int(sys.argv[1]), []

def note(event, arguments):
    if seen or (event == "exec" and arguments[0].co_filename.endswith("generic_adam_command.py")):
        seen.append(event)
        if len(seen) == at:
            os.kill(os.getpid(), 2)

sys.addaudithook(note)
from generic_adam_command import main
code = main()
print(len(seen))
sys.exit(code)
"""


def test_an_interrupt_is_one_line_from_our_first_line_on():
    """Whatever Python audits (imports, files that are opened, code that is run) is a moment for Ctrl-C.

    The first of them is the last before our first line.
    """
    command = [sys.executable, "-c", AT_AN_EVENT]
    whole = subprocess.run([*command, "0", "check", "adam"], capture_output=True, text=True, check=False)
    last = int(whole.stdout.split()[-1])
    assert last > 100
    for at in (*range(2, 24), *range(24, last, last // 12)):
        done = subprocess.run([*command, str(at), "check", "adam"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (130, "generic-adam: interrupted\n"), at


def test_a_signal_that_is_ignored_stays_ignored():
    line = f"trap '' INT; {shlex.join((sys.executable, '-c', IN_A_CALLBACK, 'check', 'adam'))}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("went on\n", "")
