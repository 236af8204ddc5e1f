{{- define "tollgate.labels" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/component: controller
{{- end }}

{{- define "tollgate.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.registry }}{{ $name = printf "%s/%s" .Values.image.registry $name }}{{ end -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $name .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $name (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end }}
