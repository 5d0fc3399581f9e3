# Starts an update and exits with its result. Starts nothing while another update is running.
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
  # Delete it by its uid, so that an update that another run has started since is not deleted.
  printf '{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "%s"}}' "$uid" |
    kubectl delete --raw "/apis/ray.io/v1/namespaces/$CITERAY_NAMESPACE/rayjobs/citeray-update" --filename -
  while after=$(look) && [ "${after%% *}" = "$uid" ]; do sleep "${CITERAY_POLL_S:-20}"; done
fi
# If two runs get this far, one creates the job, and the other fails because it exists.
kubectl create --filename "$here/rayjob.yaml"
exec sh "$here/wait.sh" "$job"
