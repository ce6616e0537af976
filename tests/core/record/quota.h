/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota: a small file system on which the kernel itself counts what is written and refuses more.  btrfs,
 * because its quota holds for root too and needs no format of ext4's, which many kernels leave out.
 */

#ifndef D9_TESTS_RECORD_QUOTA_H
#define D9_TESTS_RECORD_QUOTA_H

#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUOTA_FS_BYTES ((off_t)128 << 20)

/* A loop device for |image| that goes when it is unmounted.  Its path, or NULL. */
static inline const char *quota_loop_device(const char *image)
{
	static char path[32];
	struct loop_info64 info = { .lo_flags = LO_FLAGS_AUTOCLEAR };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number, device, file;
	bool good;

	number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	if (number < 0)
		return NULL;
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	device = open(path, O_RDWR | O_CLOEXEC);
	file = open(image, O_RDWR | O_CLOEXEC);
	good = device >= 0 && file >= 0 && !ioctl(device, LOOP_SET_FD, file);
	/* Cleared with its last user, of which the mount is one by then: |device| stays open. */
	good = good && !ioctl(device, LOOP_SET_STATUS64, &info);
	close(file);
	return good ? path : NULL;
}

/* Mount a small ext4 at |dir|, made in |image|.  NULL, or what is missing here. */
static inline const char *quota_mount_ext4(const char *image, const char *dir)
{
	char command[PATH_MAX + 64];
	const char *device;
	int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool good = fd >= 0 && !ftruncate(fd, 32 << 20);

	close(fd);
	snprintf(command, sizeof(command), "mkfs.ext4 -q -O ^has_journal -m 0 '%.4000s' >/dev/null 2>&1", image);
	if (!good || system(command))
		return "no mkfs.ext4";
	if (!(device = quota_loop_device(image)))
		return "no loop device";
	if (mkdir(dir, 0700) || mount(device, dir, "ext4", MS_NOSUID, NULL))
		return "the kernel has no ext4";
	return chmod(dir, 0700) ? "no rights" : NULL;
}

/* Bytes that may be written below |dir|. */
static inline bool quota_set(const char *dir, uint64_t bytes)
{
	struct btrfs_ioctl_qgroup_limit_args args = {
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
	};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && !ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args);

	close(fd);
	return good;
}

/* Mount one at |dir|, made in |image|, with a quota of |bytes|.  NULL, or what is missing here. */
static inline const char *quota_mount(const char *image, const char *dir, uint64_t bytes)
{
	struct btrfs_ioctl_quota_ctl_args args = { .cmd = BTRFS_QUOTA_CTL_ENABLE };
	char command[PATH_MAX + 64];
	const char *device;
	int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool good = fd >= 0 && !ftruncate(fd, QUOTA_FS_BYTES);

	close(fd);
	snprintf(command, sizeof(command), "mkfs.btrfs -q -M '%.4000s' >/dev/null 2>&1", image);
	if (!good || system(command))
		return "no mkfs.btrfs";
	if (!(device = quota_loop_device(image)))
		return "no loop device";
	if (mkdir(dir, 0700) || mount(device, dir, "btrfs", MS_NOSUID, NULL))
		return "the kernel has no btrfs";
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	good = fd >= 0 && !ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args) &&
	       !ioctl(fd, BTRFS_IOC_QUOTA_RESCAN_WAIT) && !fchmod(fd, 0700);
	close(fd);
	return good && quota_set(dir, bytes) ? NULL : "btrfs without quota";
}

#endif /* D9_TESTS_RECORD_QUOTA_H */
