/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of a profile in AWS's two files, and of the command that a profile names. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ship/credentials_json.h"
#include "ship/credentials_profile.h"
#include "stage/words.h"

#define FILE_MAX        D9__SCRATCH_SIZE
#define PROCESS_SECONDS 30

extern char **environ;

struct values {
	char id[512], secret[512], token[D9__TOKEN_MAX], process[1024], region[64];
};

static const char *profile_of(const struct d9__credentials *credentials)
{
	const char *profile = credentials->profile;

	if (!profile)
		profile = getenv("AWS_PROFILE");
	return profile && *profile ? profile : "default";
}

/* |variable| or ~/.aws/|name|. */
static void path_of(const char *variable, const char *name, char *path, size_t size)
{
	const char *given = getenv(variable), *home = getenv("HOME");

	if (given && *given)
		snprintf(path, size, "%s", given);
	else
		snprintf(path, size, "%s/.aws/%s", home ? home : "", name);
}

/* The file's text in |buffer|, terminated: its length, or -errno. */
static ssize_t read_text(const char *path, char *buffer, size_t size, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t done = 0;
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -EINVAL;
	}
	while (done < size - 1 && (n = read(fd, buffer + done, size - 1 - done)) > 0)
		done += (size_t)n;
	close(fd);
	buffer[done] = '\0';
	return n < 0 ? -EIO : (ssize_t)done;
}

static char *trimmed(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* True if "[profile NAME]" or "[NAME]" is |wanted|. */
static bool is_section(char *line, const char *wanted)
{
	char *end = strchr(line, ']'), *name;

	if (!end)
		return false;
	*end = '\0';
	name = trimmed(line + 1);
	if (!strncmp(name, "profile", 7) && strchr(" \t", name[7]) && name[7])
		name = trimmed(name + 7);
	return !strcmp(name, wanted);
}

static void take_value(struct values *values, const char *name, const char *value)
{
	const struct {
		const char *name;
		char *place;
		size_t size;
	} known[] = {
		{ "aws_access_key_id", values->id, sizeof(values->id) },
		{ "aws_secret_access_key", values->secret, sizeof(values->secret) },
		{ "aws_session_token", values->token, sizeof(values->token) },
		{ "credential_process", values->process, sizeof(values->process) },
		{ "region", values->region, sizeof(values->region) },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name) && !*known[i].place)
			snprintf(known[i].place, known[i].size, "%s", value);
}

/* Read the section of |profile| in |text|, which is cut to pieces. */
static void parse(char *text, const char *profile, struct values *values)
{
	bool inside = false;
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		char *equals = strchr(line, '=');

		/* An indented line belongs to a nested group. */
		if (*line == ' ' || *line == '\t' || *line == '#' || *line == ';')
			continue;
		if (*line == '[') {
			inside = is_section(line, profile);
		} else if (inside && equals) {
			*equals = '\0';
			take_value(values, trimmed(line), trimmed(equals + 1));
		}
	}
}

/* 0, -ENOENT, -EINVAL with |why|.  Group bits are the mask of an ACL where systemd made the file. */
static int read_file(struct d9__credentials *credentials, const char *path, struct values *values, char *why,
		     size_t size)
{
	struct stat st = { 0 };
	ssize_t len = read_text(path, credentials->secrets->scratch, FILE_MAX, &st);

	if (len == -ENOENT || len == -ENOTDIR)
		return -ENOENT;
	if (len < 0) {
		snprintf(why, size, "%.100s: %s", path, strerror((int)-len));
		return -EINVAL;
	}
	parse(credentials->secrets->scratch, profile_of(credentials), values);
	OPENSSL_cleanse(credentials->secrets->scratch, (size_t)len);
	if ((*values->secret || *values->token) && st.st_mode & S_IRWXO) {
		snprintf(why, size, "%.100s has a secret and others may read it: chmod 600 it", path);
		return -EINVAL;
	}
	return 0;
}

/* Read both files; a value in the first wins. */
static int read_profile(struct d9__credentials *credentials, struct values *values, char *why, size_t size)
{
	char path[4096];
	int first, second;

	path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials", path, sizeof(path));
	first = read_file(credentials, path, values, why, size);
	if (first == -EINVAL)
		return first;
	path_of("AWS_CONFIG_FILE", "config", path, sizeof(path));
	second = read_file(credentials, path, values, why, size);
	return second == -EINVAL ? second : first && second ? -ENOENT : 0;
}

