{{/* The settings file that every pod reads: derived settings, overridden by `settings`. */}}
{{- define "citeray.settings" -}}
{{- $stages := dict -}}
{{- range list "gateway" "expander" "encoder" "reranker" "writer" -}}
{{- $_ := set $stages . (dict "pool" "models") -}}
{{- end -}}
{{- $_ := set $stages "shard" (dict "pool" (include "citeray.shardPool" .)) -}}
{{- $_ := set $stages "batches" (dict "folder" "/batches") -}}
{{- $service := "citeray-serve-svc" -}}
{{- $inside := printf "%s.%s" $service .Release.Namespace -}}
{{- $hosts := list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside) -}}
{{- with .Values.expose.host }}{{- $hosts = append $hosts . -}}{{- end -}}
{{- $_ := set $stages "http" (dict "hosts" $hosts) -}}
{{- $derived := dict
  "index" (dict "path" (printf "%s/index" (trimSuffix "/" .Values.corpus.store)) "cache" "/cache")
  "entrez" (dict "cache" "/tmp/entrez")
  "serve" $stages -}}
{{- range $role, $model := .Values.models -}}
{{- $_ := set $derived $role (dict "model" (printf "hf:%s@%s" $model.name $model.revision)) -}}
{{- end -}}
{{ toYaml (mergeOverwrite $derived (deepCopy .Values.settings)) }}
{{- end -}}

{{/* Serve's configuration, which the RayService applies. */}}
{{- define "citeray.serveConfig" -}}
proxy_location: EveryNode
http_options:
  host: 0.0.0.0
  port: 8000
logging_config:
  encoding: JSON
applications:
{{- if or (eq (dig "llm" "kind" "vllm" .Values.settings) "vllm") .Values.settings.models }}
- name: citeray-llm
  route_prefix: null
  import_path: serve.llm_app:build
  args: {config: /etc/citeray/settings.yaml}
{{- end }}
- name: citeray
  route_prefix: /
  import_path: serve.app:build
  args: {config: /etc/citeray/settings.yaml}
{{- end -}}

{{/* Where the sources of the index are. */}}
{{- define "citeray.sources" -}}
{{- if eq .Values.corpus.source "sample" -}}
/tmp/sample
{{- else -}}
{{ trimSuffix "/" .Values.corpus.store }}/pubmed
{{- end -}}
{{- end -}}

{{- define "citeray.buildScript" -}}
# Resumes after an interruption: downloaded files and embedded passages are reused, and a published
# index is not built again. Ray runs the checks of the last command on the workers, so that the head
# needs no disk for copies of segments.
set -eu
{{- if eq .Values.corpus.source "pubmed" }}
citeray download {{ include "citeray.sources" . }}{{ with .Values.corpus.files }} --files {{ . }}{{ end }}
{{- end }}
citeray index build {{ include "citeray.sources" . }} --config /etc/citeray/settings.yaml
citeray index verify --config /etc/citeray/settings.yaml
{{- end -}}

{{- define "citeray.updateScript" -}}
# While another build or update holds the lease of the index, the last command fails and changes
# nothing. If only the first files of the baseline are indexed, a gap precedes the update files,
# which the command must be told to permit.
set -eu
{{- if eq .Values.corpus.source "pubmed" }}
citeray download {{ include "citeray.sources" . }} --no-baseline{{ with .Values.corpus.updateFiles }} --files {{ . }}{{ end }}
{{- end }}
citeray index update {{ include "citeray.sources" . }} --config /etc/citeray/settings.yaml{{ if .Values.corpus.files }} --allow-gap{{ end }}{{ range .Values.update.options }} {{ . }}{{ end }}
{{- end -}}

{{- define "citeray.compactScript" -}}
# Resumes after an interruption: complete shards are kept. While another build or update holds the
# lease of the index, the command fails and changes nothing.
set -eu
citeray index compact{{ if .Values.compact.prune }} --prune{{ end }} --config /etc/citeray/settings.yaml{{ range .Values.compact.options }} {{ . }}{{ end }}
{{- end -}}

{{- define "citeray.fillScript" -}}
# Models in the cache are not fetched again, but every byte is verified. Adapters are merged here,
# because pods mount the cache read-only. Pods wait for this marker file.
set -eu
citeray models pull --config /etc/citeray/settings.yaml
python - <<'END'
from cluster.models.store import ModelStore
store = ModelStore()
for model in store.list():
    print(model.name, store.verify(model.name))
END
touch /models/.filled-{{ include "citeray.modelsHash" . }}
{{- end -}}
