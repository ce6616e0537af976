#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions and lines in text, from a binary with the recorded build-id and from no other.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >prog.c <<'END'
static volatile int n;
__attribute__((noinline)) static void on_read(void)
{
	n++;
}
__attribute__((noinline)) void set_up(void)
{
	on_read();
	n--;
}
int main(void)
{
	set_up();
	return 0;
}
END
no_cf=-fcf-protection=none
$CC $no_cf -c -o prog.o prog.c 2>/dev/null || no_cf=
$CC -g -O0 $no_cf -Wl,--build-id=0x0123456789abcdef -o prog prog.c || exit 77
address_of() {
	$NM prog | awk -v name="$1" '$3 == name { sub(/^0+/, "", $1); print $1 }'
}
# The site is a return address, as recorded: behind the call in set_up(), already on the next line.
site=$(printf '%x' $((0x$(address_of set_up) + 9)))
callback=$(address_of on_read)

# trace NAME BUILD-ID [PATH]: a trace of prog as recorded with that build-id.
trace() {
	"$make_trace" module plain "$1" "${3:-$work/prog}" "$2" "$callback" "$site"
}
hide='s/prog+0x[0-9a-f]* @ prog+0x[0-9a-f]*/prog+CALLBACK @ prog+SITE/'

say "the same build-id"
trace good.bin 0123456789abcdef
line=
[ "$(uname -m)" = x86_64 ] || line='s/prog.c:[0-9]*/prog.c:8/'
run events -f text -e PollStartEvent good.bin 2>&1 | sed "$line"
run events -f text -e PollStartEvent - <good.bin 2>&1 | sed "$hide"
run events -f text -e PollStartEvent --no-symbols good.bin 2>&1 | sed "$hide"
run events -e PollStartEvent good.bin 2>&1 | sed "$hide"

say "another build-id: never used"
trace other.bin 0123456789abcdee
run events -f text -e PollStartEvent other.bin 2>&1 | sed "$hide"

say "a stripped binary names nothing but its module"
cp prog kept
strip prog
run events -f text -e PollStartEvent good.bin 2>&1 | sed "$hide"

say "a path that is no binary"
mkfifo fifo
trace fifo.bin 0123456789abcdef "$work/fifo"
timeout 10 "$dial9" events -f text -e PollStartEvent fifo.bin 2>&1 |
	sed 's/fifo+0x[0-9a-f]* @ fifo+0x[0-9a-f]*/fifo+CALLBACK @ fifo+SITE/'
trace gone.bin 0123456789abcdef /no/such/prog
run events -f text -e PollStartEvent gone.bin 2>&1 | sed "$hide"

say "of several binaries the first is named, and how many more there are"
# What is compared is stderr alone.
# shellcheck disable=SC2069
run events -f text -e PollStartEvent gone.bin other.bin 2>&1 >events.txt
# shellcheck disable=SC2069
run events -v -f text -e PollStartEvent gone.bin other.bin 2>&1 >events.txt

if command -v clang >/dev/null; then
	# Without .debug_aranges, the units are found by their own ranges.
	clang -gdwarf-4 -O0 -Wl,--build-id=0x0123456789abcdef -o prog prog.c
	callback=$(address_of on_read)
	trace clang.bin 0123456789abcdef
	"$dial9" events -f text -e PollStartEvent clang.bin | grep -c on_read
else
	echo 1
fi

say "functions of a Rust program, by both manglings"
cat >prog.rs <<'END'
mod work {
    #[inline(never)]
    pub fn on_read(n: u32) -> u32 {
        std::hint::black_box(n) + 1
    }
}
fn main() {
    std::process::exit(work::on_read(1) as i32 - 2)
}
END
# rust MANGLING: whether on_read() has its name.
rust() {
	MAKEFLAGS='' RUSTC_BOOTSTRAP=1 rustc -Z unstable-options -C "symbol-mangling-version=$1" -g \
		-C link-arg=-Wl,--build-id=0x0123456789abcdef -o prog prog.rs || return
	callback=$($NM prog | awk '/on_read/ { sub(/^0+/, "", $1); print $1 }')
	trace "$1.bin" 0123456789abcdef
	"$dial9" events -f text -e PollStartEvent "$1.bin" | grep -o '"[^ ]*on_read '
}
if command -v rustc >/dev/null && MAKEFLAGS='' rustc -o prog prog.rs 2>/dev/null; then
	rust v0
	rust legacy
else
	printf '"prog::work::on_read \n%.0s' 1 2
fi

finish ''
