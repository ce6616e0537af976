/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/options.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_system.h"
#include "text/text.h"
#include "watch/recorders.h"

#define RING_BYTES   (UINT64_C(32) << 20) /* the size that a ring may grow to */
#define BUDGET_BYTES (UINT64_C(1) << 30)

/* The first line of a file of the kernel's; false if there is none. */
static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(buf, (int)size, file);

	if (file)
		fclose(file);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

/* ---- the ring's memory ---- */

/* True if |path| is missing or this user's alone; another user could have made it first. */
static bool is_own_folder(struct d9__doctor *doctor, const char *name, const char *path)
{
	struct stat st;

	if (lstat(path, &st) && errno == ENOENT)
		return true;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return true;
	d9__doctor_note(doctor, name, D9__CHECK_WARN, "%s is not a folder of your own, 0700", path);
	d9__doctor_advise(doctor, "have its owner or root remove it: rm -r %s", path);
	return false;
}

static void check_shm(struct d9__doctor *doctor)
{
	static const char name[] = "shared memory";
	char own[64], size[D9__SIZE_LEN];
	struct statvfs fs;
	uint64_t bytes;

	snprintf(own, sizeof(own), "/dev/shm/dial9-%u", (unsigned)geteuid());
	if (statvfs("/dev/shm", &fs) || access("/dev/shm", W_OK | X_OK)) {
		d9__doctor_note(doctor, name, D9__CHECK_WARN,
				"/dev/shm: %s; a killed program's last events are lost",
				strerror(errno));
		d9__doctor_advise(doctor, "mount it: mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
		return;
	}
	if (!is_own_folder(doctor, name, own))
		return;
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	d9__size_text(bytes, size);
	if (bytes >= RING_BYTES) {
		d9__doctor_note(doctor, name, D9__CHECK_OK, "/dev/shm has %s free", size);
		return;
	}
	d9__doctor_note(doctor, name, D9__CHECK_WARN,
			"/dev/shm has %s free; bursts may not fit into the ring of a program", size);
	d9__doctor_advise(doctor, "mount -o remount,size=256M /dev/shm, in a container "
				  "--shm-size=256m; or remove what rings were left there");
}

/* ---- the trace directory ---- */

/* The nearest of |path|'s parents that exists. */
static void find_existing(char *path)
{
	struct stat st;

	while (stat(path, &st)) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path) {
			strcpy(path, "/");
			return;
		}
		*slash = '\0';
	}
}

static void check_trace_dir(struct d9__doctor *doctor)
{
	static const char name[] = "trace directory";
	struct d9_options options = { .no_environment = false };
	char dir[PATH_MAX], existing[PATH_MAX], size[D9__SIZE_LEN];
	struct statvfs fs = { 0 };
	struct stat st;
	uint64_t bytes;

	/* As a recorder that is attached would. */
	if (d9__options_resolve(&options, NULL))
		return;
	snprintf(dir, sizeof(dir), "%s%s", d9__options_text(&options, D9__OPTION_TRACE_DIR)[0] == '/' ? "" : "./",
		 d9__options_text(&options, D9__OPTION_TRACE_DIR));
	d9__options_release(&options);
	strcpy(existing, dir);
	find_existing(existing);
	if (stat(existing, &st) || !S_ISDIR(st.st_mode) || access(existing, W_OK | X_OK)) {
		d9__doctor_note(doctor, name, D9__CHECK_FAIL, "%s: cannot write to %s: %s", dir,
				existing, S_ISDIR(st.st_mode) ? strerror(errno) : "no folder");
		d9__doctor_advise(doctor, "set DIAL9_TRACE_DIR, or dial9 record -o, to a folder "
					  "that may be written");
		return;
	}
	statvfs(existing, &fs);
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	d9__size_text(bytes, size);
	if (bytes >= BUDGET_BYTES) {
		d9__doctor_note(doctor, name, D9__CHECK_OK, "%s, %s free", dir, size);
		return;
	}
	d9__doctor_note(doctor, name, D9__CHECK_WARN, "%s, only %s free; a trace may take 1 GiB",
			dir, size);
	d9__doctor_advise(doctor, "make room, or allow less: DIAL9_MAX_DISK_USAGE_MB, see dial9(3)");
}

/* ---- variables ---- */

/* The complaints of a recorder about this environment. */
struct complaints {
	char text[512];
	size_t n;
};

static void on_complaint(void *arg, enum d9_log_level level, const char *message)
{
	struct complaints *complaints = arg;
	size_t used = strlen(complaints->text);

	(void)level;
	snprintf(complaints->text + used, sizeof(complaints->text) - used, "%s%s", used ? "; " : "", message);
	complaints->n++;
}

