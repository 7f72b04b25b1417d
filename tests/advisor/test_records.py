"""What is written about advice."""

from __future__ import annotations

from tests.advisor.workloads import target
from trimtab.advisor.records import new_recommendation
from trimtab.policy import Advice
from trimtab.wire.objects import Custom, ObjectMeta

ANALYTICS = Custom(metadata=ObjectMeta(name="all", namespace="shop", uid="u-1"))


def test_labels_by_which_gitops_tools_know_their_own_are_left_out() -> None:
    tracking = {
        "app.kubernetes.io/instance": "shop",
        "argocd.argoproj.io/instance": "shop",
        "kustomize.toolkit.fluxcd.io/name": "shop",
        "helm.sh/chart": "shop-1.2.3",
    }
    plain = {"app": "web", "app.kubernetes.io/name": "web", "team": "red"}
    made = new_recommendation(ANALYTICS, target("web", labels=plain | tracking), Advice.HPA)
    ours = {
        "analysis.crane.io/analytics-name": "all",
        "analysis.crane.io/analytics-uid": "u-1",
        "analysis.crane.io/analytics-type": "HPA",
    }
    assert made["metadata"]["labels"] == plain | ours
