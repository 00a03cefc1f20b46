#!/usr/bin/env bash
# bench/tpu_sync/run.sh CHECKOUT: beside tpu-sync's own tiler, built from a checkout of github.com/google/tpu-sync. Prints what goes into
# bench/RESULTS.md. Needs g++, and Debian's libabsl-dev and libhwy-dev. `--right-only` leaves the times out.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
checkout=${1:?a checkout of tpu-sync}
build=${CARGO_TARGET_DIR:-$root/target}/tpu_sync
profile=release
[ "${2:-}" = --right-only ] && profile=debug
mkdir -p "$build/include/xla" "$build/include/tpu_sync/core" "$build/include/tpu_sync/weight_sync"
# Its includes, each answered by the one header of what it uses.
for header in xla/index_util.h xla/layout.h xla/layout_util.h xla/shape.h xla/shape_util.h xla/util.h tpu_sync/core/numa_thread_pool.h; do
  echo "#include \"$root/bench/tpu_sync/xla_types.h\"" > "$build/include/$header"
done
if [ ! -e /usr/include/absl/base/no_destructor.h ]; then
  mkdir -p "$build/include/absl/base"
  echo "#include \"$root/bench/tpu_sync/no_destructor.h\"" > "$build/include/absl/base/no_destructor.h"
fi
cp "$checkout/tpu_sync/weight_sync/tiling_utils.h" "$build/include/tpu_sync/weight_sync/"
cargo build --quiet --manifest-path "$root/Cargo.toml" --package tilewise-capi $([ $profile = release ] && echo --release)
library=$(dirname "$build")/$profile
# Highway 1.0 of Debian has no target for the newest processors, so AVX2.
g++ -std=c++17 -O3 -march=haswell -maes -w -I"$build/include" -I"$root/crates/tilewise-capi/include" \
  "$root/bench/tpu_sync/compare.cpp" "$checkout/tpu_sync/weight_sync/tiling_utils.cc" -o "$build/compare" \
  -L"$library" -ltilewise_capi -Wl,-rpath,"$library" -labsl_status -labsl_synchronization -labsl_strings -labsl_base \
  -labsl_time -labsl_cord -labsl_raw_logging_internal -labsl_throw_delegate -pthread
python3 - "$root/vectors/default_layouts.json" <<'PYTHON' | "$build/compare" right
import json, sys
for row in json.load(open(sys.argv[1])):
    for kind in row["types"]:
        for layout in dict.fromkeys(row["layouts"].values()):
            print(f"{kind}[{','.join(map(str, row['dimensions']))}]{layout}")
PYTHON
[ $profile = debug ] || { echo; "$build/compare" time; }
