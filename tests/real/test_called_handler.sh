#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GIO calls a handler of the program, which waits in a synchronous call of GIO: the report names the handler, and the line
# from which it waits, and not GIO's own callback.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need node
"$dial9" record -q -o "$dir/trace" -- "$helpers/called_handler" || fail "the program failed"
equal "check" blocked-callback "$(report "$dir/trace" 'r.findings[0].check')"
equal "whose" on_incoming "$(report "$dir/trace" 'r.findings[0].name')"
case $(report "$dir/trace" 'r.findings[0].blocked') in
"poll() at on_incoming (called_handler.c:"*) ;;
*) fail "where it waits: $(report "$dir/trace" 'r.findings[0].blocked')" ;;
esac
