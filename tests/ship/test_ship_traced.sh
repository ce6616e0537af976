#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shipping takes place outside of the traced program: its libraries have no code for it, it makes no socket of the internet and
# looks up no host; and what a store is asked with is nowhere but in who asks.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"

# ---- its libraries ----
find "$top_builddir/core/ship" -name '*.o' | while read -r path; do
	nm --defined-only --extern-only "$path" | awk '$2 != "W" { print $NF }'
done | sort -u >ship_symbols
grep -q '^d9__shipper_run$' ship_symbols || fail "nobody knows what code ships"
for path in "$top_builddir"/core/.libs/libdial9.so "$top_builddir"/adapters/.libs/*.so; do
	nm "$path" | awk '{ print $NF }' | sort -u >symbols
	[ -z "$(comm -12 ship_symbols symbols)" ] || fail "$path has code that ships: $(comm -12 ship_symbols symbols)"
	nm -D --undefined-only "$path" >needed
	if grep -E ' (getaddrinfo|gethostbyname|getnameinfo|res_query|curl_|SSL_|EVP_)' needed; then
		fail "$path can reach a network"
	fi
	if readelf -d "$path" | grep -E 'NEEDED.*(curl|ssl|crypto|resolv)'; then
		fail "$path needs a library of the network"
	fi
done

# ---- what it asks the kernel ----
start_store
AWS_ENDPOINT_URL_S3=$address
export AWS_ENDPOINT_URL_S3
if strace -o /dev/null true 2>/dev/null; then
	status=0
	DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=p "$dial9" record --ship --rotate 1s -o watched -- \
		strace -f -qq -e trace=socket,connect,openat,open,execve -o calls ./timer 1500 >said 2>&1 9>&- || status=$?
	equal "status" $status 0
	says ' stored in s3://bucket/p'
	grep -q ' execve("./timer"' calls || fail "strace saw nothing"
	grep -q 'dial9-flush\|trace\.0\.bin\|/ring' calls || fail "strace did not see the recorder"
	if grep -E 'AF_INET|AF_INET6|resolv\.conf|nsswitch|/etc/hosts|execve.*dial9' calls; then
		fail "the traced program reached for the network"
	fi
else
	echo "strace cannot trace here: what the program asks the kernel was not looked at"
fi

# ---- secrets ----
cat >look <<'END'
#!/bin/sh
# What anybody may see of the processes around $1 `dial9 record`, until the program under it has recorded something.
while [ ! -e enough ]; do
	for cmdline in /proc/[0-9]*/cmdline; do
		{ tr '\0' ' ' <"$cmdline" && echo; } 2>/dev/null || true
	done
	sleep 0.05
done
END
chmod +x look
canary=CANARY$$x
mkdir -p quiet
# The program gets an environment without them, as it would from a service manager that has them in a file.
printf '[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\n' >credentials
for way in environment file; do
	rm -f enough
	./look >"cmdlines.$way" 9>&- &
	looker=$!
	if [ $way = environment ]; then
		AWS_ACCESS_KEY_ID=AKID$canary AWS_SECRET_ACCESS_KEY=SECRET$canary AWS_SESSION_TOKEN=TOKEN$canary \
			"$dial9" record --ship=s3://bucket/p --rotate 1s -o "$way" -- env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY \
			-u AWS_SESSION_TOKEN ./timer 1500 >"said.$way" 2>&1 9>&- &
	else
		printf '[default]\naws_access_key_id = AKID%s\naws_secret_access_key = SECRET%s\naws_session_token = TOKEN%s\n' \
			$canary $canary $canary >credentials
		chmod 600 credentials
		env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY AWS_SHARED_CREDENTIALS_FILE="$work/credentials" \
			"$dial9" record --ship=s3://bucket/p --rotate 1s -o "$way" -- ./timer 1500 >"said.$way" 2>&1 9>&- &
	fi
	recorder=$!
	await has_active "$way"
	program=$(find "$way" -name 'trace.*.active' | head -n 1 | sed 's|/trace.*||; s|.*-||')
	tr '\0' '\n' <"/proc/$program/environ" >"environ.$way"
	tr '\0' '\n' <"/proc/$program/cmdline" | grep -qx ./timer || fail "process $program is not the program"
	wait $recorder || true
	: >enough
	wait $looker
	grep -q 'dial9 ship --to s3://bucket/p' "cmdlines.$way" || fail "nobody saw the shipper"
	# The store refused it: what it holds is here, and a message was printed.
	grep -q '; left: ' "said.$way" || fail "$(cat "said.$way")"
	for path in $(find "$way" -name 'trace.*.bin.zst'); do
		"$dial9" export --format trc -o "$path.plain" "$path"
		"$dial9" info "$path" >"$path.told"
	done
	if grep -rl -- "$canary" "$way" "said.$way" "environ.$way" "cmdlines.$way" "$work/s3" /dev/shm/dial9-"$(id -u)"/*/ring 2>/dev/null; then
		fail "a secret is there ($way)"
	fi
done
stop_store
