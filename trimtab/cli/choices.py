"""Words of options whose owners take long to import: `--help` needs the words alone.

tests/cli/test_help.py holds them equal to their owners'.
"""

from __future__ import annotations

ADVICE_TYPES = {"hpa": "HPA", "resource": "Resource", "replicas": "Replicas"}
CONVERT_TO = ("autoscaler", "hpa", "ehpa", "hvpa", "analytics")
LINT_SEVERITIES = ("info", "warning", "error")
LINT_BASELINE = ".trimtab-baseline"
MANIFEST_SHAPES = ("hpa", "ehpa", "autoscaler", "patch")
PROMETHEUS_LABEL = "trimtab.dev/prometheus"
SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
TENANCY_MODES = ("label-proxy", "by-label", "open")
