#!/bin/sh
# check_layers.sh: no folder includes a header of a folder above it.  format < shim < interpose; cli stands on format and on
# the drainer's half of shim.
set -u
cd "$(dirname "$0")/.." || exit 99
failed=0

# includes FOLDER: FILE<TAB>HEADER for every quoted include, headers of the folder itself written with it
includes() {
	grep -rHo --include='*.c' --include='*.h' --include='*.def' '^ *# *include *"[^"]*"' "$1" |
		sed 's/:[^"]*"/\t/; s/"$//' |
		while IFS='	' read -r file header; do
			case $header in
			*/*) ;;
			*) header=$(dirname "$file")/$header ;;
			esac
			printf '%s\t%s\n' "$file" "$header"
		done
}

# allow FOLDER PATTERN...: all that its files may include
allow() {
	folder=$1
	shift
	[ -d "$folder" ] || return
	includes "$folder" >"${TMPDIR:-/tmp}/layers.$$"
	while IFS='	' read -r file header; do
		if [ ! -e "$header" ]; then
			echo "$file: no such file: $header"
			failed=1
			continue
		fi
		for pattern in "$@"; do
			# shellcheck disable=SC2254 # the patterns are patterns
			case $header in $pattern) continue 2 ;; esac
		done
		echo "$file: $folder may not include $header"
		failed=1
	done <"${TMPDIR:-/tmp}/layers.$$"
	rm -f "${TMPDIR:-/tmp}/layers.$$"
}

allow format 'format/*'
allow shim 'shim/*' 'format/*'
allow interpose 'interpose/*' 'shim/*' 'format/*'
allow cli 'cli/*' 'format/*' '*.def' shim/drain.h shim/config.h shim/adopt.h shim/lease.h shim/view.h shim/clock.h shim/text.h shim/atomic.h shim/switch.h shim/files.h shim/perf.h
allow bpf 'bpf/*' 'format/*'

if [ -d interpose ] && grep -nE '\b(printf|fprintf|malloc|calloc|realloc|free|strdup|dlsym|dlopen|dladdr|pthread_getattr_np)\(' interpose/*.c interpose/runtime/*.c shim/*.c |
	grep -v ': *\*\|/\*'; then
	echo "the recorder may not allocate, print or ask the loader"
	failed=1
fi
exit $failed
