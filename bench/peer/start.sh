#!/bin/bash
# Runs the real tritonserver in the foreground: start.sh MODEL_REPOSITORY [any flag of tritonserver]. Ends on SIGTERM.
set -euo pipefail
source "$(dirname "$0")/paths.sh"
"$(dirname "$0")/setup-server.sh"
repository=${1:?start.sh MODEL_REPOSITORY [flags]}
shift
site=$("$peer/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export LD_LIBRARY_PATH=$site/nvidia_pytriton.libs PYTHONPATH=$site TRITON_PEER_SITE=$site
exec "$site/pytriton/tritonserver/bin/tritonserver" --model-repository="$repository" \
  --backend-directory="$peer/backends" --cache-directory="$peer/caches" --cache-config=local,size=268435456 \
  --http-address=127.0.0.1 --grpc-address=127.0.0.1 --metrics-address=127.0.0.1 "$@"
