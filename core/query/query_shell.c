/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a query from standard input: typed, with a history, or piped. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "query/query.h"
#include "query/query_schema.h"
#include "query/query_shell.h"
#include "text/fail.h"
#include "tool/user_folder.h"

#define PROMPT	    "dial9> "
#define PROMPT_MORE "  ...> "
#define HISTORY_MAX 1000

static sqlite3 *interrupted; /* the database whose statement Ctrl-C ends */

static void on_interrupt(int signal)
{
	(void)signal;
	if (interrupted)
		sqlite3_interrupt(interrupted);
}

/* ---- lines ---- */

#if HAVE_LIBEDIT
static const char *const words[] = { "SELECT",	    "FROM",	     "WHERE",	"GROUP BY",
				     "ORDER BY",    "LIMIT",	     "JOIN",	"USING",
				     "percentile(", "json_extract(", ".schema", ".tables",
				     ".format",	    ".quit",	     NULL };

/* The |i|th word that can be completed, or NULL. */
static const char *word_at(size_t i)
{
	size_t n = 0;

	while (d9__query_views[n].name)
		n++;
	if (i < D9__QUERY_TABLES)
		return d9__query_tables[i].name;
	i -= D9__QUERY_TABLES;
	if (i < n)
		return d9__query_views[i].name;
	return i - n < sizeof(words) / sizeof(words[0]) ? words[i - n] : NULL;
}

static char *complete_next(const char *text, int again)
{
	static size_t next;
	const char *word;

	if (!again)
		next = 0;
	while ((word = word_at(next++)))
		if (!strncasecmp(word, text, strlen(text)))
			return strdup(word);
	return NULL;
}

static char **complete(const char *text, int start, int end)
{
	(void)start;
	(void)end;
	rl_attempted_completion_over = 1;
	return rl_completion_matches(text, complete_next);
}

/*
 * Find the file $XDG_STATE_HOME/dial9/query_history, or below ~/.local/state; false: neither folder
 * is known.
 */
static bool history_path(char path[PATH_MAX])
{
	if (!d9__user_folder("XDG_STATE_HOME", ".local/state", path) || strlen(path) >= PATH_MAX - 20)
		return false;
	strcat(path, "/query_history");
	return true;
}

/* The folders that |path| lies in.  False: one of them cannot be made. */
static bool make_folders(char *path)
{
	bool made = true;

	for (char *slash = strchr(path + 1, '/'); slash && made; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		made = !mkdir(path, 0700) || errno == EEXIST;
		*slash = '/';
	}
	return made;
}

static void begin_lines(bool typed)
{
	static char name[] = "dial9";
	char path[PATH_MAX];

	if (!typed)
		return;
	rl_readline_name = name;
	rl_attempted_completion_function = complete;
	using_history();
	stifle_history(HISTORY_MAX);
	if (history_path(path))
		read_history(path);
}

static void end_lines(bool typed)
{
	char path[PATH_MAX];
	mode_t mask;

	if (!typed || !history_path(path) || !make_folders(path))
		return;
	/* Only this user may read the history, because questions can hold names. */
	mask = umask(077);
	write_history(path);
	umask(mask);
}
#else
static void begin_lines(bool typed)
{
	(void)typed;
}

static void end_lines(bool typed)
{
	(void)typed;
}
#endif

/* A line without its end, in new memory; NULL: there is none. */
static char *read_line(bool typed, const char *prompt)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

#if HAVE_LIBEDIT
	if (typed) {
		line = readline(prompt);
		if (line && *line)
			add_history(line);
		return line;
	}
#endif
	if (typed) {
		fputs(prompt, stderr);
		fflush(stderr);
	}
	len = getline(&line, &size, stdin);
	if (len < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* ---- questions ---- */

static bool is_blank(const char *text)
{
	return !text[strspn(text, " \t\r\n")];
}

/* |line| behind |*text|, with a line end between.  False: out of memory. */
static bool append(char **text, const char *line)
{
	char *longer;

	if (asprintf(&longer, "%s%s\n", *text ? *text : "", line) < 0)
		return false;
	free(*text);
	*text = longer;
	return true;
}

/* .format and .quit, which are the shell's own. */
static bool take_own(const char *line, struct d9__query_options *options, bool *quit)
{
	char word[16] = "", name[16] = "";
	enum d9__query_format format;

	if (sscanf(line, " %15s %15s", word, name) < 1)
		return false;
	*quit = !strcmp(word, ".quit") || !strcmp(word, ".exit");
	if (*quit)
		return true;
	if (strcmp(word, ".format") != 0)
		return false;
	format = d9__query_format_find(name);
	if (format == D9__QUERY_FORMATS)
		d9__cmd_fail("query", ".format takes table, csv, jsonl or json, not '%s'", name);
	else
		options->format = format;
	return true;
}

/* Take one line; |*text| is the statement's text before it.  Returns an exit status. */
static int take_line(struct d9__query *query, struct d9__query_options *options, const char *line,
		     char **text, struct d9__text_out *out, bool *quit)
{
	int status = 0;

	if (!*text && take_own(line, options, quit))
		return 0;
	if (!*text && d9__query_command(line, out, &status)) {
		d9__text_flush(out);
		return status;
	}
	if (!append(text, line))
		return d9__cmd_fail("query", "out of memory");
	if (!sqlite3_complete(*text) && !is_blank(*text))
		return 0;
	status = d9__query_run(query, *text, out);
	free(*text);
	*text = NULL;
	return status;
}

int d9__query_shell(struct d9__query *query, struct d9__query_options *options)
{
	static struct d9__text_out out;
	struct sigaction action = { .sa_handler = on_interrupt }, old;
	bool typed = isatty(STDIN_FILENO), quit = false;
	char *line, *text = NULL;
	int status = 0, last = 0;

	d9__text_init(&out, STDOUT_FILENO);
	if (typed) {
		fputs("Tables: .tables, .schema TABLE; statements end with ;  Ctrl-D leaves.\n",
		      stderr);
		interrupted = query->db;
		sigaction(SIGINT, &action, &old);
	}
	begin_lines(typed);
	while (!quit && (typed || !last) &&
	       (line = read_line(typed, text ? PROMPT_MORE : PROMPT))) {
		last = take_line(query, options, line, &text, &out, &quit);
		free(line);
	}
	/* The last statement of a file needs no semicolon. */
	if (!quit && !last && text && !is_blank(text))
		last = d9__query_run(query, text, &out);
	free(text);
	end_lines(typed);
	if (typed)
		sigaction(SIGINT, &old, NULL);
	status = d9__text_finish(&out, "query");
	return status ? status : typed ? 0 : last;
}
