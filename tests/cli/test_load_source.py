"""`--load` with a query: what the server is asked, and what becomes of its answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from trimtab.cli.load_source import Where, read_load
from trimtab.errors import TrimtabError

QUERY = 'sum(rate(http_requests_total{app="web"}[2m]))'


class Answers(BaseHTTPRequestHandler):
    """A server that answers range queries with a ramp for each series it was told to have."""

    series: tuple[dict[str, str], ...] = ({},)
    asked: list[dict[str, str]] = []

    def do_POST(self) -> None:
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
    Answers.series, Answers.asked = ({},), []
    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_query_becomes_a_demand_of_the_last_days(url: str) -> None:
    found = read_load(Where(QUERY, days=2.0, url=url))
    assert {asked["query"] for asked in Answers.asked} == {QUERY}
    assert {asked["step"] for asked in Answers.asked} == {"60"}
    assert found.days == pytest.approx(2.0, abs=0.01)
    assert found.values.min() == 100.0 and found.values.max() == 149.0


def test_a_query_with_many_series_asks_which(url: str) -> None:
    Answers.series = ({"pod": "a"}, {"pod": "b"})
    with pytest.raises(TrimtabError, match=r'2 series.*pod="a"'):
        read_load(Where(QUERY, url=url))
    assert read_load(Where(QUERY, series='{pod="b"}', url=url)).name == '{pod="b"}'


def test_a_query_without_samples_says_so(url: str) -> None:
    Answers.series = ()
    with pytest.raises(TrimtabError, match="no samples in that time"):
        read_load(Where(QUERY, url=url))


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(TrimtabError, match=r"127\.0\.0\.1:9"):
        read_load(Where(QUERY, url="http://127.0.0.1:9"))
