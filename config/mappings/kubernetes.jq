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
      # An extended resource is a whole number, and its limit is its request. Parts of a GPU have other names, such as
      # nvidia.com/mig-1g.10gb or nvidia.com/gpu.shared: which part is not known, so the number stays blank.
      ([.spec.containers[].resources.limits // {} | to_entries[]
          | select((.key | test("gpu|/mig-")) and (.value | tostring) != "0")]
        | map(select(.key == "nvidia.com/gpu" or .key == "amd.com/gpu") | .value | tonumber) as $whole
        | if length > 0 and $whole == [] then null else $whole | add // 0 end)
    ])
| @csv
