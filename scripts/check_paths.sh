#!/bin/sh
# check_paths.sh: nothing of the machine or the person it was written on is in a tracked file.
set -u
cd "$(dirname "$0")/.." || exit 99
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "not a git work tree"; exit 77; }
found=$(git grep -nIE '(^|[^A-Za-z0-9_.~-])/(home|root|work|Users)/[A-Za-z0-9_.]' -- . ':!scripts/check_paths.sh')
[ -z "$found" ] && exit 0
echo "$found"
exit 1
