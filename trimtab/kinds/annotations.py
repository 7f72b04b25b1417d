"""Every annotation and label that is read or written, ours and other projects', with what it means."""

from __future__ import annotations

OURS = "trimtab.dev/"  # what all of ours begin with

# On any autoscaler, by its user.
PAUSED = "trimtab.dev/paused"  # "true": decide nothing
PAUSED_UNTIL = "trimtab.dev/paused-until"  # a time (RFC 3339): decide nothing before it
PIN = "trimtab.dev/pin"  # so many replicas, whatever the metrics say
PIN_UNTIL = "trimtab.dev/pin-until"  # a time: the pin ends then
# "true": the released program, on an Hvpa that of HVPA, on a predictive HPA that of the thesis.
EXACT = "trimtab.dev/exact"
BRIDGE = "trimtab.dev/bridge"  # on an EHPA or Hvpa: ready pods may grow to so many times their cpu for a while
TUNING = "trimtab.dev/tuning"  # on an EHPA: "Advise" or "Nightly"
TUNING_UNDO = "trimtab.dev/tuning-undo"  # a time (RFC 3339): settings that tuning put in force before it are taken back

HANDED_OVER = "trimtab.dev/handed-over"  # on an Autoscaler, by `trimtab handover`: the manifest of who scaled before

# On a HorizontalPodAutoscaler: the first by its user (predictive HPA (McNaughton)), the others by the operator.
PREDICTIVE = "predictive"  # "true", in any quotes: a forecast may raise minReplicas
ORIGINAL_FLOOR = "trimtab.dev/min-replicas"  # the user's own minReplicas, while ours stands in its place
RAISED_FLOOR = "trimtab.dev/floor"  # the minReplicas that the operator wrote
RAISED_FLOOR_UNTIL = "trimtab.dev/floor-until"  # unix seconds: it is not lowered before
FORECAST_NOTE = "trimtab.dev/forecast"  # whether its forecast works, and what it asks for

# On the Namespace of the operator: the first by its administrator (`trimtab freeze`), the others by the operator.
FROZEN = "trimtab.dev/frozen"  # the UID of one installation, or "true": it writes nothing but status
INSTALLATION = "trimtab.dev/installation"  # a time: since then an operator of the whole cluster is here; older serves

# On a Lease of the operator's; the first on its Namespace, too.
SHARDS = "trimtab.dev/shards"  # among how many operators its holder divides the namespaces
SERVING = "trimtab.dev/serving"  # "true": its holder may write; "false": it stands by for another installation
INSTALLATION_UID = "trimtab.dev/installation-uid"  # whose it is: the UID of its ServiceAccount
SERVES = "trimtab.dev/serves"  # the one namespace that its holder serves, which is the Lease's own

API_CREDENTIAL = "trimtab.dev/api-token-secret"  # on the operator's Service: the Secret with the token for /api

# Labels of a Namespace, by its administrator.
ENABLED = "trimtab.dev/enabled"  # "false": nothing in it is touched
PROMETHEUS_ALLOWED = "trimtab.dev/prometheus"  # "true": its objects may query Prometheus (tenancy by-label)

# Labels of a usage checkpoint, a ConfigMap in the operator's own namespace.
OBJECT_UID = "trimtab.dev/object-uid"  # whose it is
OBJECT_NAMESPACE = "trimtab.dev/object-namespace"  # and where that is
OBJECT_TARGET = "trimtab.dev/object-target"  # an annotation: which workload it is about, as KIND/NAME

# Keys of an Analytics' config, beside Crane's own.
ALGORITHM = "trimtab.dev/algorithm"  # exact: as its tutorial says; crane: its program's numbers
TIMEZONE = "trimtab.dev/timezone"  # in which hours of the day are counted

# Other projects'.
KEDA_SETTINGS = "autoscaling.keda.sh/"  # whatever else KEDA is told on a ScaledObject
KEDA_PAUSED = "autoscaling.keda.sh/paused"  # "true": KEDA does not scale this ScaledObject
KEDA_PAUSED_IN = "autoscaling.keda.sh/paused-scale-in"  # "true": KEDA only lets it grow
KEDA_PAUSED_OUT = "autoscaling.keda.sh/paused-scale-out"  # "true": KEDA only lets it shrink
KEDA_NAME = "scaledobject.keda.sh/name"  # label by which KEDA's metrics are asked for: the ScaledObject's name
KEDA_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"  # so many replicas while it does not
WPA_SETTINGS = "wpa.datadoghq.com/"  # whatever Datadog's autoscaler is told on an object of its own
VPA_INTEGER_CPU = ("vpa-post-processor.kubernetes.io/", "_integerCPU")  # around a container's name: whole cores
CRANE_QUERY = "metric-query.autoscaling.crane.io/"  # before a metric's name: its query
HPA_V1_METRICS = "autoscaling.alpha.kubernetes.io/metrics"  # what autoscaling/v1 has no field for
HPA_V1_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"  # the same
INITIAL_EVENTS_END = "k8s.io/initial-events-end"  # of a watch's bookmark: all objects that were there have come
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # what kubectl apply was given
MANAGED_BY = "app.kubernetes.io/managed-by"  # the controller that made an object
ANALYTICS_NAME = "analysis.crane.io/analytics-name"  # label of a Recommendation: who asked for it
ANALYTICS_UID = "analysis.crane.io/analytics-uid"  # the same, for selecting
ANALYTICS_TYPE = "analysis.crane.io/analytics-type"  # its type of advice
# Labels by which GitOps tools know what they manage: on our object they would make it theirs, to be pruned.
GITOPS_TRACKING = ("app.kubernetes.io/instance", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.sh/")
# What tools note on an object they made or track: on another object it would be untrue.
BOOKKEEPING = (
    LAST_APPLIED,
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
    "argocd.argoproj.io/instance",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "objectset.rio.cattle.io/",
    "config.kubernetes.io/origin",
    "autoscaling.alpha.kubernetes.io/conditions",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "scaledobject.keda.sh/",
    "validations.keda.sh/",
)


def crane_recommendation(advice: str) -> str:
    """Of a workload: the value that is recommended to it, by type of advice."""
    return f"analysis.crane.io/{advice.lower()}-recommendation"
