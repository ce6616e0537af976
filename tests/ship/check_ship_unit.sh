#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit of the shipper leaves it no more rights than it needs: systemd rates it below 1.5 of 10.  It is started again when it
# hangs, and takes its configuration without an end.  The drop-ins that record a service and ship what it left are as systemd
# wants them, and take nothing from the rating of a service.
set -eu

command -v systemd-analyze >/dev/null || {
	echo "no systemd-analyze (Debian: systemd)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unit=$work/dial9-ship@daemon.service
sed -e 's|@bindir@|/usr/bin|g' -e 's|%i|daemon|g' "$top_srcdir/core/systemd/dial9-ship@.service.in" >"$unit"
systemd-analyze security --offline=true --threshold=15 "$unit" >"$work/rated" 2>&1 || {
	tail -n 3 "$work/rated"
	exit 1
}
if grep '^RemoveIPC' "$unit"; then
	exit 1
fi
for line in Type=notify WatchdogSec=60 'ExecReload=/bin/kill -HUP $MAINPID'; do
	grep -qxF "$line" "$unit" || {
		echo "no $line in the unit"
		exit 1
	}
done
systemd-analyze verify --man=no "$unit" 2>&1 | grep -F "$unit" | grep -v 'is not executable' >"$work/faults" || true
[ ! -s "$work/faults" ] || {
	cat "$work/faults"
	exit 1
}

# rate FOLDER: what systemd thinks of FOLDER/web.service.
rate() {
	systemd-analyze security --offline=true "$1/web.service" 2>/dev/null | sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p'
}
mkdir -p "$work/plain" "$work/shipped/web.service.d"
cat >"$work/plain/web.service" <<'END'
[Service]
ExecStart=/bin/true
User=daemon
NoNewPrivileges=yes
ProtectSystem=strict
PrivateTmp=yes
END
cp "$work/plain/web.service" "$work/shipped"
for name in record ship; do
	sed -e 's|@bindir@/dial9|/bin/true|g' -e 's|@[a-z]*dir@|/usr/lib|g' "$top_srcdir/core/systemd/$name.conf.in" \
		>"$work/shipped/web.service.d/$name.conf"
done
systemd-analyze verify --man=no --recursive-errors=no "$work/shipped/web.service" >"$work/verified" 2>&1 || {
	cat "$work/verified"
	exit 1
}
if grep -i 'web.service' "$work/verified"; then
	exit 1
fi
before=$(rate "$work/plain")
after=$(rate "$work/shipped")
if [ -z "$before" ] || [ "$before" != "$after" ]; then
	echo "rated $before without the drop-ins, $after with them"
	exit 1
fi
