{{/* The image of a kind of pod by its flavour: `citeray.image (list $ "cpu")`. */}}
{{- define "citeray.image" -}}
{{- $root := index . 0 -}}
{{- $flavour := index . 1 -}}
{{- $image := $root.Values.image -}}
{{- with index $image.digests $flavour -}}
{{ $image.repository }}@{{ . }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}-{{ $flavour }}
{{- end -}}
{{- end -}}

{{- define "citeray.labels" -}}
app.kubernetes.io/name: citeray
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Labels of pods, without the chart's version, which would cause a new Ray cluster. */}}
{{- define "citeray.podLabels" -}}
app.kubernetes.io/name: citeray
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Gibibytes of a quantity such as 16Gi, as a whole number. */}}
{{- define "citeray.gi" -}}
{{ trimSuffix "Gi" . }}
{{- end -}}

{{/* Scratch disk of a kind in GiB; includes the models if there is no shared cache. */}}
{{- define "citeray.disk" -}}
{{- $root := index . 0 -}}
{{- $size := index . 1 -}}
{{- $disk := include "citeray.gi" $size.disk | int -}}
{{- if not $root.Values.storage.models.enabled -}}
{{- $disk = add $disk (include "citeray.gi" ($size.modelDisk | default "0Gi") | int) -}}
{{- end -}}
{{ $disk }}
{{- end -}}

{{- define "citeray.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "citeray.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Resource requests and limits of a kind: `citeray.resources (list $ "models")`. */}}
{{- define "citeray.resources" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $size := index $root.Values.sizes $kind -}}
{{- $disk := "" -}}
{{- if hasKey $size "disk" -}}
{{- $disk = include "citeray.disk" (list $root $size) -}}
{{- end -}}
requests:
  cpu: {{ $size.cpu | toString | quote }}
  memory: {{ $size.memory }}
  {{- with $disk }}
  ephemeral-storage: {{ . }}Gi
  {{- end }}
  {{- with $size.gpu }}
  nvidia.com/gpu: {{ . | toString | quote }}
  {{- end }}
limits:
  cpu: {{ $size.cores | default $size.cpu | toString | quote }}
  memory: {{ $size.memory }}
  {{- with $disk }}
  ephemeral-storage: {{ . }}Gi
  {{- end }}
  {{- with $size.gpu }}
  nvidia.com/gpu: {{ . | toString | quote }}
  {{- end }}
{{- end -}}

{{/* An emptyDir within the disk of a kind, which also holds the container's logs. */}}
{{- define "citeray.scratch" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $disk := include "citeray.disk" (list $root (index $root.Values.sizes $kind)) | int -}}
emptyDir: {sizeLimit: {{ div (mul $disk 1024 95) 100 }}Mi}
{{- end -}}

{{/* Placement of pods by a key of `scheduling`, with their priority and pull secrets. */}}
{{- define "citeray.placement" -}}
{{- $root := index . 0 -}}
{{- $place := index $root.Values.scheduling (index . 1) -}}
{{- $priority := index . 2 -}}
{{- with $place.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $place.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $place.nodeAffinity }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: {{ toYaml . | nindent 8 }}
{{- end }}
{{- if $root.Values.priorities.create }}
priorityClassName: {{ $root.Release.Namespace }}-{{ $priority }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Spread over nodes within one Ray cluster; an upgrade's second cluster counts separately. */}}
{{- define "citeray.spread" -}}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {ray.io/group: {{ . }}}
  matchLabelKeys: [ray.io/cluster]
{{- end -}}

{{- define "citeray.modelsClaim" -}}
{{ .Values.storage.models.existingClaim | default "citeray-models" }}
{{- end -}}

{{- define "citeray.batchesClaim" -}}
{{ .Values.storage.batches.existingClaim | default "citeray-batches" }}
{{- end -}}

{{/* Hash of the models, for the name of the marker file that pods wait for. */}}
{{- define "citeray.modelsHash" -}}
{{- $settings := include "citeray.settings" . | fromYaml -}}
{{- $named := pick $settings "over" "encoder" "recogniser" "reranker" "reader" "support" "llm" "models" "vocabulary" -}}
{{ printf "%s%s" (toYaml $named) (include "citeray.image" (list . "cpu")) | sha256sum | trunc 10 }}
{{- end -}}

{{/* Environment of the clients of object stores: endpoint, region and metadata access. */}}
{{- define "citeray.storeEnvironment" -}}
{{- if .Values.network.policies }}
# Policies block the address of EC2's instance roles, so each client of S3 would wait for a timeout.
- {name: AWS_EC2_METADATA_DISABLED, value: "true"}
{{- end }}
{{- if .Values.objectStore.enabled }}
- {name: AWS_ENDPOINT_URL, value: "http://citeray-object-store:9000"}
- {name: AWS_DEFAULT_REGION, value: us-east-1}
{{- end }}
{{- end -}}

{{/* Whether Ray's autoscaler runs in the pod of the head: "true", or empty. */}}
{{- define "citeray.autoscales" -}}
{{- if eq .Values.service.upgrade.type "NewClusterWithIncrementalUpgrade" -}}
true
{{- else -}}
{{- range list "retrieval" "models" "llm" -}}
{{- $size := index $.Values.sizes . -}}
{{- if gt (int $size.maxReplicas) (int $size.replicas) }}true{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The pool of the shards: `retrieval` if it has replicas, otherwise `models`. */}}
{{- define "citeray.shardPool" -}}
{{- if gt (int .Values.sizes.retrieval.replicas) 0 }}retrieval{{ else }}models{{ end -}}
{{- end -}}
