/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <stddef.h>

#define D9__DPKG_INFO "/var/lib/dpkg/info" /* what is installed, by dpkg's own account */

/*
 * For each of |n| files the Debian package that has its debug information: "libev4-dbgsym", or "libc6-dbg".  |packages|
 * receives texts in new memory; NULL where no package of this machine has that file.  |info| is D9__DPKG_INFO but for
 * tests.  0 or -ENOMEM.
 */
int d9__debian_debug_packages(const char *info, const char *const *files, size_t n, char **packages);
