#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dial9 symbolize finds: in the binary, in debug files wherever they are put, in packed symbols; and what it refuses.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

make_samples=$top_builddir/tests/cli/make_samples
for tool in objcopy objdump strip readelf addr2line c++filt; do
	command -v $tool >/dev/null || skip "no $tool (Debian: binutils)"
done
cat >prog.cc <<'END'
namespace app {
struct parser {
	volatile int n;
	__attribute__((always_inline)) inline int step(int by)
	{
		n = n + by;
		return n;
	}
	__attribute__((always_inline)) inline int feed(int by)
	{
		return step(by) + n;
	}
	__attribute__((noinline)) int run(int times)
	{
		return feed(times);
	}
};
} // namespace app
__attribute__((noinline)) static int hidden(app::parser *p, int times)
{
	return p->run(times) + 1;
}
int main(int argc, char **)
{
	app::parser p = { 0 };
	return hidden(&p, argc) == 0;
}
END
$CXX -g -O1 -Wl,--build-id=0x0123456789abcdef -o whole prog.cc 2>/dev/null || skip "no C++ compiler"
base=0x555500000000
# Where |1| begins; where the call of |1| returns to; a place where three functions are at work.
address_of() {
	$NM -C whole | awk -v name="$1" '$0 ~ name { sub(/^0+/, "", $1); print $1; exit }'
}
behind_call_of() {
	objdump -d --no-show-raw-insn whole | awk -v name="$1" 'call { sub(/:.*/, "", $1); print $1; exit }
		$2 ~ /^(call|callq|bl)$/ && index($0, name) { call = 1 }'
}
three_deep() {
	at=$((0x$(address_of 'app::parser::run')))
	while [ "$(printf '%x\n' $at | addr2line -i -e whole | wc -l)" != 3 ]; do at=$((at + 1)); done
	echo $at
}
run_at=$((base + $(three_deep)))
hidden_at=$((base + 0x$(address_of ' hidden')))
behind_run=$((base + 0x$(behind_call_of 3run)))
behind_hidden=$((base + 0x$(behind_call_of hidden)))

# trace FILE PATH [PACKING [BUILD-ID]]: samples in run() and, behind their calls, in hidden() and main().
trace() {
	"$make_samples" "${3:-plain}" "$1" <<-END_S
		module $2 ${4:-0123456789abcdef} $base 0x10000 2000
		sample 3000 $run_at $behind_run $behind_hidden
		sample 4000 $run_at 0xffffffff81000010 0x1234
		spawn 5000 $hidden_at 0
	END_S
}
# rows FILE: what the rows say, without the addresses.
rows() {
	"$dial9" events -e SymbolTableEntry "$1" | sed -E 's/.*"symbol_name":"([^"]*)","inline_depth":([0-9]+),"source_file":"([^"]*)","source_line":([0-9]+).*/\2 \1 \3:\4/; s/\+0x[0-9a-f]+/+OFFSET/' | c++filt -p
}

say "debug information in the binary"
cp whole prog
trace t.bin "$work/prog"
run symbolize -o out.bin t.bin
rows out.bin
cmp -s t.bin out.bin && echo "nothing was written"

say "debug information in files of its own: the same rows, with two formats"
rows out.bin >whole.rows
for format in 4 5; do
	$CXX -g -gdwarf-$format -gsplit-dwarf -O1 -c -o split.o prog.cc && $CXX -Wl,--build-id=0x0123456789abcdef -o prog split.o
	trace split.bin "$work/prog"
	"$dial9" symbolize -o out.bin split.bin >/dev/null
	rows out.bin | diff whole.rows -
done
say "beside the program, and not where it was compiled"
mkdir elsewhere
mv prog split.dwo elsewhere/
trace split.bin "$work/elsewhere/prog"
"$dial9" symbolize -o out.bin split.bin
rows out.bin | diff whole.rows -
say "they are missing, or none: no lines, for a line may be of an inlined function"
mv elsewhere/split.dwo kept.dwo
run symbolize -o out.bin split.bin
rows out.bin | grep -v kernel
run events -f text -e TaskSpawnEvent split.bin 2>&1 >/dev/null | sed 's/.*: \(.*split.dwo\)/\1/'
mkfifo elsewhere/split.dwo
timeout 20 "$dial9" symbolize -o out.bin split.bin
rm elsewhere/split.dwo
head -c 200 kept.dwo >elsewhere/split.dwo
timeout 20 "$dial9" symbolize -o out.bin split.bin
rm elsewhere/split.dwo

say "stripped"
strip -o prog whole
run symbolize -o out.bin t.bin
rows out.bin

