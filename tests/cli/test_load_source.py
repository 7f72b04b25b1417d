"""`--load` with a query: what the server is asked, and what becomes of its answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

from trimtab.cli import main
from trimtab.cli.load_source import LoadOptions, read_load
from trimtab.cli.option_groups import PrometheusOptions
from trimtab.errors import TrimtabError

QUERY = 'sum(rate(http_requests_total{app="web"}[2m]))'
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  metrics:
  - {type: External, external: {metric: {name: rps}, target: {type: AverageValue, averageValue: "50"}}}
"""


class Answers(BaseHTTPRequestHandler):
    """A server that answers range queries with a ramp for each series it was told to have."""

    series: tuple[dict[str, str], ...] = ({},)
    asked: list[dict[str, str]] = []
    let_in_by: list[tuple[str | None, str | None]] = []

    def do_POST(self) -> None:
        self.let_in_by.append((self.headers["X-Scope-OrgID"], self.headers["Authorization"]))
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        asked = {name: values[0] for name, values in form.items()}
        self.asked.append(asked)
        start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
        samples = [[start + step * n, str(100 + n % 50)] for n in range(int((end - start) / step) + 1)]
        result = [{"metric": labels, "values": samples} for labels in self.series]
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Answers.series, Answers.asked, Answers.let_in_by = ({},), [], []
    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_query_becomes_a_demand_of_the_last_days(url: str) -> None:
    found = read_load(LoadOptions(QUERY, days=2.0), PrometheusOptions(url))
    assert {asked["query"] for asked in Answers.asked} == {QUERY}
    assert {asked["step"] for asked in Answers.asked} == {"60"}
    assert found.days == pytest.approx(2.0, abs=0.01)
    assert found.values.min() == 100.0 and found.values.max() == 149.0


def test_a_query_with_many_series_asks_which(url: str) -> None:
    Answers.series = ({"pod": "a"}, {"pod": "b"})
    with pytest.raises(TrimtabError, match=r'2 series.*pod="a"'):
        read_load(LoadOptions(QUERY), PrometheusOptions(url))
    assert read_load(LoadOptions(QUERY, series='{pod="b"}'), PrometheusOptions(url)).name == '{pod="b"}'


def test_a_query_without_samples_says_so(url: str) -> None:
    Answers.series = ()
    with pytest.raises(TrimtabError, match="no samples in that time"):
        read_load(LoadOptions(QUERY), PrometheusOptions(url))


@pytest.mark.parametrize("command", ["backtest", "tune"])
def test_a_tenant_behind_a_password_is_reached(command: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(HPA)
    let_in = ["--prometheus-user=me", "--prometheus-password=secret", "--prometheus-header=X-Scope-OrgID=team"]
    asked = [command, "-f", str(tmp_path / "web.yaml"), "--load", QUERY, "--days=3", f"--prometheus={url}", *let_in]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.output
    assert set(Answers.let_in_by) == {("team", "Basic bWU6c2VjcmV0")}


def test_a_header_without_a_value_is_refused() -> None:
    result = CliRunner().invoke(main, ["tune", "-f", "web.yaml", "--load", QUERY, "--prometheus-header=team"])
    assert result.exit_code == 2
    assert "--prometheus-header: 'team': write NAME=VALUE" in result.stderr


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(TrimtabError, match=r"127\.0\.0\.1:9"):
        read_load(LoadOptions(QUERY), PrometheusOptions("http://127.0.0.1:9"))
