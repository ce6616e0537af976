#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Twenty seconds of recording, rotating and switching: all counts add up and nothing grows.
set -eu

rate=200000
# Slowed down ten times and more, the recorder may lose events; they would add up as well.
[ "$SANITIZER" = no ] || rate=40000
"$top_builddir/tests/soak/soak" "${SOAK_SECONDS:-20}" "$rate"
