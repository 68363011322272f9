#!/usr/bin/env bash
# Resolve pyproject.toml into lock files with versions and hashes but without addresses.
# usage: lock.sh BIN
set -euo pipefail
uv=$1/uv
common=(--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet)
# One version for every Python, so that results do not depend on the Python of a machine.
common+=(--fork-strategy fewest)
"$uv" pip compile "${common[@]}" pyproject.toml -o requirements.lock
"$uv" pip compile "${common[@]}" pyproject.toml --extra test -c requirements.lock -o requirements-test.lock
"$uv" pip compile "${common[@]}" pyproject.toml --extra cluster -c requirements.lock -o requirements-cluster.lock
"$uv" pip compile "${common[@]}" pyproject.toml --extra cluster --extra cluster-test -c requirements-test.lock -o requirements-cluster-test.lock
# The S3 library needs an older python-dateutil than statsmodels installs elsewhere.
"$uv" pip compile "${common[@]}" pyproject.toml --extra kubernetes -o requirements-kubernetes.lock \
  -c <(grep -o '^[a-z0-9-]*==[^ ;\]*' requirements.lock | grep -v '^python-dateutil==')
"$uv" pip compile "${common[@]}" pyproject.toml --extra kubernetes --extra kubernetes-test -c requirements-kubernetes.lock -o requirements-kubernetes-test.lock
echo "uv==0.13.8" | "$uv" pip compile "${common[@]}" - -o requirements-uv.lock
echo "cyclonedx-python-lib[json-validation]==11.12.0" | "$uv" pip compile "${common[@]}" - -o requirements-sbom.lock
# Validates the archive in a test; separate, because it needs another version of a library than the study.
# The archive contains this bill of materials of requirements.lock. It is made here, so that no run needs its library.
apart=$(mktemp -d)
trap 'rm -rf "$apart"' EXIT
"$uv" venv --quiet --python "$1/python" "$apart/env"
"$uv" pip install --quiet --python "$apart/env/bin/python" --require-hashes -r requirements-sbom.lock
"$apart/env/bin/python" setup/sbom.py pyproject.toml requirements.lock sbom.cdx.json
