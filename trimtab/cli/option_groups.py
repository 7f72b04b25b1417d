"""Options that belong together reach a command as one object: which cluster, which Prometheus, and the like."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.wire.access import Access

Command = Callable[..., Any]


def option_group(name: str, settings: Any, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """A decorator: the values of these options, named as the fields of `settings`, become the argument `name`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_settings(**values: Any) -> Any:
            own = {field: values.pop(field) for field in settings._fields}
            return command(**{name: settings(**own)}, **values)

        decorated: Command = with_settings
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def name_and_value(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(option, text, "write NAME=VALUE")
    return name.strip(), value.strip()


class ClusterOptions(NamedTuple):
    """Which cluster, as kubectl is told."""

    kubeconfig: str | None = None
    context: str | None = None

    def connect(self) -> Access:
        from trimtab.wire.kubeconfig import connect

        return connect(self.context, self.kubeconfig)


cluster_options = option_group(
    "cluster",
    ClusterOptions,
    click.option(
        "--kubeconfig", help="Path to a kubeconfig; without one: KUBECONFIG, ~/.kube/config, the pod's account."
    ),
    click.option("--context", help="The kubeconfig context to use."),
)


class PrometheusOptions(NamedTuple):
    """Which Prometheus (or Thanos, Mimir, VictoriaMetrics), and how it lets us in."""

    url: str | None = None
    user: str = ""
    password: str = ""
    token_file: str = ""
    ca_file: str = ""
    headers: Mapping[str, str] = {}  # never changed

    def access(self) -> Access | None:
        """None where no address was given."""
        from trimtab.wire.access import prometheus_access

        if not self.url:
            return None
        return prometheus_access(
            self.url,
            username=self.user,
            password=self.password,
            token_file=self.token_file,
            ca_file=self.ca_file,
            headers=self.headers,
        )


def _headers(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    return dict(name_and_value(text, param.opts[0]) for text in texts)


def prometheus_options(address_help: str) -> Callable[[Command], Command]:
    """What an address is for differs from command to command; how it is reached does not."""
    return option_group(
        "prometheus",
        PrometheusOptions,
        click.option("--prometheus", "url", envvar="PROMETHEUS_URL", help=address_help),
        click.option(
            "--prometheus-user", "user", envvar="PROMETHEUS_USER", default="", help="User for basic authentication."
        ),
        click.option(
            "--prometheus-password", "password", envvar="PROMETHEUS_PASSWORD", default="", help="Its password."
        ),
        click.option(
            "--prometheus-token-file",
            "token_file",
            envvar="PROMETHEUS_TOKEN_FILE",
            default="",
            help="File with a bearer token.",
        ),
        click.option(
            "--prometheus-ca-file", "ca_file", envvar="PROMETHEUS_CA_FILE", default="", help="CA of its certificate."
        ),
        click.option(
            "--prometheus-header",
            "headers",
            multiple=True,
            callback=_headers,
            help="NAME=VALUE, such as X-Scope-OrgID=team; may be repeated.",
        ),
    )


class PlaceOptions(NamedTuple):
    """In which namespace; without one, the context's."""

    namespace: str = ""


place_options = option_group(
    "place", PlaceOptions, click.option("-n", "--namespace", default="", help="Default: the context's.")
)
