# Waits for the end of a RayJob or Job and exits with its result: sh wait.sh rayjob/citeray-build
# CITERAY_WAIT_S limits the wait (default: three days), CITERAY_POLL_S is the polling interval (s).
set -eu
what=$1
case "$what" in
  rayjob/*) path='jsonpath=found {.status.jobDeploymentStatus} {.status.jobStatus} {.status.message}' ;;
  job/*) path='jsonpath=found {.status.conditions[?(@.status=="True")].type}' ;;
  *) echo "$what: name a rayjob/NAME or a job/NAME" >&2; exit 2 ;;
esac
end=$(($(date +%s) + ${CITERAY_WAIT_S:-259200}))
while [ "$(date +%s)" -le "$end" ]; do
  # If the API server is temporarily unavailable, ask again.
  if state=$(kubectl get "$what" --ignore-not-found --output "$path"); then
    case "$what $state" in
      "$what ") echo "$what: deleted before it ended" >&2; exit 1 ;;
      rayjob/*" found Complete SUCCEEDED "*|job/*" found "*Complete*) echo "$what: succeeded"; exit 0 ;;
      rayjob/*" found Complete "*|rayjob/*" found Failed "*|rayjob/*" found ValidationFailed "*|job/*" found "*Failed*)
        echo "$what: ${state#found }" >&2; exit 1 ;;
    esac
  fi
  sleep "${CITERAY_POLL_S:-20}"
done
echo "$what: not ended in time" >&2
exit 1
