/* SPDX-License-Identifier: Apache-2.0 */
/* Marks what the shared libraries export. */

#ifndef DIAL9_EXPORT_H
#define DIAL9_EXPORT_H

#define D9_API __attribute__((visibility("default")))

#endif /* DIAL9_EXPORT_H */