bool d9__credentials_region(const struct d9__credentials *credentials, char *region, size_t size)
{
	struct d9__credentials look = *credentials;
	struct values values = { 0 };
	char why[192];

	look.secrets = d9__secrets_new();
	if (!look.secrets)
		return false;
	read_profile(&look, &values, why, sizeof(why));
	snprintf(region, size, "%s", values.region);
	OPENSSL_cleanse(&values, sizeof(values));
	d9__secrets_free(look.secrets);
	return *region;
}

static int spawn(char **words, int out, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	int err = posix_spawn_file_actions_init(&files);

	if (err)
		return err;
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	err = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (!err)
		err = posix_spawnp(pid, words[0], &files, NULL, words, environ);
	posix_spawn_file_actions_destroy(&files);
	return err;
}

/* Read |fd| until its end; -1: more than |size|, or later than |until|. */
static ssize_t read_all(int fd, char *buffer, size_t size, time_t until)
{
	size_t done = 0;

	while (done < size) {
		struct pollfd waiting = { fd, POLLIN, 0 };
		time_t now = time(NULL);
		ssize_t n;

		if (now >= until || poll(&waiting, 1, 1000 * (int)(until - now)) == 0)
			return -1;
		n = read(fd, buffer + done, size - done);
		if (n == 0)
			return (ssize_t)done;
		if (n < 0 && errno != EINTR)
			return -1;
		done += n > 0 ? (size_t)n : 0;
	}
	return -1;
}

/* Read the command's output into |buffer|: its length; or -1 with |why|. */
static ssize_t said_by(char **words, char buffer[D9__SCRATCH_SIZE], char *why, size_t size)
{
	int ends[2], status = 0, err = pipe2(ends, O_CLOEXEC) ? errno : 0;
	ssize_t len;
	pid_t pid;

	if (!err) {
		err = spawn(words, ends[1], &pid);
		close(ends[1]);
		if (err)
			close(ends[0]);
	}
	if (err) {
		snprintf(why, size, "credential_process '%.80s': %s", words[0], strerror(err));
		return -1;
	}
	len = read_all(ends[0], buffer, D9__SCRATCH_SIZE - 1, time(NULL) + PROCESS_SECONDS);
	close(ends[0]);
	if (len < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (len >= 0 && status == 0)
		return len;
	snprintf(why, size, "credential_process '%.80s' %s", words[0], len < 0 ? "did not end, or said too much" : "failed");
	return -1;
}

static int of_process(struct d9__credentials *credentials, const char *command, char *why,
		      size_t why_size)
{
	const char *fault = NULL;
	char **words = d9__words_split(command, &fault);
	ssize_t len;
	int err = 0;

	if (!words) {
		snprintf(why, why_size, "credential_process: %s", fault);
		return -EINVAL;
	}
	len = said_by(words, credentials->secrets->scratch, why, why_size);
	if (len < 0)
		err = -EINVAL;
	else
		err = d9__credentials_take_json(credentials, (size_t)len, "SessionToken", why, why_size);
	OPENSSL_cleanse(credentials->secrets->scratch, D9__SCRATCH_SIZE);
	free(words);
	return err;
}

int d9__credentials_of_profile(struct d9__credentials *credentials, char *why, size_t why_size)
{
	struct values values = { 0 };
	int err = read_profile(credentials, &values, why, why_size);

	if (!err && *values.id) {
		bool set = d9__secrets_set(credentials->secrets, values.id, values.secret,
					   values.token, 0);

		err = set ? 0 : -EINVAL;
		if (!set)
			snprintf(why, why_size,
				 "profile '%.60s' has aws_access_key_id, but its secret is missing "
				 "or no key",
				 profile_of(credentials));
	} else if (!err && *values.process) {
		err = of_process(credentials, values.process, why, why_size);
	} else if (!err) {
		snprintf(why, why_size, "profile '%.60s' is not in the files, or has no keys",
			 profile_of(credentials));
		err = -ENOENT;
	}
	OPENSSL_cleanse(&values, sizeof(values));
	return err;
}
