{{- define "gatehouse.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "gatehouse.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Labels of a part: call it with (list . "gateway"). */ -}}
{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ include "gatehouse.name" (first .) | quote }}
app.kubernetes.io/component: {{ last . | quote }}
{{- end }}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/version: {{ (first .).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (first .).Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" (first .).Chart.Name (first .).Chart.Version | quote }}
{{- end }}

{{- define "gatehouse.apiUrl" -}}
{{- required "Set apiUrl, or controlPlane.baseUrl: gateways reach the control plane by https" (.Values.apiUrl | default .Values.controlPlane.baseUrl) -}}
{{- end }}

{{- define "gatehouse.stateUrl" -}}
{{- if .Values.sqld.enabled -}}
https://{{ required "Set sqld.stateHost: the state is reached by TLS" .Values.sqld.stateHost }}
{{- else -}}
{{- required "Set database.stateUrl, or sqld.enabled" .Values.database.stateUrl -}}
{{- end -}}
{{- end }}

{{- define "gatehouse.ledgerUrl" -}}
{{- if .Values.sqld.enabled -}}
https://{{ required "Set sqld.ledgerHost: the ledger is reached by TLS" .Values.sqld.ledgerHost }}
{{- else -}}
{{- required "Set database.ledgerUrl, or sqld.enabled" .Values.database.ledgerUrl -}}
{{- end -}}
{{- end }}

{{- define "gatehouse.containerSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* Settings by their environment names. */ -}}
{{- define "gatehouse.env" -}}
{{- range $name, $value := . }}
- { name: {{ $name | quote }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- /* What a gateway is, whether it stands alone or beside an application: (list . "name of the token's secret"). */ -}}
{{- define "gatehouse.gatewayContainer" -}}
image: {{ include "gatehouse.image" (first .) | quote }}
imagePullPolicy: {{ (first .).Values.image.pullPolicy }}
args: [gateway]
env:
  - { name: SERVICE_API_URL, value: {{ include "gatehouse.apiUrl" (first .) | quote }} }
  - { name: SERVICE_GATEWAY_LISTEN, value: "0.0.0.0:7080" }
  - { name: SERVICE_DATA, value: /data }
  - { name: SERVICE_DRAIN_SECONDS, value: {{ (first .).Values.gateway.drainSeconds | quote }} }
  - name: SERVICE_API_TOKEN
    valueFrom:
      secretKeyRef: { name: {{ last . | quote }}, key: token }
  {{- include "gatehouse.env" (first .).Values.gateway.env | nindent 2 }}
ports:
  - { name: gatehouse, containerPort: 7080 }
# Ready when the first copy of the state is whole.
startupProbe:
  httpGet: { path: /readyz, port: gatehouse }
  periodSeconds: 1
  failureThreshold: 120
readinessProbe:
  httpGet: { path: /readyz, port: gatehouse }
  periodSeconds: 5
livenessProbe:
  httpGet: { path: /healthz, port: gatehouse }
  periodSeconds: 10
  failureThreshold: 3
resources: {{- toYaml (first .).Values.gateway.resources | nindent 2 }}
securityContext: {{- include "gatehouse.containerSecurity" . | nindent 2 }}
volumeMounts:
  - { name: gatehouse-data, mountPath: /data }
{{- end }}

{{- /* An init container that runs beside the application, started before it and stopped after it. */ -}}
{{- define "gatehouse.sidecar" -}}
name: gatehouse
restartPolicy: Always
{{ include "gatehouse.gatewayContainer" . }}
{{- end }}
