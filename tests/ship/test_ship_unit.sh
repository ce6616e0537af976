#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command that the drop-in of systemd runs when a service has ended, however it did, stores what that service recorded.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"
start_store
systemd=$(cd "$top_srcdir" && pwd)/core/systemd

# Variables as systemd sets them from both drop-ins, for the service "web".
sed -n 's/^Environment=//p' "$systemd/record.conf.in" "$systemd/ship.conf.in" | sed -e "s|%S|$work/state|" -e 's|%N|web|' \
	-e "s|@pkglibdir@/libdial9-preload.so|$preload|" -e 's|=BUCKET$|=bucket|' -e 's|=PREFIX$|=web/traces|' >variables
command=$(sed -n 's/^ExecStopPost=-//p' "$systemd/ship.conf.in" | sed -e "s|%S|$work/state|" -e 's|%N|web|' -e "s|@bindir@/dial9|$dial9|")
mkdir -p state/dial9/web
chmod 700 state/dial9/web

for signal in TERM KILL; do
	env $(cat variables) ./timer 0 9>&- &
	service=$!
	await has_active state/dial9/web
	kill -$signal $service
	wait $service 2>/dev/null || true
	env $(cat variables) AWS_ENDPOINT_URL_S3="$address" sh -c "exec $command" >said 2>&1 9>&- || fail "after SIG$signal: $(cat said)"
	says ' stored, '
	equal "segments left after SIG$signal" "$(segments state/dial9/web)" 0
	[ "$(objects '*/bucket/web/traces/version=1/*/service=web/*')" -ge 1 ] || fail "after SIG$signal nothing is stored"
	rm -r "$stored/web" state/dial9/web/*
done
stop_store