static void check_variables(struct d9__doctor *doctor)
{
	struct complaints complaints = { .n = 0 };
	struct d9_options api = { .log = on_complaint, .log_arg = &complaints };
	struct d9_options options = { .no_environment = false };

	d9__options_resolve(&options, &api);
	d9__options_release(&options);
	if (complaints.n) {
		d9__doctor_note(doctor, "variables", D9__CHECK_WARN, "%s", complaints.text);
		d9__doctor_advise(doctor, "dial9(3) lists the variables and their values");
	} else {
		d9__doctor_note(doctor, "variables", D9__CHECK_OK, "%s",
				d9__environment_ours(0) ? "all that begin with DIAL9_ are known, and their "
							  "values make sense"
							: "none begins with DIAL9_");
	}
}

/* ---- limits ---- */

static void check_limits(struct d9__doctor *doctor)
{
	struct rlimit limit;
	char size[D9__SIZE_LEN];

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 64) {
		d9__doctor_note(doctor, "descriptors", D9__CHECK_WARN,
				"at most %" PRIu64 "; the recorder needs about ten of its own",
				(uint64_t)limit.rlim_cur);
		d9__doctor_advise(doctor, "ulimit -n 1024, or LimitNOFILE= of the service");
	} else {
		d9__doctor_note(doctor, "descriptors", D9__CHECK_OK, "at most %" PRIu64,
				(uint64_t)limit.rlim_cur);
	}
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < BUDGET_BYTES) {
		d9__doctor_note(doctor, "file size", D9__CHECK_WARN, "at most %s: longer segments "
				"are errors", d9__size_text((uint64_t)limit.rlim_cur, size));
		d9__doctor_advise(doctor, "ulimit -f unlimited, or LimitFSIZE= of the service");
	} else {
		d9__doctor_note(doctor, "file size", D9__CHECK_OK, "not limited");
	}
}

/* ---- the kernel ---- */

static void check_clock(struct d9__doctor *doctor)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char source[64] = "unknown";

	read_line(path, source, sizeof(source));
#if defined(__x86_64__) || defined(__i386__)
	if (strcmp(source, "tsc") != 0) {
		d9__doctor_note(doctor, "clock", D9__CHECK_WARN,
				"the kernel's clock source is %s, not tsc: an event costs about "
				"20 ns more",
				source);
		d9__doctor_advise(doctor, "see dmesg | grep -i tsc; if the ticks are sound: "
					  "DIAL9_CLOCK=tsc");
		return;
	}
#endif
	d9__doctor_note(doctor, "clock", D9__CHECK_OK, "clock source %s", source);
}

static void check_schedstat(struct d9__doctor *doctor)
{
	char line[128];

	if (read_line("/proc/thread-self/schedstat", line, sizeof(line)) &&
	    strtoull(line, NULL, 10) > 0) {
		d9__doctor_note(doctor, "scheduler", D9__CHECK_OK,
				"CPU time and the wait for a CPU can be read");
		return;
	}
	d9__doctor_note(doctor, "scheduler", D9__CHECK_WARN,
			"/proc/thread-self/schedstat cannot be read: how long loops wait for a CPU "
			"is not recorded");
	d9__doctor_advise(doctor, "a kernel with CONFIG_SCHED_INFO, and /proc mounted");
}

/* Settings that profiling with the kernel's help needs; without it they do no harm. */
static void check_perf(struct d9__doctor *doctor)
{
	char line[64];

	if (!read_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line))) {
		d9__doctor_note(doctor, "perf events", D9__CHECK_WARN,
				"this kernel has none, or hides them");
	} else if (atoi(line) > 1 && geteuid()) {
		d9__doctor_note(doctor, "perf events", D9__CHECK_WARN,
				"perf_event_paranoid is %s: no samples of switches and the kernel",
				line);
		d9__doctor_advise(doctor, "sysctl kernel.perf_event_paranoid=1");
	} else {
		d9__doctor_note(doctor, "perf events", D9__CHECK_OK, "perf_event_paranoid is %s",
				line);
	}
	if (!read_line("/proc/sys/kernel/kptr_restrict", line, sizeof(line)))
		return;
	if (atoi(line) > (geteuid() ? 0 : 1)) {
		d9__doctor_note(doctor, "kernel symbols", D9__CHECK_WARN,
				"kptr_restrict is %s: addresses in the kernel get no names", line);
		d9__doctor_advise(doctor, "sysctl kernel.kptr_restrict=0");
	} else {
		d9__doctor_note(doctor, "kernel symbols", D9__CHECK_OK, "kptr_restrict is %s", line);
	}
}

void d9__doctor_system(struct d9__doctor *doctor)
{
	check_shm(doctor);
	check_trace_dir(doctor);
	check_variables(doctor);
	check_limits(doctor);
	check_clock(doctor);
	check_schedstat(doctor);
	check_perf(doctor);
}
