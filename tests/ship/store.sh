# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests of dial9 ship, after toolkit/node.sh: a store on loopback, what is in it, and traces.

if [ ! -x "$top_builddir/core/dial9-store" ]; then
	echo "built without dial9-store"
	exit 77
fi
for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p') http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY; do
	unset "$name"
done
HOME=$work AWS_EC2_METADATA_DISABLED=true
AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=secret AWS_REGION=eu-west-1
export HOME AWS_EC2_METADATA_DISABLED AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD XDG_CACHE_HOME
top=$(cd "$top_builddir" && pwd)
dial9=$top/core/dial9
# shellcheck disable=SC2034 # used by those that source this
make_trace=$top/tests/cli/make_trace
script=$(cd "$top_srcdir" && pwd)/tests/ship/s3d.mjs
stored=$work/s3/bucket
cd "$work" || exit 99

fail() {
	echo "FAILED: $1"
	exit 1
}

# equal WHAT A B
equal() {
	[ "$2" = "$3" ] || fail "$1: '$2' and '$3'"
}

# start_store: with $store_options; sets $address; it ends when this shell does, for its stdin is a pipe that we hold.
start_store() {
	rm -f "$work/pipe" "$work/address"
	mkfifo "$work/pipe"
	# shellcheck disable=SC2086 # words
	node "$script" --dir "$work/s3" ${store_options:-} <"$work/pipe" >"$work/address" &
	exec 9>"$work/pipe"
	while [ ! -s "$work/address" ]; do
		kill -0 $! || fail "there is no store"
		sleep 0.05
	done
	address=$(cat "$work/address")
}

stop_store() {
	exec 9>&-
	wait || true
}

# faults JSON: what the store does wrong from now on.
faults() {
	node -e 'fetch(process.argv[1] + "/-/faults", { method: "POST", body: process.argv[2] })' "$address" "$1"
}

# ship ARGUMENTS...: what it says is in the file `said`, its status in $status.
ship() {
	# shellcheck disable=SC2034 # who sources this looks at it
	status=0
	# shellcheck disable=SC2034
	"$dial9" ship "$@" --to s3://bucket/p --endpoint "$address" >said 2>&1 9>&- || status=$?
}

# says TEXT...: that it has said so.
says() {
	for text; do
		grep -qF -- "$text" said || fail "'$text' is not in: $(cat said)"
	done
}

# objects [GLOB]: how many are stored, hours' markers left out.
objects() {
	find "$stored" -type f -path "${1:-*}" ! -path '*/hours/*' | wc -l | tr -d ' '
}

# traces DIR N: a process in DIR with N segments.
traces() {
	mkdir -p "$1"
	chmod 700 "$1"
	i=0
	while [ $i -lt "$2" ]; do
		"$make_trace" held zstd "$1/trace.$i.bin.zst" $((1000000 + i))
		i=$((i + 1))
	done
}
