#!/usr/bin/env bash
# Resolve pyproject.toml into locks/, with versions and hashes but without addresses.
# usage: lock.sh BIN
set -euo pipefail
uv=$1/uv
common=(--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet)
# One version for every Python, so that results do not depend on the Python of a machine.
common+=(--fork-strategy fewest)
extras=(--extra pdf)
"$uv" pip compile "${common[@]}" "${extras[@]}" pyproject.toml -o locks/study.lock
"$uv" pip compile "${common[@]}" "${extras[@]}" pyproject.toml --extra test -c locks/study.lock -o locks/test.lock
"$uv" pip compile "${common[@]}" "${extras[@]}" pyproject.toml --extra cluster --extra cluster-test -c locks/test.lock -o locks/cluster.lock
"$uv" pip compile "${common[@]}" "${extras[@]}" pyproject.toml --extra kubernetes --extra kubernetes-test -c locks/study.lock -o locks/kubernetes.lock
# What installs an environment and the package into it; what both have is of one version.
printf 'uv==0.13.8\nhatchling==1.33.0\n' | "$uv" pip compile "${common[@]}" - -c locks/study.lock -o locks/tools.lock
