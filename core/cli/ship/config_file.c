/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ship/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"

#define FILE_MAX (1 << 16)

struct config {
	const char *command, *path;
	struct stat st;
};

static bool contains(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(text, *words))
			return true;
	return false;
}

/*
 * True if the setting is a key, or an address or command that holds one, which only the file's
 * owner may read.
 */
static bool is_secret(const char *key, const char *value)
{
	static const char *const keys[] = { "secret", "password", "token", "access-key", "access_key", "credential", NULL };
	static const char *const values[] = { "secret=", "password=", "passwd=", "token=", NULL };
	const char *host = strstr(value, "://"), *at = host ? strchr(host, '@') : NULL;

	return contains(key, keys) || contains(value, values) || (at && at < host + 3 + strcspn(host + 3, "/?#"));
}

/* ---- a line ---- */

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

static void cut_comment(char *line)
{
	for (char *c = line; (c = strchr(c, '#')) != NULL; c++)
		if (c == line || isblank((unsigned char)c[-1])) {
			*c = '\0';
			return;
		}
}

static bool take_line(const struct config *config, unsigned number, char *line, d9__config_take *take, void *arg)
{
	char where[512], *key, *value;

	cut_comment(line);
	line = trim(line);
	if (!*line)
		return true;
	snprintf(where, sizeof(where), "%.480s:%u", config->path, number);
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	key = trim(line);
	if (!value || !*key) {
		d9__cmd_fail(config->command, "%s: a line is KEY = VALUE", where);
		return false;
	}
	value = trim(value);
	if (is_secret(key, value) && config->st.st_mode & 077) {
		d9__cmd_fail(config->command, "%s: '%s' holds a secret that others can read: chmod 600 %s", where, key,
			     config->path);
		return false;
	}
	return take(arg, where, key, value);
}

static bool take_lines(const struct config *config, char *text, d9__config_take *take, void *arg)
{
	bool good = true;

	for (unsigned number = 1; good && text; number++)
		good = take_line(config, number, strsep(&text, "\n"), take, arg);
	return good;
}

/* ---- the file ---- */

static const char *fault_of(struct config *config, int fd)
{
	if (fd < 0 || fstat(fd, &config->st))
		return strerror(errno);
	if (!S_ISREG(config->st.st_mode))
		return "it is no file";
	if (config->st.st_mode & 022 || (config->st.st_uid && config->st.st_uid != geteuid()))
		return "others may write to it, and it names programs that are run: chmod go-w, chown to root or to yourself";
	return config->st.st_size > FILE_MAX ? "it is larger than 64 KiB" : NULL;
}

static char *load(int fd)
{
	char *text = calloc(1, FILE_MAX + 1);
	ssize_t n = 1;

	for (size_t len = 0; text && n > 0 && len < FILE_MAX; len += (size_t)n)
		n = read(fd, text + len, FILE_MAX - len);
	if (n >= 0)
		return text;
	free(text);
	return NULL;
}

bool d9__config_file_read(const char *command, const char *path, d9__config_take *take, void *arg, char **text)
{
	struct config config = { .command = command, .path = path };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *fault = fault_of(&config, fd);

	*text = fault ? NULL : load(fd);
	if (!fault && !*text)
		fault = "it cannot be read";
	if (fd >= 0)
		close(fd);
	if (fault) {
		d9__cmd_fail(command, "%s: %s", path, fault);
		return false;
	}
	return take_lines(&config, *text, take, arg);
}
