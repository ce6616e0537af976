/* SPDX-License-Identifier: Apache-2.0 */
/* The next look is due at the time that the file .peers was changed last, which lies ahead. */
#include "config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/time.h"
#include "drain/peers.h"

#define NAME       ".peers"
#define CHEAP_NS   UINT64_C(5000000) /* some hundreds of peers: no need to wait, nor for a file */
#define SHARE      100               /* of the time, one part is for looking */
#define LONGEST_NS (3600 * D9__SECOND_NS)

bool d9__peers_due(int dir_fd, uint64_t real_ns)
{
	uint64_t due_ns;
	struct stat st;

	if (fstatat(dir_fd, NAME, &st, AT_SYMLINK_NOFOLLOW))
		return true;
	due_ns = d9__timespec_ns(&st.st_mtim);
	/* Further ahead than anybody says: the clock was set back. */
	return due_ns <= real_ns || due_ns > real_ns + LONGEST_NS;
}

void d9__peers_looked(int dir_fd, uint64_t took_ns, uint64_t real_ns)
{
	uint64_t wait_ns = took_ns < LONGEST_NS / SHARE ? took_ns * SHARE : LONGEST_NS;
	struct timespec until = d9__timespec_of(real_ns + wait_ns);
	int fd;

	if (took_ns < CHEAP_NS) {
		unlinkat(dir_fd, NAME, 0);
		return;
	}
	fd = openat(dir_fd, NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	fd = d9__descriptor_place(fd);
	/* Refused: the next one looks too. */
	if (futimens(fd, (const struct timespec[]){ until, until }))
		unlinkat(dir_fd, NAME, 0);
	close(fd);
}
