{{/* What the operator may do in the namespaces it serves; cluster-wide or in one, it is the same. */}}
{{- define "trimtab.rules" -}}
# Our kinds and the documents': read, and say in the status what was done.
- apiGroups: [trimtab.dev]
  resources: [autoscalers]
  verbs: [get, list, watch]
- apiGroups: [autoscaling.k8s.io]
  resources: [hvpas]
  verbs: [get, list, watch]
- apiGroups: [trimtab.dev]
  resources: [autoscalers/status]
  verbs: [patch]
- apiGroups: [autoscaling.k8s.io]
  resources: [hvpas/status]
  verbs: [patch]
- apiGroups: [autoscaling.crane.io]
  resources: [effectivehorizontalpodautoscalers/status]
  verbs: [patch]
# Recommendations, and the EffectiveHorizontalPodAutoscaler that an adopted one becomes.
- apiGroups: [autoscaling.crane.io]
  resources: [effectivehorizontalpodautoscalers]
  verbs: [get, list, watch, create, patch]
- apiGroups: [analysis.crane.io]
  resources: [analytics]
  verbs: [get, list, watch, patch]
- apiGroups: [analysis.crane.io]
  resources: [recommendations]
  verbs: [get, list, watch, create, patch, delete]
# Who else moves a workload. HorizontalPodAutoscalers: patched where annotated `predictive: "true"`.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch{{ if .Values.rights.floors }}, patch{{ end }}]
- apiGroups: [autoscaling.k8s.io]
  resources: [verticalpodautoscalers]
  verbs: [get, list, watch]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, list, watch]
# Workloads: replicas by their scale; templates for `apply: Recreate`; annotations of adopted recommendations.
- apiGroups: [apps]
  resources: [deployments, statefulsets, replicasets, daemonsets]
  verbs: [get, list, watch{{ if .Values.rights.templates }}, patch{{ end }}]
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [get, patch]
{{- range .Values.targets }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [get, list]
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}/scale]
  verbs: [get, patch]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
{{- if .Values.rights.resize }}
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
{{- end }}
# What may stand in the way of larger requests, and of a rollout.
- apiGroups: [""]
  resources: [resourcequotas, limitranges]
  verbs: [get, list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Usage seen so far, one ConfigMap for each object that sizes containers.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch]
# Measurements.
- apiGroups: [metrics.k8s.io]
  resources: [pods]
  verbs: [get, list]
- apiGroups: [custom.metrics.k8s.io]
  resources: ["*"]
  verbs: [get, list]
- apiGroups: [external.metrics.k8s.io]
  resources: ["*"]
  verbs: [get, list]
{{- end -}}

{{- define "trimtab.subject" -}}
- {kind: ServiceAccount, name: {{ include "trimtab.name" . }}, namespace: {{ .Release.Namespace }}}
{{- end -}}
