{{- define "trimtab.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "trimtab" $name) }}{{ $name = printf "%s-trimtab" $name }}{{ end -}}
{{ $name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Of one shard; alone it has the name that it always had. */}}
{{- define "trimtab.deployment" -}}
{{- if eq .shards 1 }}{{ .account }}{{ else }}{{ printf "%s-%d" (.account | trunc 59 | trimSuffix "-") .shard }}{{ end -}}
{{- end -}}

{{- define "trimtab.selector" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "trimtab.labels" -}}
{{ include "trimtab.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Where the leader's lease is: with those who must not lead at the same time. */}}
{{- define "trimtab.home" -}}
{{ .Values.namespace | default .Release.Namespace }}
{{- end -}}

{{- define "trimtab.tokenSecret" -}}
{{ .Values.api.tokenSecret | default (printf "%s-api" (include "trimtab.name" . | trunc 59 | trimSuffix "-")) }}
{{- end -}}

{{- define "trimtab.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}
