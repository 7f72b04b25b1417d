{{/*
What the operator may do in the namespaces it serves; cluster-wide or in one, it is the same. Each verb is needed:
tests/e2e/test_charts_rights.py names the code.
*/}}
{{- define "trimtab.rules" -}}
# Our kinds and those of Crane and HVPA: read, and say in the status what was done.
- apiGroups: [trimtab.dev]
  resources: [autoscalers]
  verbs: [get, list, watch]
- apiGroups: [autoscaling.k8s.io]
  resources: [hvpas]
  verbs: [get, list, watch]
- apiGroups: [autoscaling.crane.io]
  resources: [effectivehorizontalpodautoscalers]
  verbs: [get, list, watch{{ if .Values.rights.adoption }}, create, patch{{ end }}]
- apiGroups: [trimtab.dev]
  resources: [autoscalers/status]
  verbs: [patch]
- apiGroups: [autoscaling.k8s.io]
  resources: [hvpas/status]
  verbs: [patch]
- apiGroups: [autoscaling.crane.io]
  resources: [effectivehorizontalpodautoscalers/status]
  verbs: [patch]
# Recommendations are made for an Analytics and go with what it selects.
- apiGroups: [analysis.crane.io]
  resources: [analytics]
  verbs: [get, list, watch]
- apiGroups: [analysis.crane.io]
  resources: [recommendations]
  verbs: [get, list, watch, create, delete]
- apiGroups: [analysis.crane.io]
  resources: [analytics/status, recommendations/status]
  verbs: [patch]
# Who else moves a workload. HorizontalPodAutoscalers: patched where annotated `predictive: "true"`.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch{{ if .Values.rights.floors }}, patch{{ end }}]
- apiGroups: [autoscaling.k8s.io]
  resources: [verticalpodautoscalers]
  verbs: [list, watch]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, watch]
- apiGroups: [datadoghq.com]
  resources: [watermarkpodautoscalers]
  verbs: [list, watch]
- apiGroups: [jamiethompson.me]
  resources: [predictivehorizontalpodautoscalers]
  verbs: [list, watch]
# Workloads: replicas by their scale. Templates are patched by `rights.templates` alone.
- apiGroups: [apps]
  resources: [deployments, statefulsets, replicasets, daemonsets]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [deployments/scale, statefulsets/scale, replicasets/scale]
  verbs: [get, patch]
{{- range .Values.targets }}
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}]
  verbs: [get]
- apiGroups: [{{ .group | quote }}]
  resources: [{{ .resource }}/scale]
  verbs: [get, patch]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if .Values.rights.resize }}
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
{{- end }}
# What may stand in the way of larger requests, and of a rollout.
- apiGroups: [""]
  resources: [resourcequotas, limitranges]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Measurements. Resources of the last two are names of metrics: a named object is a get, all series are a list.
- apiGroups: [metrics.k8s.io]
  resources: [pods]
  verbs: [list]
- apiGroups: [custom.metrics.k8s.io]
  resources: ["*"]
  verbs: [get]
- apiGroups: [external.metrics.k8s.io]
  resources: ["*"]
  verbs: [list]
{{- end -}}

{{/* Pod templates and annotations of workloads: only where `rights.templates` says so. */}}
{{- define "trimtab.templates" -}}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [patch]
{{- end -}}

{{- define "trimtab.subject" -}}
- {kind: ServiceAccount, name: {{ include "trimtab.name" . }}, namespace: {{ .Release.Namespace }}}
{{- end -}}
