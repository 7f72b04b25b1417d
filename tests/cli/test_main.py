"""The command line itself: help without imports, errors as sentences, exit codes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
import yaml
from click.testing import CliRunner

from trimtab import __version__, cli
from trimtab.cli import COMMANDS, main
from trimtab.errors import InvalidInput
from trimtab.live.settings import OperatorSettings


def test_help_lists_every_command_and_imports_none() -> None:
    code = (
        "import sys; from trimtab.cli import main\n"
        "try: main(['--help'])\n"
        "finally: assert not {'pydantic', 'numpy', 'aiohttp', 'yaml'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_a_slip_in_a_command_is_told_what_was_meant() -> None:
    done = CliRunner().invoke(main, ["lnt"])
    assert (done.exit_code, "No such command 'lnt', did you mean lint?" in done.stderr) == (2, True)
    assert "did you mean" not in CliRunner().invoke(main, ["zebra"]).stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_module_and_help(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.stdout


def test_crds_prints_all_or_the_named_ones() -> None:
    everything = list(yaml.safe_load_all(CliRunner().invoke(main, ["crds"]).stdout))
    assert len(everything) == 5
    (ehpa,) = yaml.safe_load_all(CliRunner().invoke(main, ["crds", "ehpa"]).stdout)
    assert ehpa["spec"]["names"]["shortNames"] == ["ehpa"]
    wrong = CliRunner().invoke(main, ["crds", "ehap"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "did you mean ehpa?" in wrong.stderr


def _command_that(error: Exception) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    "error, said",
    [(InvalidInput("a.b", 1, "write 2"), "trimtab: a.b: 1: write 2"), (ValueError("odd"), "this is a bug")],
)
def test_errors_are_sentences(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: _command_that(error))
    result = CliRunner().invoke(main, ["lint"])
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "option, said",
    [
        ("--tick=0s", "--tick: '0s': write a duration above zero"),
        ("--scrape-interval=0s", "--scrape-interval: '0s': write a duration above zero"),
        ("--usage-half-life=0s", "--usage-half-life: '0s': write a duration above zero"),
        ("--lease=15s/10s/0s", "--lease: '0s': write a duration above zero"),
        ("--journal-size=5", "--journal-size: '5': write 1Mi or more"),
        ("--listen=nowhere", "--listen: 'nowhere': write [ADDRESS]:PORT"),
        ("--listen=:65536", "--listen: ':65536': write [ADDRESS]:PORT"),
        ("--api-qps=nan", "'nan' is not a number to count with"),
        ("--api-qps=-1", "not in the range"),
        ("--api-burst=0", "not in the range"),
        (
            "--history-matchers=cluster=a",
            """--history-matchers: 'cluster=a': write them as label="value",label=~"a|b\"""",
        ),
        ("""--history-matchers={cluster="a"}""", """--history-matchers: '{cluster="a"}': write them as"""),
        ("""--history-matchers=cluster="a",job""", "--history-matchers: 'job': write them as"),
        ("--prometheus=prom:9090", "prometheus: 'prom:9090': write its whole address: http://prom:9090"),
    ],
)
def test_an_operator_that_could_never_work_does_not_start(option: str, said: str) -> None:
    result = CliRunner().invoke(main, ["run", "--kubeconfig", "/no/such/file", option])
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    "given, kept",
    [
        pytest.param([], "", id="all there is"),
        pytest.param(["""--history-matchers=cluster="a\""""], 'cluster="a"', id="one"),
        pytest.param(["""--history-matchers=cluster=~"a|b", job != "x","""], 'cluster=~"a|b",job!="x"', id="untidy"),
    ],
)
def test_the_operator_is_told_which_series_are_its_clusters(
    given: list[str], kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the comma at the end: more matchers follow in every selector."""
    told: list[OperatorSettings] = []

    async def run(cluster: object, prometheus: object, settings: OperatorSettings) -> None:
        told.append(settings)

    monkeypatch.setattr("trimtab.cli.run._run", run)
    result = CliRunner().invoke(main, ["run", *given])
    assert result.exit_code == 0, result.output
    assert [",".join(map(str, settings.history_matchers)) for settings in told] == [kept]


@pytest.mark.parametrize("arguments", [("version",), ("--version",)])
def test_the_version_is_printed_as_a_command_too(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, list(arguments))
    assert (done.exit_code, done.stdout) == (0, f"trimtab {__version__}\n")


def test_a_process_that_is_spawned_does_not_run_the_command_again() -> None:
    """Python imports the main module in it under another name: `-m trimtab run` would start a second operator."""
    code = "import runpy, sys; sys.argv = ['trimtab', 'version']; runpy.run_module('trimtab', run_name='__mp_main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
