{{/* A pod of a Ray cluster. Arguments: root, kind (a key of `sizes`), part (citeray/part), place,
     priority, account, head (boolean), serves (boolean), group, asks (API server, boolean). */}}
{{- define "citeray.rayPod" -}}
{{- $root := .root -}}
{{- $size := index $root.Values.sizes .kind -}}
{{- $image := include "citeray.image" (list $root (ternary "gpu" "cpu" (gt (int ($size.gpu | default 0)) 0))) -}}
{{- $models := $root.Values.storage.models -}}
{{- $batches := and .serves (eq .kind "models") -}}
{{- $pulls := and (not $models.enabled) .serves (has .kind (list "models" "llm")) -}}
{{- $store := include "citeray.gi" $size.objectStore | int -}}
{{- $shared := $size.sharedMemory | default (printf "%dGi" (add $store 1)) -}}
metadata:
  labels:
    {{- include "citeray.podLabels" $root | nindent 4 }}
    citeray/part: {{ .part }}
    {{- if .asks }}
    citeray/asks-api-server: "yes"
    {{- end }}
  annotations:
    # Changed settings create a new Ray cluster.
    checksum/settings: {{ include "citeray.settings" $root | sha256sum | trunc 16 | quote }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ .asks }}
  terminationGracePeriodSeconds: {{ ternary $root.Values.service.terminationGraceSeconds 60 .serves }}
  securityContext: {{ include "citeray.podSecurity" 10001 | nindent 4 }}
  {{- include "citeray.placement" (list $root .place .priority) | nindent 2 }}
  {{- if and .serves (not .head) }}
  {{- include "citeray.spread" .group | nindent 2 }}
  {{- end }}
  {{- if or $models.enabled $pulls (eq $root.Values.corpus.source "sample") }}
  initContainers:
  {{- if $models.enabled }}
  - name: wait-for-models
    image: {{ $image }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [sh, -c, "until [ -e /models/.filled-{{ include "citeray.modelsHash" $root }} ]; do sleep 5; done"]
    securityContext: {{ include "citeray.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 16Mi}
      limits: {cpu: 100m, memory: 64Mi, ephemeral-storage: 16Mi}
    volumeMounts:
    - {name: models, mountPath: /models, readOnly: true}
    - {name: scratch, mountPath: /tmp, subPath: tmp}
  {{- end }}
  {{- if $pulls }}
  # Without the shared cache, each pod downloads its models to its node's disk before Ray starts.
  - name: pull-models
    image: {{ $image }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [citeray, models, pull, --config, /etc/citeray/settings.yaml
      {{- if eq .kind "llm" }}, --language-models
      {{- else if gt (int $root.Values.sizes.llm.replicas) 0 }}, --no-language-models
      {{- end }}]
    securityContext: {{ include "citeray.containerSecurity" . | nindent 6 }}
    env:
    - {name: HOME, value: /home/citeray}
    - {name: CITERAY_MODELS, value: /models}
    envFrom:
    - secretRef: {name: {{ $root.Values.secrets.stores }}, optional: true}
    resources: {{ include "citeray.resources" (list $root "fillModels") | nindent 6 }}
    volumeMounts:
    - {name: settings, mountPath: /etc/citeray, readOnly: true}
    - {name: scratch, mountPath: /models, subPath: models}
    - {name: scratch, mountPath: /tmp, subPath: tmp}
    - {name: scratch, mountPath: /home/citeray, subPath: home}
  {{- end }}
  {{- if eq $root.Values.corpus.source "sample" }}
  # The sample is the same in every pod.
  - name: write-sample
    image: {{ $image }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [citeray, sample, /tmp/sample]
    securityContext: {{ include "citeray.containerSecurity" . | nindent 6 }}
    resources:
      requests: {cpu: 100m, memory: 1Gi, ephemeral-storage: 64Mi}
      limits: {cpu: "1", memory: 1Gi, ephemeral-storage: 64Mi}
    volumeMounts:
    - {name: scratch, mountPath: /tmp, subPath: tmp}
    - {name: scratch, mountPath: /home/citeray, subPath: home}
  {{- end }}
  {{- end }}
  containers:
  - name: {{ ternary "ray-head" "ray-worker" .head }}
    image: {{ $image }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    securityContext: {{ include "citeray.containerSecurity" . | nindent 6 }}
    ports:
    - {name: metrics, containerPort: 8080}
    {{- if .head }}
    - {name: gcs-server, containerPort: 6379}
    - {name: dashboard, containerPort: 8265}
    - {name: dash-metrics, containerPort: 44227}
    {{- end }}
    {{- if and .head .asks }}
    - {name: as-metrics, containerPort: 44217}
    {{- end }}
    {{- if .serves }}
    - {name: serve, containerPort: 8000}
    {{- end }}
    env:
    - {name: HOME, value: /home/citeray}
    - {name: CITERAY_MODELS, value: /models}
    # In pods, Ray reports the node's disk only with this.
    - {name: RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE, value: "1"}
    {{- if .serves }}
    # Limits on request headers, in the proxy of each node.
    - {name: RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH, value: "serve.http.header_limits:install"}
    # Detect a lost proxy within a few seconds; by default Ray checks every ten.
    - {name: RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S, value: "1"}
    # On a busy node a proxy takes longer to start than the 5 s after which Ray starts another.
    - {name: RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S, value: "20"}
    - name: CITERAY_API_KEYS
      valueFrom:
        secretKeyRef: {name: {{ $root.Values.secrets.apiKeys }}, key: keys}
    {{- end }}
    {{- include "citeray.storeEnvironment" $root | nindent 4 }}
    envFrom:
    - secretRef: {name: {{ $root.Values.secrets.stores }}, optional: {{ not $root.Values.objectStore.enabled }}}
    {{- if and .serves (not .head) }}
    lifecycle:
      preStop:
        exec:
          # Serve moves the replicas to other nodes, and the proxy of this pod leaves the Service.
          command:
          - sh
          - -c
          - |
            ray drain-node --reason DRAIN_NODE_REASON_PREEMPTION --reason-message "the pod is to end" --deadline-remaining-seconds {{ $root.Values.service.drainSeconds }} || true
            sleep {{ $root.Values.service.drainSeconds }}
    {{- end }}
    resources: {{ include "citeray.resources" (list $root .kind) | nindent 6 }}
    volumeMounts:
    - {name: settings, mountPath: /etc/citeray, readOnly: true}
    - {name: scratch, mountPath: /tmp, subPath: tmp}
    - {name: scratch, mountPath: /home/citeray, subPath: home}
    - {name: scratch, mountPath: /app/.citeray, subPath: citeray}
    - {name: scratch, mountPath: /cache, subPath: cache}
    {{- if $models.enabled }}
    - {name: models, mountPath: /models, readOnly: {{ $models.readOnly }}}
    {{- else }}
    - {name: scratch, mountPath: /models, subPath: models}
    {{- end }}
    - {name: shared-memory, mountPath: /dev/shm}
    {{- if $batches }}
    - {name: batches, mountPath: /batches}
    {{- end }}
  volumes:
  - name: settings
    configMap: {name: citeray-settings}
  - name: scratch
    {{- include "citeray.scratch" (list $root .kind) | nindent 4 }}
  - name: shared-memory
    emptyDir: {medium: Memory, sizeLimit: {{ $shared }}}
  {{- if $models.enabled }}
  - name: models
    persistentVolumeClaim: {claimName: {{ include "citeray.modelsClaim" $root }}, readOnly: {{ $models.readOnly }}}
  {{- end }}
  {{- if $batches }}
  - name: batches
    persistentVolumeClaim: {claimName: {{ include "citeray.batchesClaim" $root }}}
  {{- end }}
{{- end -}}

{{/* Nine tenths of the object store, in bytes: with its overhead it must fit /dev/shm. */}}
{{- define "citeray.objectStoreBytes" -}}
{{ mul (include "citeray.gi" .objectStore | int) 966367641 }}
{{- end -}}

{{/* The head of a Ray cluster; arguments as for `citeray.rayPod`. */}}
{{- define "citeray.head" -}}
rayStartParams:
  num-cpus: "0"
  dashboard-host: 0.0.0.0
  object-store-memory: {{ include "citeray.objectStoreBytes" (index .root.Values.sizes .kind) | quote }}
template: {{ include "citeray.rayPod" (merge (dict "head" true "place" "system" "group" "headgroup") .) | nindent 2 }}
{{- end -}}

{{/* A group of workers; arguments as for `citeray.rayPod`. */}}
{{- define "citeray.workers" -}}
{{- $size := index .root.Values.sizes .kind -}}
groupName: {{ .group }}
replicas: {{ $size.replicas }}
minReplicas: {{ $size.replicas }}
maxReplicas: {{ max (int $size.maxReplicas) (int $size.replicas) }}
{{- if .serves }}
labels: {citeray/pool: {{ .group }}}
{{- end }}
rayStartParams:
  object-store-memory: {{ include "citeray.objectStoreBytes" $size | quote }}
{{- with $size.accelerator }}
# The resource that Ray will detect on this node, for the autoscaler before a node has started.
resources: {"accelerator_type:{{ . }}": "1"}
{{- end }}
template: {{ include "citeray.rayPod" (merge (dict "head" false "asks" false "account" "citeray-worker") .) | nindent 2 }}
{{- end -}}

{{/* A RayJob over the index. Arguments: root, name, script, head and workers (keys of `sizes`),
     place, retries, deadline, queue. A failed attempt is repeated on a new cluster and resumes where the last
     one stopped, because the index is in the object store. */}}
{{- define "citeray.rayJob" -}}
{{- $root := .root -}}
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "citeray.labels" $root | nindent 4 }}
    {{- with .queue }}
    kueue.x-k8s.io/queue-name: {{ . }}
    {{- end }}
spec:
  entrypoint: sh /etc/citeray/{{ .script }}
  submissionMode: K8sJobMode
  backoffLimit: {{ .retries }}
  activeDeadlineSeconds: {{ .deadline }}
  preRunningDeadlineSeconds: 7200
  shutdownAfterJobFinishes: true
  ttlSecondsAfterFinished: 600
  submitterConfig:
    backoffLimit: 2
  submitterPodTemplate:
    metadata:
      labels:
        {{- include "citeray.podLabels" $root | nindent 8 }}
        citeray/part: submit
    spec:
      restartPolicy: Never
      serviceAccountName: citeray-worker
      automountServiceAccountToken: false
      securityContext: {{ include "citeray.podSecurity" 10001 | nindent 8 }}
      {{- include "citeray.placement" (list $root "system" "batch") | nindent 6 }}
      containers:
      - name: submitter
        image: {{ include "citeray.image" (list $root "cpu") }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        securityContext: {{ include "citeray.containerSecurity" . | nindent 10 }}
        env:
        - {name: HOME, value: /tmp}
        resources: {{ include "citeray.resources" (list $root "submitter") | nindent 10 }}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
      volumes:
      - name: tmp
        {{- include "citeray.scratch" (list $root "submitter") | nindent 8 }}
  rayClusterSpec:
    rayVersion: {{ include "citeray.rayVersion" . }}
    authOptions:
      mode: token
      secretName: {{ $root.Values.secrets.rayToken }}
    headGroupSpec: {{ include "citeray.head" (dict "root" $root "kind" .head "part" "index" "priority" "batch" "account" "citeray-worker" "serves" false "asks" false) | nindent 6 }}
    workerGroupSpecs:
    - {{ include "citeray.workers" (dict "root" $root "kind" .workers "part" "index" "place" .place "priority" "batch" "group" .workers "serves" false) | nindent 6 | trim }}
{{- end -}}

{{- define "citeray.rayVersion" -}}
2.60.0
{{- end -}}
