#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Somebody cuts a library's file, or overwrites it, while a program has it loaded that does not call it any more: the program
# runs on as alone, whatever of the library the recorder looks at, and is recorded.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
# shellcheck source=tests/cli/refused.sh
. "$top_srcdir/tests/cli/refused.sh"

# Functions enough for several pages of symbols, names, relocations, unwind tables and data.
{
	echo '#include <stdio.h>'
	echo '#include <stdlib.h>'
	echo '#include <unistd.h>'
	echo 'char large[20000] = "x"; void *const kept[] = { malloc, free, read, write, puts };'
	i=0
	while [ $i -lt 600 ]; do
		echo "int function_with_a_long_name_$i(int n) { char b[64]; snprintf(b, sizeof(b), \"%d\", n); return puts(b) + read(0, b, 1); }"
		i=$((i + 1))
	done
} >library.c
# shellcheck disable=SC2086
cc -g -O1 -shared -fPIC -w -o whole.so library.c || exit 99
cc -g -O1 -shared -fPIC -w -Wl,--build-id=none -o nameless.so library.c || exit 99

cat >host.c <<'END'
#include "cpu_work.h"
#include <dlfcn.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>

static const char *how;
static long cut;
static int left = 90, delay;

static void overwrite(void)
{
	char byte = 0x5a;
	int fd = open("loaded.so", O_WRONLY | O_TRUNC);

	for (long i = 0; i < 30000; i++)
		if (write(fd, &byte, 1) != 1)
			_exit(9);
	close(fd);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (left == 60 && !dlopen("./loaded.so", RTLD_NOW))
		_exit(8);
	if (left == 60 - delay) {
		if (!strcmp(how, "overwritten"))
			overwrite();
		else if (truncate("loaded.so", cut))
			_exit(7);
	}
	/* Others come and go, so that all modules are looked at again. */
	if (left == 40 || left == 20)
		dlclose(dlopen("./other.so", RTLD_NOW));
	free(malloc(700000));
	compute(0.003);
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	how = argv[1];
	cut = argc > 2 ? atol(argv[2]) : 0;
	delay = argc > 3 ? atoi(argv[3]) : 0;
	event_add(timer, &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	puts("end");
	fflush(stdout);
	_exit(0); /* the library's destructors are in what was cut */
}
END
cc -g -O2 -I"$top_srcdir/tests/cli" -o host host.c -levent -ldl || exit 99
size=$(wc -c <whole.so)

# try PREFIX... -- ARGUMENT...: host, recorded behind PREFIX.
try() {
	prefix=
	while [ "$1" != -- ]; do
		prefix="$prefix $1"
		shift
	done
	shift
	cp "$library" loaded.so
	cp nameless.so other.so
	rm -rf tr
	# One word per option is meant.
	# shellcheck disable=SC2086
	$prefix "$dial9" record --quiet $options -o tr -- ./host "$@" >said 2>&1 || echo "status $?: $library $options $*"
	cat said
	"$dial9" info tr | awk '$1 == "PollEndEvent" && $2 == 90 { print "all callbacks" }'
}

for options in "" "--cpu 999 --cpu-threads all --memory=1K"; do
	for library in whole.so nameless.so; do
		say "$library, recorded with ${options:-no options}"
		for cut in 0 4096 $((size / 3)) $((size * 2 / 3)) $((size - 4096)); do
			try -- cut "$cut"
			try -- cut "$cut" 1
		done
		try -- cut 0 15
		try -- overwritten
	done
done

library=whole.so options=
say "where the kernel does not copy memory for us"
if ./refused process_vm_readv=fails true; then
	try ./refused process_vm_readv=fails -- cut 0
	try ./refused process_vm_readv=fails -- cut 4096 1
else
	printf 'end\nall callbacks\nend\nall callbacks\n'
fi
finish ''
