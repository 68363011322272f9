#!/usr/bin/env bash
# Install a lock file into a virtual environment, unless this lock is already installed.
# usage: install.sh PYTHON VENV LOCK
set -euo pipefail
python=$1 venv=$2 lock=$3
stamp=$venv/$(basename "$lock")

if cmp -s "$lock" "$stamp"; then
  touch "$stamp"
  exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "error: $python is $("$python" --version 2>&1); Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2
  exit 1
fi
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" || {
    rm -rf "$venv"
    echo "error: $python could not make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
  }
fi
# uv stops if it cannot write its cache below the home folder.
cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/}/.cache}/uv}
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || export UV_NO_CACHE=1
echo "installing $lock into $venv (once; again only when the lock changes)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/tools.lock
# Compile now: otherwise every process of the study compiles every import again.
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --compile-bytecode --require-hashes -r "$lock"
# The command `ttf`, which reads the code of this checkout.
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
cp "$lock" "$stamp"
