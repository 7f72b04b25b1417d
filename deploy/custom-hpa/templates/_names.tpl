{{/* TARGET-custom-hpa[-SUFFIX], as nanit custom-hpa names it */}}
{{- define "custom-hpa.name" -}}
{{ .Values.target.deployment }}-custom-hpa{{ with .Values.appNameSuffix }}-{{ . }}{{ end }}
{{- end -}}

{{- define "custom-hpa.labels" -}}
app.kubernetes.io/name: custom-hpa
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "custom-hpa.selector" -}}
app.kubernetes.io/name: custom-hpa
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "custom-hpa.image" -}}
{{- if contains "/" .Values.imageTag -}}
{{ .Values.imageTag }}
{{- else -}}
trimtab/trimtab:{{ .Values.imageTag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
