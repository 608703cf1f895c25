#!/bin/sh
# expect_red.sh TEST: passes if the test runs to its end and fails, as it must with a fault built in.
out=$("$1" 2>&1)
rc=$?
echo "$out" | grep '^not ok' | head -n 3
if [ $rc -ne 1 ] || ! echo "$out" | grep -q '^not ok'; then
	echo "the fault is not noticed (exit code $rc)"
	exit 1
fi
