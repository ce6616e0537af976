#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program and a library of it are replaced on disk while they run, as an upgrade does: functions are named from the old
# files where they are offered, never from the new ones, and the report says that these are others.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >lib.c <<'END'
void compute_here(void);
void library_work(void)
{
	compute_here();
	__asm__ volatile("");
}
END
cat >prog.c <<'END'
#include "cpu_work.h"
void library_work(void);
void compute_here(void)
{
	compute(0.05);
}
int main(void)
{
	await_sampling();
	for (int i = 0; i < 5; i++)
		library_work();
	puts("running");
	fflush(stdout);
	/* The upgrade closes it. */
	while (getchar() != EOF)
		;
	for (int i = 0; i < 5; i++)
		library_work();
	return 0;
}
END
mkdir new old
build() {
	$CC -g -O1 -shared -fPIC $1 -Wl,--build-id=sha1 -o "$2/libwork.so" lib.c &&
		$CC -g -O1 -rdynamic $1 -Wl,--build-id=sha1 -I"$top_srcdir/tests/cli" -o "$2/prog" prog.c -L"$2" -lwork \
			-Wl,-rpath,"$work"
}
build "" . || exit 99
build "-Dlibrary_work=upgraded_work -Dcompute_here=upgraded_here -Dcompute=upgraded" new || exit 99
cp prog libwork.so old
mkfifo go

"$dial9" record --quiet --profile-only --cpu 500 -o tr -- ./prog <go >said &
recorder=$!
exec 4>go
until [ -s said ]; do sleep 0.02; done
for file in prog libwork.so; do
	mv "new/$file" "$file"
done
exec 4>&-
wait $recorder

# names TRACE: those of its functions that have one.
names() {
	"$dial9" export --format folded -o - "$1" 2>>errors |
		grep -owE 'main|library_work|compute_here|compute|upgraded[a-z_]*' | sort -u | tr '\n' ' '
	echo
}
say "the new files: refused"
names tr
run symbolize -o new.bin tr | grep 'work\|prog' | sort
say "the old ones"
"$dial9" symbolize --debug-dir old -o old.bin tr | grep 'another build-id'
names old.bin
finish 's/[0-9][0-9]* of [0-9]* without/N of N without/'
