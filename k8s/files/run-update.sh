# Starts one update and ends as it ends. A run by hand while another is at work starts nothing.
set -eu
here=$(dirname "$0")
job=rayjob/citeray-update
look() { kubectl get "$job" --ignore-not-found --output 'jsonpath={.metadata.uid} {.status.jobDeploymentStatus}'; }
before=$(look)
if [ -n "$before" ]; then
  uid=${before%% *}
  case "${before#* }" in
    Complete|Failed|ValidationFailed) ;;
    *) echo "$job: another update is at work, so none is started" >&2; exit 1 ;;
  esac
  # By its uid: never one that another run has started since.
  printf '{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "%s"}}' "$uid" |
    kubectl delete --raw "/apis/ray.io/v1/namespaces/$CITERAY_NAMESPACE/rayjobs/citeray-update" --filename -
  while after=$(look) && [ "${after%% *}" = "$uid" ]; do sleep "${CITERAY_POLL_S:-20}"; done
fi
# Of two runs that come this far one creates it; the other is told that it exists.
kubectl create --filename "$here/rayjob.yaml"
exec sh "$here/wait.sh" "$job"
