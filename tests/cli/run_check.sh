#!/bin/sh
# run_check.sh D9: programs of every kind that `d9 check` tells apart, and what it must say.
set -u
d9=$(realpath "$1")
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
failed=0

# expect CODE ID|- TARGET...: exit code, and a verdict of this id (`-`: none that is `unseen`)
expect() {
	code=$1 id=$2
	shift 2
	"$d9" check --json "$@" >out 2>err
	got=$?
	if [ $got -ne "$code" ]; then
		echo "FAILED: d9 check $*: exit $got, not $code: $(cat err)" >&2
		failed=1
	elif [ "$id" != - ] && ! grep -q "\"id\":\"$id\"" out; then
		echo "FAILED: d9 check $*: no verdict $id in $(cat out)" >&2
		failed=1
	elif [ "$id" = - ] && [ "$code" -eq 0 ] && grep -q '"level":"unseen"' out; then
		echo "FAILED: d9 check $*: something unseen in $(cat out)" >&2
		failed=1
	fi
}
has() {
	grep -q "$1" out || { echo "FAILED: no $1 in $(cat out)" >&2; failed=1; }
}

cat >p.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += rand() % (i + 1); printf("%d\n", s); return s; }
int main(int argc, char **argv) { (void)argv; return work(argc) == -1; }
END
gcc -O2 -fno-omit-frame-pointer -g -o plain p.c || exit 99
expect 0 - ./plain
has '"kind":"dynamic"'; has '"libc":"glibc"'; has '"symbols":"symtab"'; has '"lines":true'; has '"unwind_tables":true'
gcc -O2 -o noline p.c && strip -o stripped noline
expect 0 no-lines ./noline
expect 0 stripped ./stripped
gcc -O2 -static -o static p.c && expect 1 static ./static
gcc -O2 -static-pie -o static-pie p.c && expect 1 static-pie ./static-pie
gcc -O2 -no-pie -o nopie p.c && expect 0 - ./nopie
cp plain suid && chmod 4755 suid && expect 1 setuid ./suid
cp plain sgid && chmod 2755 sgid && expect 1 setgid ./sgid
if cp plain caps && setcap cap_net_bind_service+ep caps 2>/dev/null; then expect 1 file-capabilities ./caps; fi
if gcc -fsanitize=address -o asan p.c 2>/dev/null; then expect 0 asan ./asan; fi

cat >u.c <<'END'
int main(int argc, char **argv) { long r = 0; (void)argv; if (argc > 9) __asm__ volatile("movl $426, %%eax; syscall" : "=a"(r) :: "rcx", "r11", "memory"); return (int)r; }
END
gcc -O2 -o uring u.c && expect 1 io-uring ./uring
# liburing has the instruction too, behind functions that are hooked
if gcc -O2 -Wl,--no-as-needed -o linked p.c -luring 2>/dev/null; then expect 0 liburing ./linked; fi

printf '#!/usr/bin/env -S sh -e\ntrue\n' >script && expect 0 - ./script && has '"scripts":\["./script"\]'
printf '#!%s/script\n' "$dir" >script2 && expect 0 - ./script2
printf '#!/nowhere/x\n' >script3 && expect 3 - ./script3
printf '#!%s/loop\n' "$dir" >loop && expect 3 - ./loop
echo text >text && expect 3 - ./text
: >empty && expect 3 - ./empty
mkfifo fifo && expect 3 - ./fifo
expect 3 - ./absent
expect 3 - "$dir"
expect 2 -
expect 2 - a b
expect 2 - --odd a
expect 0 - sh

# Another class, another libc, damaged files.
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0' >elf32 && head -c 44 /dev/zero >>elf32 && expect 1 wrong-class ./elf32
gcc -O2 -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1 -o musl p.c && expect 1 musl ./musl
size=$(stat -c %s plain)
for n in 4 20 64 100 600 2000 $((size / 2)) $((size - 1)); do
	head -c "$n" plain >cut
	"$d9" check ./cut >out 2>err
	got=$?
	case $got in
	0|1|3) ;;
	*) echo "FAILED: cut at $n: exit $got" >&2; failed=1 ;;
	esac
done

sleep 30 &
pid=$!
expect 1 not-loaded $pid
has "\"pid\":$pid"
kill $pid
expect 3 - 2147483646
exit $failed
