#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nothing was recorded: one line, with the one cause that applies, and what to do or to type instead.
# What CMD gets in single quotes, CMD's shell expands.
# shellcheck disable=SC2016
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

# Programs of these names, which do as much of the real ones as counts here.
printf '#!/bin/sh\nexit 0\n' >sudo
chmod +x sudo
for name in doas pkexec su; do cp sudo $name; done

say "what clears the environment"
run record -o tr -- ./sudo ./prog 1000
run record -o tr -- ./sudo -u www -E A=b ./prog 1000
run record -o tr -- ./doas -u www ./prog
run record -o tr -- ./pkexec
run record -o tr -- ./su - www -c ./prog
run record -o tr -- env -i ./prog 1000 1 0

say "other loops, and none"
echo 'int main(void) { return 0; }' >nothing.c
$CC -o nothing nothing.c
run record -o tr -- ./nothing
cat >epoll.c <<'END'
#include <sys/epoll.h>
int main(void) { struct epoll_event e; return epoll_wait(epoll_create1(0), &e, 1, 1); }
END
$CC -o epoll epoll.c
run record -o tr -- ./epoll
echo 'int uv_run(void) { return 0; } int main(void) { return uv_run(); }' >uv.c
$CC -o uv uv.c
run record -o tr -- ./uv
echo 'int ev_run(void) { return 0; } int main(void) { return ev_run(); }' >embeds.c
$CC -o embeds embeds.c
run record -o tr -- ./embeds
cat >idle.c <<'END'
#include <event2/event.h>
int main(void) { return !event_get_version(); }
END
$CC -o idle idle.c -levent
run record -o tr -- ./idle
run record -o tr -- sh -c ./nothing

say "a directory that went elsewhere while the program ran"
run record -o moved -- sh -c './prog 1000 1 0; mv moved there'
rm -rf there
run record -o moved --flight -- sh -c 'rm -r moved'

say "what was told to write nothing"
export DIAL9_MODE=flight
run record -o tr -- ./prog 1000 1 0
run record -o tr -- ./sudo ./prog 1000
unset DIAL9_MODE
run record -o tr --flight --trigger 'poll > 10s' -- ./prog 1000 1 0
DIAL9_TRIGGERS='poll > 10s; stall: poll > 50ms every 1ms' run record -o tr --flight -- ./prog 1000 1 0
run record -o tr --flight -- ./idle
export DIAL9_WRITER=null
run record -o tr -- sh -c './prog 1000 1 0'
unset DIAL9_WRITER

say "what shells and launchers start"
run record -o tr -- sh -c 'true && ./embeds >out; exit 0'
run record -o tr -- nice -n 0 ./uv
run record -o tr -- sh -c 'unset LD_PRELOAD; ./prog 1000 1 0'
printf '#!/bin/sh\n# ./sudo has no part in it\nfor i in 1; do\n\t"./uv" $i\ndone\n' >script
chmod +x script
run record -o tr -- ./script
run record -o tr -- sh ./script
run record -o tr -- sh -c './script; ./idle'
run record -o tr -- sh -c './sudo ./prog 1000'

say "what fails before it has a loop"
cat >fails.c <<'END'
#include <event2/event.h>
#include <signal.h>
int main(int argc, char **argv) { if (argc > 1) raise(SIGTERM); return event_get_version() && argv ? 3 : 0; }
END
$CC -o fails fails.c -levent
run record -o tr -- ./fails
run record -o tr -- sh -c './fails; exit $?'
run record -o tr -- nice ./fails
run record -o tr -- env /nowhere/program 2>&1 | grep dial9
run record -o tr -- sh -c ./script.txt 2>&1 | grep dial9
run record --profile-only -o tr -- nice /nowhere/program 2>&1 | grep dial9
run record --memory -o tr -- sh -c 'kill $$' 2>&1 | grep dial9

say "no recorder could start"
sed '1i #include <errno.h>\n#include <pthread.h>\nint pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg) { (void)t, (void)a, (void)f, (void)arg; return EAGAIN; }' prog.c >threadless.c
$CC -rdynamic -o threadless threadless.c -levent
run record -o tr -- ./threadless 100 5 0
run record -o tr -- sh -c './threadless 100 5 0'
[ ! -e tr/.cause ] || echo "its cause is left"
run record -o tr -- ./nothing

say "what went on in the background"
mkfifo begins
run record -o tr -- sh -c 'sh -c "read x; exec ./prog 1000 5 0" <begins >out 2>&1 &'
[ -d tr ] || echo "its directory is gone"
echo >begins
until "$dial9" report tr >out 2>&1; do sleep 0.05; done
rm -r tr

finish 's/process [0-9]* went/process PID went/; s/libevent-2\.1\.so\.[0-9]*/libevent.so/; s/libevent[_a-z]*\.so/libevent.so/'