say "stripped but for .symtab"
strip -g -o prog whole
run symbolize -o out.bin t.bin
rows out.bin | head -n 4

say "a debug file beside it"
objcopy --only-keep-debug whole whole.debug
strip -o prog whole
objcopy --add-gnu-debuglink=whole.debug prog
run symbolize -o out.bin t.bin
rows out.bin | grep run

say "in .debug beside it"
mkdir .debug
mv whole.debug .debug/
run symbolize -o out.bin t.bin

say "of another binary"
$CXX -g -O1 -Wl,--build-id=0x0123456789abcdee -o other prog.cc
objcopy --only-keep-debug other .debug/whole.debug
run symbolize -o out.bin t.bin

say "by build-id, where the binary is not"
objcopy --only-keep-debug whole whole.debug
mkdir -p place/.build-id/01
cp whole.debug place/.build-id/01/23456789abcdef.debug
rm -r .debug prog
run symbolize -o out.bin t.bin
run symbolize --debug-dir place -o out.bin t.bin
rows out.bin | grep run

say "by the path below a directory"
rm -r place/.build-id
strip -o prog whole
objcopy --add-gnu-debuglink=whole.debug prog
mkdir -p "place$work"
mv whole.debug "place$work/"
run symbolize --debug-dir place -o out.bin t.bin
rm -r place

say "from a server, if that is asked for"
objcopy --only-keep-debug whole served
cat >client.c <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void *debuginfod_begin(void)
{
	return malloc(1);
}

void debuginfod_end(void *client)
{
	free(client);
}

