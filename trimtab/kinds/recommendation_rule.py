"""RecommendationRule of Crane since 0.7 (analysis.crane.io/v1alpha1): several recommenders for many namespaces.

Linted and converted, never served: it becomes one Analytics for each recommender and namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.analytics import ANALYSIS_API, AdviceType, ResourceSelector
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.kinds.meta import Kind
from trimtab.kinds.names import NamespaceName
from trimtab.quantity import parse_duration

OWN_NAMESPACE = "trimtab"  # an Analytics in the operator's own namespace selects from all of them
NAMESPACES, RECOMMENDERS = "spec.namespaceSelector", "spec.recommenders"


class NamespaceSelector(ManifestPart):
    any: bool = False
    match_names: Annotated[list[NamespaceName], Field(max_length=1000)] = []


class Recommender(ManifestPart):
    name: str
    config: dict[str, str] = {}


class RecommendationRuleSpec(ManifestPart):
    resource_selectors: Annotated[list[ResourceSelector], Field(min_length=1, max_length=20)]
    namespace_selector: NamespaceSelector
    run_interval: str = ""
    recommenders: Annotated[list[Recommender], Field(min_length=1, max_length=50)]

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        if not self.namespace_selector.any and not self.namespace_selector.match_names:
            yield InvalidInput("namespaceSelector", "{}", "write any: true, or the namespaces in matchNames")
        if self.run_interval:
            try:
                parse_duration(self.run_interval, "runInterval")
            except InvalidInput as problem:
                yield problem


class RecommendationRule(Kind):
    api_version: Literal["analysis.crane.io/v1alpha1"]
    kind: Literal["RecommendationRule"]
    spec: RecommendationRuleSpec

    crd: ClassVar[bool] = False

    def as_analytics(self, ledger: Ledger) -> list[dict[str, Any]]:
        """Return one Analytics for each recommender and namespace; other recommenders are lost by name."""
        spec, made = self.spec, []
        namespaces = [OWN_NAMESPACE] if spec.namespace_selector.any else spec.namespace_selector.match_names
        for index, recommender in enumerate(spec.recommenders):
            if recommender.name not in get_args(AdviceType):
                why = f"there is no such recommendation here; known: {', '.join(get_args(AdviceType))}"
                ledger.lose(f"{RECOMMENDERS}[{index}]", why)
                continue
            for namespace in namespaces:
                made.append(self._analytics(recommender, namespace))
        return made

    def _analytics(self, recommender: Recommender, namespace: str) -> dict[str, Any]:
        kept = {"type": recommender.name} | ({"config": recommender.config} if recommender.config else {})
        strategy: dict[str, Any] = {"completionStrategyType": "Once"}
        if self.spec.run_interval:
            seconds = max(1, round(parse_duration(self.spec.run_interval)))
            strategy = {"completionStrategyType": "Periodical", "periodSeconds": seconds}
        selectors = [selector.manifest() for selector in self.spec.resource_selectors]
        return {
            "apiVersion": ANALYSIS_API,
            "kind": "Analytics",
            "metadata": {"name": f"{self.metadata.name}-{recommender.name.lower()}", "namespace": namespace},
            "spec": kept | {"completionStrategy": strategy, "resourceSelectors": selectors},
        }
