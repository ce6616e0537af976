#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What core/doc/STORES.md tells those who have another program carry the files: its lines store what is sealed, and leave
# alone what is being written.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
stores=$(cd "$top_srcdir" && pwd)/core/doc/STORES.md
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

ran=''
# Sealed two minutes ago, and one that is being written.
prepare() {
	rm -rf traces "$stored"/p
	traces traces/abcd-1 2
	: >traces/abcd-1/trace.2.bin.zst.active
	echo '{}' >traces/abcd-1/dump.01KB5E0Q7W8N2M4T6V9XYZABCD.json
	find traces -type f -exec touch -d '2 minutes ago' {} +
	cp -R traces kept
}
# run PROGRAM: the one line of the document that begins with it.
run() {
	line=$(sed -n "s/^    \($1 .*\)/\1/p" "$stores")
	[ -n "$line" ] || fail "STORES.md has no line of $1"
	timeout 120 sh -c "$line" >said 2>&1 9>&- || fail "$line: $(head -n 20 said)"
	ran="$ran $1"
	for file in trace.0.bin.zst trace.1.bin.zst dump.01KB5E0Q7W8N2M4T6V9XYZABCD.json; do
		cmp "kept/abcd-1/$file" "$stored/p/by-hand/abcd-1/$file" || fail "$1 did not store $file"
	done
	equal "objects by $1" "$(objects '*')" 3
	[ -f traces/abcd-1/trace.2.bin.zst.active ] || fail "$1 took what is being written"
	rm -r kept
}
start_store
if command -v rclone >/dev/null; then
	RCLONE_CONFIG=$work/rclone.conf RCLONE_CONFIG_STORE_TYPE=s3 RCLONE_CONFIG_STORE_PROVIDER=Other RCLONE_CONFIG_STORE_REGION=eu-west-1
	RCLONE_CONFIG_STORE_ENDPOINT=$address RCLONE_CONFIG_STORE_ENV_AUTH=true RCLONE_CONFIG_STORE_FORCE_PATH_STYLE=true
	RCLONE_CONFIG_STORE_LIST_VERSION=2 RCLONE_CONFIG_STORE_NO_CHECK_BUCKET=true
	export RCLONE_CONFIG RCLONE_CONFIG_STORE_TYPE RCLONE_CONFIG_STORE_PROVIDER RCLONE_CONFIG_STORE_REGION RCLONE_CONFIG_STORE_ENDPOINT \
		RCLONE_CONFIG_STORE_ENV_AUTH RCLONE_CONFIG_STORE_FORCE_PATH_STYLE RCLONE_CONFIG_STORE_LIST_VERSION RCLONE_CONFIG_STORE_NO_CHECK_BUCKET
	: >"$RCLONE_CONFIG"
	prepare
	run rclone
	equal "files that rclone left" "$(find traces -type f | wc -l | tr -d ' ')" 1
fi
if aws --version >/dev/null 2>&1; then
	AWS_ENDPOINT_URL=$address
	export AWS_ENDPOINT_URL
	prepare
	run aws
	equal "files that aws left" "$(find traces -type f | wc -l | tr -d ' ')" 4
fi
stop_store
[ -n "$ran" ] || {
	echo "there is neither rclone nor aws (Debian: rclone, awscli)"
	exit 77
}
echo "ran:$ran"
