#!/bin/bash
# The real perf_analyzer, with its own arguments: perf-analyzer.sh -m digits -u 127.0.0.1:8000 -i http --concurrency-range 8
set -euo pipefail
source "$(dirname "$0")/paths.sh"
"$(dirname "$0")/setup-perf-analyzer.sh"
exec "$newer/ld-linux-x86-64.so.2" --library-path "$newer" "$peer/perf/perf_analyzer/bin/perf_analyzer" "$@"
