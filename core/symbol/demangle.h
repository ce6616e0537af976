/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions of C++ and Rust as their authors wrote them. */

#pragma once

/*
 * "net::Server::on_read" for "_ZN3net6Server7on_readEisPv", "r::work::on_read" for
 * "_RNvNtCs6Gmm_1r4work7on_read", in new memory; NULL if |name| is no such name, memory is out, or
 * dial9 was built without a demangler.  Parameters are left out: callbacks of one library all have
 * the same.
 */
char *d9__demangle(const char *name);
