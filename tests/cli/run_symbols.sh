#!/bin/sh
# run_symbols.sh TEST_SYMBOLS SOURCE_ROOT: builds slice_prog in every way that changes its frames, lets it
# dump its own stack and has test_symbols name it.  Compilers that are not there are left out, and told.
set -u
test=$1 root=$2
src=$root/tests/cli
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0

# case NAME BINARY WHAT EXPECTED...
check() {
	name=$1 bin=$2 what=$3
	shift 3
	DUMP=$dir/dump "$bin" "$what" || { echo "$name: the program failed" >&2; failed=1; return; }
	expect "$name" "$@"
}
expect() {
	name=$1
	shift
	if ! "$test" "$dir/dump" "$@"; then
		echo "FAILED: $name" >&2
		failed=1
	fi
}
build() { # CC FLAGS -> $bin
	bin=$dir/prog
	rm -f "$bin"
	cc=$1
	shift
	"$cc" -D_GNU_SOURCE -I"$root" "$@" -o "$bin" "$src/slice_prog.c" "$src/slice_dump.c" -pthread || exit 99
}

"$test" self || failed=1

for cc in gcc clang; do
	command -v $cc >/dev/null || { echo "no $cc: left out"; continue; }
	for flags in "-O2" "-O2 -fno-omit-frame-pointer" "-O0" "-O2 -no-pie" "-O3 -static-pie" "-Os -g" "-O2 -Wl,-z,noseparate-code"; do
		build $cc $flags
		check "$cc $flags plain" "$bin" plain dump_self leaf middle outer main
		check "$cc $flags shapes" "$bin" shapes dump_self leaf middle outer with_alloca with_align main
		check "$cc $flags signal" "$bin" signal dump_self leaf handler ... interrupted main
		check "$cc $flags noreturn" "$bin" noreturn dump_self dump_self_and_exit ends_in_call is_next main
		check "$cc $flags thread" "$bin" thread dump_self leaf middle outer thread ... '$'
	done
	build $cc -O2 -g
	line=$(grep -n 'inlined_inner(int x) {' "$src/slice_prog.c" | cut -d: -f1)
	check "$cc inlined" "$bin" inline dump_self leaf +inlined_inner@slice_prog.c:$line \
		+inlined_outer@slice_prog.c:$((line + 1)) has_inlined@slice_prog.c:$((line + 2)) main
	strip "$bin"
	expect "$cc stripped after the run" - - - - ...
	check "$cc stripped" "$bin" plain - - - - - ... '$'

	# Another build in its place, before d9 looks: no name is better than a wrong one.
	build $cc -O2
	check "$cc before the replacement" "$bin" plain dump_self leaf middle outer main
	build $cc -O1 -DOTHER -fno-inline
	expect "$cc replaced" - '$'
	build $cc -O2 -Wl,--build-id=none
	check "$cc no build id" "$bin" plain dump_self leaf middle outer main
	build $cc -O2 -Wl,--build-id=none -no-pie -static
	expect "$cc no build id, replaced" - '$'
	rm -f "$bin"
	expect "$cc gone" - '$'
done

if command -v rustc >/dev/null; then
	gcc -D_GNU_SOURCE -I"$root" -O2 -c -o "$dir/slice_dump.o" "$src/slice_dump.c" || exit 99
	for flags in "-O" "-O -C force-frame-pointers=yes" "-O -C lto=fat -C codegen-units=1" "-g"; do
		rustc --edition 2021 $flags -C link-arg="$dir/slice_dump.o" -o "$dir/rs" "$src/slice_prog.rs" || exit 99
		DUMP=$dir/dump "$dir/rs" || failed=1
		expect "rustc $flags" dump_self '<slice_prog::Worker<T> as slice_prog::Job>::go' ... slice_prog::apply \
			slice_prog::outer ... '$'
	done
	# Functions of Rust lie in namespaces: an inlined call is named there too, and each line is its own function's.
	rustc --edition 2021 -O -g -C link-arg="$dir/slice_dump.o" -o "$dir/rs" "$src/slice_prog.rs" || exit 99
	DUMP=$dir/dump "$dir/rs" || failed=1
	call=$(grep -n 'apply(|x|' "$src/slice_prog.rs" | cut -d: -f1) body=$(grep -n 'black_box(f(3))' "$src/slice_prog.rs" | cut -d: -f1)
	expect "rustc inlined" dump_self '<slice_prog::Worker<T> as slice_prog::Job>::go' "+slice_prog::outer::{{closure}}@slice_prog.rs:$call" \
		"slice_prog::apply@slice_prog.rs:$body" "slice_prog::outer@slice_prog.rs:$call" ... '$'
else
	echo "no rustc: left out"
fi

# Files cut short or damaged must not crash the reader, nor give names that the whole file does not.
if command -v gcc >/dev/null; then
	build gcc -O2 -g
	check "whole" "$bin" plain dump_self leaf
	cp "$bin" "$dir/whole"
	size=$(stat -c %s "$bin")
	for part in 0 3 17 63 64 500 1000 4096 8000 $((size / 2)) $((size - 4000)) $((size - 1)); do
		head -c $part "$dir/whole" >"$bin"
		"$test" "$dir/dump" 2>"$dir/err"
		[ $? -le 1 ] || { echo "FAILED: cut at $part: $(tail -1 "$dir/err")" >&2; failed=1; }
	done
fi
exit $failed
