#!/bin/sh
# check_format.sh [--fix]: is every C file as clang-format has it?  Tables (*.def) are laid out by hand.
set -u
cd "$(dirname "$0")/.." || exit 99
command -v clang-format >/dev/null || { echo "no clang-format"; exit 77; }
files=$(find format shim interpose bpf cli tests examples -name '*.[ch]' 2>/dev/null | sort)
if [ "${1:-}" = --fix ]; then
	# shellcheck disable=SC2086 # names without spaces
	exec clang-format -i $files
fi
# shellcheck disable=SC2086
bad=$(clang-format --dry-run -Werror $files 2>&1 | sed -n 's/^\([^:]*\):.*error: code should be.*/\1/p' | sort -u)
[ -z "$bad" ] && exit 0
echo "$bad"
echo "scripts/check_format.sh --fix puts them right"
exit 1
