#!/bin/sh
# check_bpf.sh: the event table and the arena's layout are the same bytes for a BPF program.
set -u
cd "$(dirname "$0")/.." || exit 99
command -v clang >/dev/null || { echo "no clang"; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cat >"$dir/x.c" <<'END'
#include "format/arena.h"
#include "format/events.h"
#include "format/segment.h"
_Static_assert(sizeof(struct d9_ev_span) == 56, "as on the host");
int x(struct d9_ev_span *e) { return (int)e->result; }
END
clang -target bpf -O2 -Wall -Wextra -Wno-unused-function -Werror -I. -c "$dir/x.c" -o "$dir/x.o"
