#!/bin/bash
# Brings perf_analyzer 2.60 from PyPI, and from Debian 13 the C library that it needs. About 30 MB and some seconds, once.
set -euo pipefail
source "$(dirname "$0")/paths.sh"
[ -x "$peer/perf/perf_analyzer/bin/perf_analyzer" ] && [ -e "$newer/libc.so.6" ] && exit 0

say "downloading perf_analyzer"
rm -rf "$peer/perf" "$peer/trixie"
pip download --quiet --no-deps --only-binary=:all: --platform manylinux_2_38_x86_64 --dest "$peer/perf" perf-analyzer==2.60.0
python3 -m zipfile -e "$peer"/perf/perf_analyzer-*.whl "$peer/perf"
rm "$peer"/perf/*.whl
chmod +x "$peer/perf/perf_analyzer/bin/perf_analyzer"

say "downloading the C library of Debian 13"
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null | grep -v snapshot | head -1 || true)
[ -n "$mirror" ] || { say "no Debian mirror in /etc/apt: expected one, to take the C library of Debian 13 from"; exit 1; }
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
mkdir -p "$lists"/{lists/partial,cache/archives/partial} "$peer/trixie"
touch "$lists/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > "$lists/sources"
# apt with lists and state of its own: the machine's stay as they are.
apt=(apt-get --quiet --quiet -o "Dir::Etc::SourceList=$lists/sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$lists/lists"
  -o "Dir::State::Status=$lists/status" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User= -o Acquire::Languages=none)
"${apt[@]}" update >&2
cd "$lists"
"${apt[@]}" download libc6 libgcc-s1 libstdc++6 libssl3t64 libzstd1 zlib1g >&2
for package in *.deb; do dpkg-deb --extract "$package" "$peer/trixie/root"; done
