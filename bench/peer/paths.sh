# Sourced by the scripts beside it: where the reference server and its tools live.
# TRITON_PEER names a set-up that other checkouts share; otherwise each checkout has its own.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
peer=${TRITON_PEER:-$root/.tidepool/peer}
# perf_analyzer is built for a newer C library than Debian 12 has; this one belongs to it alone.
newer=$peer/trixie/root/usr/lib/x86_64-linux-gnu
mkdir -p "$peer"

say() { echo "bench/peer: $*" >&2; }

# pip, also where Debian's Python came without: its wheel runs as it is.
pip() {
  local wheel
  wheel=$(ls /usr/share/python-wheels/pip-*.whl "$root"/.tidepool/debian/usr/share/python-wheels/pip-*.whl 2> /dev/null | head -1 || true)
  if [ -n "$wheel" ]; then python3 "$wheel/pip" "$@" >&2; else python3 -m pip "$@" >&2; fi
}
