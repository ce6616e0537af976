/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ask a bucket what the lines of stdin say, and print each answer as JSON on a line of its own:
 *
 *	ask_store PROGRAM|- OPTIONS_JSON
 *
 *	put KEY FILE [new]         get KEY FILE FIRST SIZE      head KEY        presign KEY SECONDS
 *	list PREFIX DELIMITER AFTER CONTINUATION MAX ("-": not)  kill            wait            pid
 *
 * The nth request has token n; "wait" waits until all are answered, and so does the end of stdin.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ship/bucket.h"
#include "ship/class_name.h"
#include "ship/message.h"

#define WORDS 7

static uint64_t token;

static const char *word(char **words, size_t i)
{
	return *words[i] && strcmp(words[i], "-") ? words[i] : NULL;
}

static void print(const struct d9__bucket_answer *answer)
{
	struct json_object *line = json_object_new_object(), *keys = json_object_new_array(),
			   *prefixes = json_object_new_array();

	d9__message_add_number(line, "token", answer->token);
	d9__message_add_text(line, "class", d9__bucket_class_name(answer->class));
	d9__message_add_number(line, "status", answer->status);
	d9__message_add_number(line, "retry_after", answer->retry_after);
	d9__message_add_number(line, "bytes", answer->bytes);
	d9__message_add_text(line, "code", answer->code);
	d9__message_add_text(line, "message", answer->message);
	d9__message_add_text(line, "request", answer->request);
	d9__message_add_text(line, "etag", answer->etag);
	d9__message_add_text(line, "note", answer->note);
	d9__message_add_text(line, "url", answer->url);
	d9__message_add_text(line, "more", answer->more);
	for (size_t i = 0; i < answer->n_keys; i++)
		json_object_array_add(keys, json_object_new_string(answer->keys[i].key));
	for (size_t i = 0; i < answer->n_prefixes; i++)
		json_object_array_add(prefixes, json_object_new_string(answer->prefixes[i]));
	json_object_object_add(line, "keys", keys);
	json_object_object_add(line, "prefixes", prefixes);
	puts(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(line);
}

static void wait_for_all(struct d9__bucket *bucket)
{
	const struct d9__bucket_answer *answer;

	while (d9__bucket_outstanding(bucket) && d9__bucket_wait(bucket, -1, &answer) == 1)
		print(answer);
}

static int put(struct d9__bucket *bucket, char **words)
{
	static const struct d9__bucket_pair meta[] = {
		{ "dump", "1" }, { "dump-id", "a,b" }, { "service", "two  words" }, { "empty", "" },
	};
	struct d9__bucket_put what = { .key = words[1], .type = "application/zstd", .meta = meta, .n_meta = 4 };
	int fd = open(words[2], O_RDONLY | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	what.size = (uint64_t)st.st_size;
	what.only_new = *words[3];
	err = d9__bucket_put(bucket, ++token, &what, fd);
	close(fd);
	return err;
}

static int get(struct d9__bucket *bucket, char **words)
{
	int fd = open(words[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err;

	err = d9__bucket_get(bucket, ++token, words[1], strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10), fd);
	close(fd);
	return err;
}

static int list(struct d9__bucket *bucket, char **words)
{
	struct d9__bucket_list what = { word(words, 1), word(words, 2), word(words, 3), word(words, 4),
					(unsigned)strtoul(words[5], NULL, 10) };

	return d9__bucket_list(bucket, ++token, &what);
}

/* The only child of this process. */
static pid_t child_of(void)
{
	char path[64], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	return (pid_t)strtol(text, NULL, 10);
}

static int perform(struct d9__bucket *bucket, char **words)
{
	const char *what = words[0];

	if (!strcmp(what, "put"))
		return put(bucket, words);
	if (!strcmp(what, "get"))
		return get(bucket, words);
	if (!strcmp(what, "head"))
		return d9__bucket_head(bucket, ++token, words[1]);
	if (!strcmp(what, "list"))
		return list(bucket, words);
	if (!strcmp(what, "presign"))
		return d9__bucket_presign(bucket, ++token, words[1], (unsigned)strtoul(words[2], NULL, 10));
	if (!strcmp(what, "kill"))
		return child_of() > 0 ? kill(child_of(), SIGKILL) : 0;
	if (!strcmp(what, "cancel"))
		return d9__bucket_cancel(bucket, strtoull(words[1], NULL, 10));
	if (!strcmp(what, "pid"))
		printf("{\"pid\":%d}\n", (int)child_of());
	else
		wait_for_all(bucket);
	fflush(stdout);
	return 0;
}

static int run(struct d9__bucket *bucket)
{
	char line[8192];

	printf("{\"address\":\"%s\"}\n", d9__bucket_url(bucket));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char *words[WORDS], *rest = line, nothing[] = "";
		int err;

		line[strcspn(line, "\n")] = '\0';
		for (size_t n = 0; n < WORDS; n++) {
			words[n] = strsep(&rest, " ");
			if (!words[n])
				words[n] = nothing;
		}
		err = perform(bucket, words);
		if (err) {
			printf("{\"token\":%llu,\"error\":\"%s\"}\n", (unsigned long long)token, strerror(-err));
			fflush(stdout);
		}
	}
	wait_for_all(bucket);
	return 0;
}

int main(int argc, char **argv)
{
	struct json_object *options = argc == 3 ? json_tokener_parse(argv[2]) : NULL;
	struct d9__bucket *bucket;
	char why[512];
	int err;

	if (!options)
		return 2;
	struct d9__bucket_options given = {
		.program = word(argv, 1),
		.bucket = d9__message_text(options, "bucket", "bucket"),
		.endpoint = d9__message_text(options, "endpoint", NULL),
		.region = d9__message_text(options, "region", NULL),
		.profile = d9__message_text(options, "profile", NULL),
		.ca = d9__message_text(options, "ca", NULL),
		.sse = d9__message_text(options, "sse", NULL),
		.sse_key = d9__message_text(options, "sse_key", NULL),
		.max_rate = d9__message_number(options, "max_rate"),
		.single_max = d9__message_number(options, "single_max"),
		.parallel = (unsigned)d9__message_number(options, "parallel"),
		.stall = (unsigned)d9__message_number(options, "stall"),
		.allow_http = d9__message_number(options, "allow_http"),
		.md5 = d9__message_number(options, "md5"),
	};
	err = d9__bucket_start(&given, &bucket, why, sizeof(why));
	if (err) {
		printf("{\"error\":\"%s\",\"errno\":%d}\n", why, -err);
	} else {
		run(bucket);
		d9__bucket_free(bucket);
	}
	json_object_put(options);
	return err ? 1 : 0;
}
