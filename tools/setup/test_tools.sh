#!/usr/bin/env bash
# Install the system packages of the tests in a browser, with a real Slurm and against R (Debian or Ubuntu, root).
set -euo pipefail
packages=()
command -v chromium >/dev/null || packages+=(chromium)
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || packages+=("$(apt-cache show firefox-esr >/dev/null 2>&1 && echo firefox-esr || echo firefox)")
fc-list 2>/dev/null | grep -q DejaVu || packages+=(fontconfig fonts-dejavu-core)
# The page's widths are tested with the fonts of its readers.
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || packages+=("$(apt-cache show firefox-esr >/dev/null 2>&1 && echo firefox-esr || echo firefox)")
fc-list 2>/dev/null | grep -q LiberationSans || packages+=(fontconfig fonts-liberation)
Rscript -e 'library(survival)' >/dev/null 2>&1 || packages+=(r-cran-survival)
PATH="$PATH:/usr/sbin:/sbin"
for tool in slurmctld slurmdbd sacct mariadbd munged; do
  if ! command -v "$tool" >/dev/null; then
    packages+=(slurm-wlm slurmdbd slurm-client munge mariadb-server)
    break
  fi
done
if [ "${#packages[@]}" = 0 ]; then
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "error: make test-tools installs system packages: run it as root" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
