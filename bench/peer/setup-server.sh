#!/bin/bash
# Brings a real tritonserver 2.51 (24.10, CPU) with its Python backend and response cache, out of the PyPI package nvidia-pytriton.
# About 500 MB and a minute, once. It has no ONNX backend: its models run the same ONNX files behind the Python backend.
set -euo pipefail
source "$(dirname "$0")/paths.sh"

install_server() {
  say "downloading tritonserver and its clients"
  [ -x "$peer/venv/bin/python" ] || python3 -m venv --without-pip "$peer/venv"
  site=$("$peer/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  pip --python "$peer/venv/bin/python" install --quiet nvidia-pytriton==0.7.0 onnxruntime==1.31.1 --requirement "$root/test/requirements.txt"

  rm -rf "$peer/backends" "$peer/caches"
  mkdir -p "$peer/backends"
  server=$site/pytriton/tritonserver
  cp -r "$server/backends/python" "$peer/backends/python"
  cp -r "$server/caches" "$peer/caches"
  # The stub is built for one Python, and looks for numpy beside itself.
  install -m 755 "$server/python_backend_stubs/3.11/triton_python_backend_stub" "$peer/backends/python/"
  ln -s "$site/numpy" "$site/numpy.libs" "$peer/backends/python/"
  touch "$peer/ready"
}

[ -e "$peer/ready" ] || install_server
# Also when there are other models than the last time.
script=$root/bench/peer/make_models.py
[ "$peer/models/made" -nt "$script" ] || { "$peer/venv/bin/python" "$script" "$peer/models" && touch "$peer/models/made"; }
