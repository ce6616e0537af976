/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: what each -errno means when a dial9 function returns it. */

#ifndef DIAL9_ERROR_H
#define DIAL9_ERROR_H

#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions return 0 (or a count) on success and a negative errno on failure.  Iterators return
 * 1 for an item, 0 at the end, a negative errno on failure.
 *
 *   -EINVAL           the caller's mistake: a NULL, a bad size, an unknown name
 *   -EBADMSG          a malformed trace
 *   -EPROTONOSUPPORT  a trace of a newer format
 *   -EFBIG            more than a limit: of the size of files, of directories, of a reader's memory
 *   -ESTALE           a file that changed while it was read
 *   -ENODATA          a segment cut in the middle of a frame; all before the cut was delivered
 *   -ENOENT           the loop library is not present as a shared object
 *   -ENOTSUP          a guard refused: unknown layout, failed self-test, other machine
 *   -EALREADY         a recorder is running in this process
 *   -ENOSPC           a registry of fixed size is full
 */

/**
 * Name |err|, a negative errno, in dial9's words, or in those of the C library.
 *
 * @return static text without a final full stop, never NULL; also for what is no errno
 *
 * Threads: any.  Async-signal-safe.
 * Since: 0.1
 */
D9_API const char *d9_strerror(int err);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_ERROR_H */
