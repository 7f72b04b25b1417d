"""tenancy: whose queries Prometheus is asked, and with what: a query runs with the operator's rights, not its author's.

`label-proxy` hands the object's namespace to a prom-label-proxy, which lets the query see that namespace's series
alone. `by-label` asks only for namespaces that their administrator has labelled. `open` asks for everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Literal, NamedTuple

from trimtab.errors import Refused
from trimtab.kinds.annotations import PROMETHEUS_ALLOWED

TenancyMode = Literal["label-proxy", "by-label", "open"]


class NotAllowed(Refused):
    """This namespace may not ask."""


def nobody(namespace: str) -> bool:
    return False


class QueryTenancy(NamedTuple):
    mode: TenancyMode = "open"
    labelled: Callable[[str], bool] = nobody

    def asker(self, namespace: str) -> str:
        """Equal queries of one asker have one answer; where everybody may ask, everybody is one."""
        return "" if self.mode == "open" else namespace

    def params(self, namespace: str) -> dict[str, str]:
        """What goes with a query of this namespace; refused before anything is asked."""
        if self.mode == "label-proxy":
            return {"namespace": namespace}
        if self.mode == "by-label" and not self.labelled(namespace):
            fix = f"its administrator can allow them: kubectl label namespace {namespace} {PROMETHEUS_ALLOWED}=true"
            raise NotAllowed(f"queries of namespace {namespace} are not asked; {fix}", HTTPStatus.FORBIDDEN)
        return {}
