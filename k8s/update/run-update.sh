# Starts a copy of the suspended RayJob, and ends as it ended.
set -eu
now=citeray-update-now
kubectl delete rayjob "$now" --ignore-not-found --wait
kubectl get rayjob citeray-update --output json |
  jq --arg name "$now" '{apiVersion, kind, metadata: {name: $name},
    spec: (.spec | .suspend = false)}' |
  kubectl create --filename -
state=
until [ "$state" = Complete ] || [ "$state" = Failed ]; do
  sleep "${CITERAY_POLL_S:-20}"
  # A busy API server is asked again; the CronJob's deadline ends it.
  state=$(kubectl get rayjob "$now" --output 'jsonpath={.status.jobDeploymentStatus}') || true
done
kubectl get rayjob "$now" --output 'jsonpath={.status.jobStatus} {.status.message}{"\n"}'
[ "$(kubectl get rayjob "$now" --output 'jsonpath={.status.jobStatus}')" = SUCCEEDED ]
