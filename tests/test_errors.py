"""What errors may show: one short line of what others said, and never a password."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.fake import Fake, script
from trimtab.errors import LONGEST_QUOTE, InvalidInput, Refused, TrimtabError, printable, quoted, without_credentials
from trimtab.wire.access import Access, prometheus_access
from trimtab.wire.objects import WirePod
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import PODS


@given(st.text(max_size=2000))
def test_a_quote_is_one_short_printable_line(text: str) -> None:
    said = quoted(text)
    assert len(said) <= LONGEST_QUOTE and said.isprintable()


def test_what_can_be_read_stays_as_it_is() -> None:
    assert quoted("exceeded quota: team, größer als 10") == "exceeded quota: team, größer als 10"
    assert printable("a\nb\x1b[31m\u2028c\x85") == "a\\nb\\x1b[31m\\u2028c\\x85"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("http://user:secret@host:9090/x", "http://host:9090/x"),
        ("Get https://u:p%40ss@h/a?b=c: refused", "Get https://h/a?b=c: refused"),
        ("two: http://a:b@c and http://token@d.", "two: http://c and http://d."),
        ("http://host/path?to=a@b", "http://host/path?to=a@b"),
        ("mail me@example.com", "mail me@example.com"),
    ],
)
def test_credentials_of_urls_are_never_shown(text: str, shown: str) -> None:
    assert without_credentials(text) == shown
    assert str(TrimtabError(text)) == shown
    assert "secret" not in str(InvalidInput("server", "http://a:secret@b", "write it"))


def refusal_of(answer: web.Response) -> str:
    async def run() -> str:
        async with Fake(script(answer)) as fake, fake.kube() as kube:
            with pytest.raises(Refused) as caught:
                await kube.get(WirePod, PODS, "a", "b")
            return str(caught.value)

    return asyncio.run(run())


def test_bodies_are_not_quoted_and_sentences_are_short() -> None:
    internal = refusal_of(web.Response(status=404, text="<html>db-password: hunter2</html>"))
    assert "hunter2" not in internal and "404" in internal
    sentence = refusal_of(web.json_response({"message": "quota\nexceeded " + "x" * 5000}, status=403))
    assert "403 quota exceeded" in sentence and sentence.isprintable() and len(sentence) < 320


@pytest.mark.parametrize("status", [200, 400, 403, 500])
def test_a_metrics_server_shows_neither_its_body_nor_our_password(status: int) -> None:
    async def run() -> str:
        async with Fake(script(web.Response(status=status, text="hunter2\n" * 50))) as fake:
            access = prometheus_access(fake.url.replace("://", "://me:s3cret@"))
            async with Prometheus(access) as prometheus:
                with pytest.raises(TrimtabError) as caught:
                    await prometheus.query("up")
            assert fake.requests[0].headers["Authorization"] == "Basic bWU6czNjcmV0"
            return str(caught.value)

    said = asyncio.run(run())
    assert str(status) in said and "hunter2" not in said and "s3cret" not in said and said.isprintable()


def test_a_password_in_the_url_of_a_dead_server_is_not_shown() -> None:
    async def run() -> str:
        async with Prometheus(Access("http://me:s3cret@127.0.0.1:1"), timeout_s=2.0) as prometheus:
            with pytest.raises(TrimtabError) as caught:
                await prometheus.query("up")
            return str(caught.value)

    assert "s3cret" not in asyncio.run(run())