int debuginfod_find_debuginfo(void *client, const unsigned char *id, int len, char **path)
{
	(void)client;
	if (len || strcmp((const char *)id, "0123456789abcdef"))
		return -2;
	*path = strdup(getenv("SERVED"));
	return open(*path, O_RDONLY);
}
END
mkdir client
$CC -shared -fPIC -o client/libdebuginfod.so.1 client.c
strip -o prog whole
with_server() {
	LD_LIBRARY_PATH=$work/client SERVED=$work/$1 DEBUGINFOD_URLS=${2-http://localhost:1} "$dial9" symbolize --debuginfod \
		-o out.bin t.bin | head -n 1
}
with_server served
with_server other
with_server served ''
LD_LIBRARY_PATH=$work/client SERVED=$work/served DEBUGINFOD_URLS=http://localhost:1 "$dial9" symbolize -o out.bin t.bin | head -n 1

say "another build-id than the recorded one: refused, and named"
cp other prog
run symbolize -o out.bin t.bin
rows out.bin

say "no build-id: the checksum of the link"
$CXX -g -O1 -Wl,--build-id=none -o bare prog.cc
objcopy --only-keep-debug bare bare.debug
strip -o prog bare
objcopy --add-gnu-debuglink=bare.debug prog
trace bare.bin "$work/prog" plain -
run symbolize -o out.bin bare.bin
printf x >>bare.debug
run symbolize -o out.bin bare.bin

say "packed symbols"
if command -v xz >/dev/null && grep -q 'HAVE_LZMA 1' "$top_builddir/config.h"; then
	$NM -P whole | awk '$2 ~ /[tTwW]/ { print $1 }' >keep
	objcopy --only-keep-debug whole mini
	strip --strip-debug --keep-symbols=keep mini 2>/dev/null || objcopy -S --keep-symbols=keep whole mini
	xz -f mini
	strip -o prog whole
	objcopy --add-section .gnu_debugdata=mini.xz prog
	run symbolize -o out.bin t.bin
	rows out.bin | head -n 4
	objcopy --update-section .gnu_debugdata=prog.cc prog
	"$dial9" symbolize -o out.bin t.bin | head -n 1
else
	cat <<-'END_P'
		$ dial9 symbolize -o out.bin t.bin
		6 addresses, 4 named, 0 with lines
		  WORK/prog, 0 of 4 without a name: no lines: it was built without -g, or its debug file is missing
		0 [symbolize-failed] 0x1234 :0
		0 main :0
		0 app::parser::run :0
		0 hidden :0
		6 addresses, 0 named, 0 with lines
	END_P
fi

say "each packing, in place, twice; then with debug information"
for packing in plain gzip zstd; do
	strip -o prog whole
	mkdir $packing
	trace $packing/trace.0.bin "$work/prog" $packing
	run symbolize $packing
	run symbolize $packing
	rows $packing | wc -l
	cp whole prog
	run symbolize $packing
	rows $packing | wc -l
	"$dial9" export -o out.trc $packing || echo "cannot be exported"
done

say "a module that came to the place of another"
cp whole prog
"$make_samples" plain moved.bin <<END
module $work/prog 0123456789abcdef $base 0x10000 2000
unload $work/prog 0123456789abcdef $base 0x10000 5000
module $work/other 0123456789abcdee $((base - 0x1000)) 0x20000 6000
sample 3000 $((run_at))
sample 7000 $((run_at))
END
"$dial9" events -f text -e CpuSampleEvent moved.bin | grep -c 'app::parser::step prog.cc:6, app::parser::feed prog.cc:11, app::parser::run prog.cc:15'

say "names where tasks were registered: in the events, and what was recorded beside them"
# loops FILE PACKING: two places on one line, one in the kernel's loop library, one that is a role; calls of each.
loops() {
	"$make_samples" "$2" "$1" <<-END_L
		module $work/prog 0123456789abcdef $base 0x10000 2000
		spawn 3000 $hidden_at $behind_hidden 1 prog+0x$hidden_offset @ prog+0x$site_offset
		spawn 3100 $hidden_at $((behind_hidden - 1)) 2 prog+0x$hidden_offset @ prog+0x$other_offset
		spawn 3200 $hidden_at $behind_hidden 3 bufferevent read @ prog+0x$site_offset
		spawn 3300 0x1234 0 4 gone+0x10 @ prog+0xffff
		poll 5000000 0 1 $hidden_at 0 prog+0x$hidden_offset @ prog+0x$site_offset
		end 8000000 0
		poll 9000000 0 2 $hidden_at 0 prog+0x$hidden_offset @ prog+0x$other_offset
		taken 9500000 0 0 0 $run_at $behind_run $behind_hidden
		end 20000000 0
	END_L
}
hidden_offset=$(printf %x $((hidden_at - base)))
site_offset=$(printf %x $((behind_hidden - base)))
other_offset=$(printf %x $((behind_hidden - base - 1)))
# locations FILE; without_places FILE: all else that happened; told FILE: the report, but for the file's own figures.
locations() {
	"$dial9" events "$1" | sed -n 's/.*"\(Task[A-Za-z]*\|PollStartEvent\)".*"spawn_loc":"\([^"]*\)".*/\1 \2/p' |
		sed 's/+0x[0-9a-f]*/+OFFSET/g'
}
without_places() {
	"$dial9" events "$1" | grep -v '"event":"SymbolTableEntry"' | sed 's/"spawn_loc":"[^"]*"//'
}
told() {
	"$dial9" report --json "$1" |
		sed -E '/"(total_events|SymbolTableEntry|path|container|folder|stored_bytes|unpacked_bytes|events)":/d'
}
for packing in plain gzip zstd; do
	mkdir loops-$packing
	loops loops-$packing/trace.0.bin $packing
	cp loops-$packing/trace.0.bin before
	run symbolize -o named.bin loops-$packing
	cmp before loops-$packing/trace.0.bin
	[ $packing != plain ] || locations named.bin
	"$dial9" symbolize loops-$packing >summary
	[ $packing = gzip ] || cmp named.bin loops-$packing/trace.0.bin
	"$dial9" symbolize -o again.bin loops-$packing >summary
	cmp again.bin loops-$packing/trace.0.bin
	for file in named.bin again.bin; do
		without_places before >wanted
		without_places $file | diff wanted - && told before >wanted && told $file | diff wanted -
	done
done
say "they stay where the binary is not"
mv prog away
"$dial9" symbolize -o again.bin named.bin | head -n 1
cmp named.bin again.bin
"$dial9" report --json named.bin | sed -n '/"callbacks": /,/"source"/p' | grep -E '"(name|source)"'
mv away prog

say "code that was compiled while the process ran"
mkdir jit
printf 'pid 4711\nsample 3000 0x7f0000001010 0x7f0000001040\n' | "$make_samples" plain jit/trace.0.bin
printf '7f0000001000 20 first\n7f0000001000 20 hot\nnonsense\n7f0000001030 20 js:~main /srv/a.js:3\n' >jit/perf-4711.map
"$dial9" events -f text -e CpuSampleEvent jit
run symbolize jit
rows jit

say "a directory of segments, and copies of it"
mkdir two
trace two/trace.0.bin "$work/prog"
trace two/trace.1.bin.zst "$work/prog" zstd
run symbolize -o copies two
ls copies
rows two | wc -l
for f in copies/*; do rows "$f" | grep -c step; done

say "processes have a folder each, whatever they are called"
mkdir -p a/web b/web .hidden
for dir in a/web b/web .hidden .; do trace $dir/trace.9.bin "$work/prog"; done
run symbolize -o each a/web b/web .hidden/trace.9.bin trace.9.bin
(cd each && find . -type f | sort)
rm trace.9.bin

say "what is cut stays as it is"
{ echo "sample 3000 $run_at $behind_hidden"; echo "cut 3"; } | "$make_samples" plain cut.bin
cp cut.bin before
run symbolize cut.bin
cmp cut.bin before

say "answers that are kept"
mkdir home
XDG_CACHE_HOME=$work/home
export XDG_CACHE_HOME
kept=home/dial9/0123456789abcdef.symbols
cp whole prog
run symbolize -o first.bin t.bin
[ "$(stat -c '%a %a' home/dial9 $kept | tr '\n' ' ')" = '700 700 600 600 ' ] || stat -c '%a %n' home/dial9 $kept
run symbolize -o second.bin t.bin
cmp first.bin second.bin
rm prog
run symbolize -o second.bin t.bin
cmp first.bin second.bin
strip -o prog whole
"$dial9" symbolize -o second.bin t.bin | head -n 1
cp whole prog
"$dial9" symbolize -o second.bin t.bin | head -n 1

say "kept answers that are damaged, cut, somebody's who could write there, or behind a link"
cp $kept good.symbols
for at in $(seq 0 7 "$(stat -c %s good.symbols)"); do
	cp good.symbols $kept
	printf '\377' | dd of=$kept bs=1 seek="$at" conv=notrunc status=none
	"$dial9" symbolize -o second.bin t.bin >summary || echo "byte $at: $?"
	grep -q '^6 addresses' summary || echo "byte $at: $(cat summary)"
	head -c "$at" good.symbols >$kept
	"$dial9" symbolize -o second.bin t.bin >summary
	cmp first.bin second.bin
done
rm prog
cp good.symbols $kept
chmod 666 $kept
"$dial9" symbolize -o second.bin t.bin | head -n 1
rm $kept
ln -s "$work/good.symbols" $kept
"$dial9" symbolize -o second.bin t.bin | head -n 1
rm $kept
cp good.symbols $kept
"$dial9" symbolize -o second.bin t.bin | head -n 1
chmod 777 home/dial9
"$dial9" symbolize -o second.bin t.bin | head -n 1
XDG_CACHE_HOME=/dev/null/none
cp whole prog

say "what cannot be"
run symbolize --debug-dir
run symbolize - <t.bin
mkdir shared
chmod 777 shared
trace shared/trace.0.bin "$work/prog"
run symbolize shared
run symbolize -o /dev/full t.bin
run symbolize -o missing/out.bin t.bin

# every_address PROGRAM SOURCE: as addr2line has them.
every_address() {
	first=$(readelf -SW "$1" | sed -n 's/.* \.text *PROGBITS *\([0-9a-f]*\) .*/\1/p')
	size=$(readelf -SW "$1" | sed -n 's/.* \.text *PROGBITS *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p')
	seq $((0x$first)) $((0x$first + 0x$size - 1)) >offsets
	{
		echo "module $work/$1 0123456789abcdef $base 0x10000 2000"
		while read -r offset; do echo "sample 3000 $((base + offset))"; done <offsets
	} | "$make_samples" zstd all.bin
	"$dial9" symbolize -o out.bin all.bin >summary
	"$dial9" events -e SymbolTableEntry out.bin |
		sed -E 's/.*"addr":([0-9]+).*"inline_depth":([0-9]+),"source_file":"([^"]*)","source_line":([0-9]+).*/\1 \2 \3:\4/' |
		sort -k 1,1n -k 2,2nr |
		awk -v base=$((base)) -v source="$2" 'index($3, source) { printf "%d %s\n", $1 - base, $3 }' >ours
	awk '{ printf "%x\n", $1 }' offsets | addr2line -a -i -e "$1" |
		awk -v source="$2" '/^0x/ { at = $1; next } index($0, source) { sub(/ \(disc.*/, ""); print at, $1 }' |
		while read -r at place; do echo "$((at)) $place"; done | sort -s -k 1,1n >theirs
	diff ours theirs >differences && echo "the same"
	[ "$(wc -l <ours)" -gt 50 ] || echo "only $(wc -l <ours) lines"
	head -n 5 differences
}

say "every address of the program, as addr2line has it"
every_address whole prog.cc

say "and of one whose lambda has calls inlined"
cat >lambda.cc <<'END'
static inline __attribute__((always_inline)) int scale(volatile int *n, int by)
{
	*n = *n * by;
	return *n;
}
int main(int argc, char **)
{
	volatile int n = argc;
	auto add = [&n](int by) __attribute__((noinline)) {
		n = n + by;
		return scale(&n, by) + 1;
	};
	return add(argc) + add(argc + 1) == 0;
}
END
$CXX -g -O1 -Wl,--build-id=0x0123456789abcdef -o lambda lambda.cc
every_address lambda lambda.cc

finish ''
