# Pods as CSV: kubectl get pods --all-namespaces -o json | jq -r -f config/mappings/kubernetes.jq > pods.csv
# Fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
["uid", "name", "namespace", "created", "started", "finished", "status", "reason", "exit_code", "gpus"],
(.items[] | (.status.phase // "Unknown") as $phase
  | [.status.containerStatuses[]?.state] as $states
  | [$states[].terminated | values] as $ended
  | [$ended[].reason // empty] as $reasons
  | [
      .metadata.uid, .metadata.name, .metadata.namespace, .metadata.creationTimestamp,
      # The first container that runs or has run. The pod's own startTime is before its images are pulled.
      ([$states[] | (.running // .terminated).startedAt // empty] | min),
      (if $phase == "Succeeded" or $phase == "Failed" then [$ended[].finishedAt // empty] | max else null end),
      (if $phase != "Failed" then $phase
        elif .status.reason == "DeadlineExceeded" then .status.reason
        elif $reasons | any(. == "OOMKilled") then "OOMKilled"
        else $phase end),
      (.status.reason // ([$reasons[] | select(. != "Completed")] | first)),
      ([$ended[].exitCode // empty] | max),
      # An extended resource is a whole number, and its limit is its request.
      ([.spec.containers[].resources.limits // {} | (.["nvidia.com/gpu"], .["amd.com/gpu"]) // 0 | tonumber] | add)
    ])
| @csv
