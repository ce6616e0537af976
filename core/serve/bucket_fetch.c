/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetch objects of a bucket into the folder of fetched files, under names that the bucket's writers
 * cannot choose.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/bucket_fetch.h"
#include "serve/bucket_item.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_request.h"

#define FETCHES_MAX 12 /* at a time */
#define OBJECT_MAX  ((uint64_t)1 << 30)
#define TEXT_MAX    ((uint64_t)8 << 20) /* for objects that are not segments */

/* Name the file of |item|.  A new object under the same key gets another name. */
static void place_of(const struct d9__bucket_source *source, const struct d9__bucket_item *item, char name[D9__FETCHED_NAME])
{
	const char *ending = item->parsed.kind == D9__STORED_SEGMENT ? item->parsed.ending : ".json";
	char *what;

	if (asprintf(&what, "%s\n%s\n%" PRIu64 "\n%" PRId64, d9__bucket_url(source->bucket), item->key, item->object_bytes,
		     item->modified_s) < 0) {
		snprintf(name, D9__FETCHED_NAME, "none");
		return;
	}
	d9__fetched_name(what, ending, name);
	free(what);
}

static bool is_of_size(int fd, uint64_t bytes)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size == bytes;
}

static int open_item(const struct d9__bucket_source *source, const struct d9__bucket_item *item)
{
	char name[D9__FETCHED_NAME];
	int fd;

	place_of(source, item, name);
	fd = d9__fetched_open(source->fetched, name);
	if (fd < 0 || is_of_size(fd, item->object_bytes))
		return fd;
	/* A machine that went down may leave less of a file than was written. */
	close(fd);
	return -ENOENT;
}

int d9__bucket_open(void *context, const char *name)
{
	const struct d9__bucket_source *source = context;
	const struct d9__bucket_item *item = d9__bucket_item_find(source, name);

	return item ? open_item(source, item) : -ENOENT;
}

char *d9__bucket_path(void *context, const char *name)
{
	const struct d9__bucket_source *source = context;
	const struct d9__bucket_item *item = d9__bucket_item_find(source, name);
	char place[D9__FETCHED_NAME] = "none";

	if (item)
		place_of(source, item, place);
	return d9__fetched_path(source->fetched, place);
}

/* ---- fetching ---- */

/* |fetch| is over: |why| not, or NULL. */
static void end_fetch(struct d9__bucket_source *source, struct d9__bucket_fetch *fetch, const char *why)
{
	struct d9__bucket_fetch **place = &source->fetches;

	while (*place != fetch)
		place = &(*place)->next;
	*place = fetch->next;
	if (fetch->fd >= 0)
		close(fetch->fd);
	if (why && *fetch->unfinished)
		d9__fetched_drop(source->fetched, fetch->unfinished);
	d9__bucket_wake(&fetch->waiters, why);
	free(fetch);
}

static void take_object(struct d9__bucket_source *source, void *of, const struct d9__bucket_answer *answer)
{
	struct d9__bucket_fetch *fetch = of;
	char name[D9__FETCHED_NAME], why[128];
	int err;

	source->fetching--;
	if (answer->class == D9__BUCKET_REFUSED && !answer->status) {
		snprintf(why, sizeof(why), "it cannot be kept here: %s", answer->message);
		end_fetch(source, fetch, why);
		return;
	}
	/* The failure is of this object alone: go on with the others. */
	if (answer->class == D9__BUCKET_ABSENT || answer->class == D9__BUCKET_REFUSED) {
		end_fetch(source, fetch, answer->class == D9__BUCKET_ABSENT ? "it is not in the bucket any more" : answer->message);
		return;
	}
	if (!d9__bucket_is_good(source, answer)) {
		end_fetch(source, fetch, source->error);
		return;
	}
	if (!is_of_size(fetch->fd, fetch->item->object_bytes)) {
		end_fetch(source, fetch, "it is not as long as the bucket's list says");
		return;
	}
	place_of(source, fetch->item, name);
	err = d9__fetched_keep(source->fetched, fetch->unfinished, name);
	if (err)
		snprintf(why, sizeof(why), "it cannot be kept: %s", strerror(-err));
	end_fetch(source, fetch, err ? why : NULL);
}

/* False: not now. */
static bool start_fetch(struct d9__bucket_source *source, struct d9__bucket_fetch *fetch)
{
	struct d9__bucket_request *request = d9__bucket_request(source, take_object, fetch);

	if (!request)
		return false;
	fetch->fd = d9__fetched_begin(source->fetched, fetch->unfinished);
	if (fetch->fd < 0) {
		request->token = 0;
		end_fetch(source, fetch, "nothing can be written to the folder for what is fetched");
		return true;
	}
	source->fetching++;
	source->n_gets++;
	/* Ask for one byte more than the list had, because the object may have grown since. */
	d9__bucket_requested(source, request,
			     d9__bucket_get(source->bucket, request->token, fetch->item->key, 0, fetch->item->object_bytes + 1, fetch->fd));
	return true;
}

static struct d9__bucket_fetch *first_waiting(const struct d9__bucket_source *source)
{
	struct d9__bucket_fetch *fetch = source->fetches;

	while (fetch && fetch->fd >= 0)
		fetch = fetch->next;
	return fetch;
}

void d9__bucket_pump_fetches(struct d9__bucket_source *source)
{
	struct d9__bucket_fetch *fetch;

	/* Start waiting fetches last, because a callback above may have asked for more. */
	while (source->fetching < FETCHES_MAX && (fetch = first_waiting(source)) && start_fetch(source, fetch))
		;
}

static struct d9__bucket_fetch *fetch_of(struct d9__bucket_source *source, struct d9__bucket_item *item)
{
	struct d9__bucket_fetch *fetch, **end = &source->fetches;

	for (; *end; end = &(*end)->next)
		if ((*end)->item == item)
			return *end;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch)
		return NULL;
	fetch->item = item;
	fetch->fd = -1;
	*end = fetch;
	return fetch;
}

static bool is_there(const struct d9__bucket_source *source, const struct d9__bucket_item *item)
{
	int fd = open_item(source, item);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Return why |item| is not fetched; NULL: it is. */
static const char *refusal(const struct d9__bucket_source *source, const struct d9__bucket_item *item)
{
	if (!item)
		return "no such segment";
	if (!item->object_bytes)
		return "it is empty";
	if (item->object_bytes > (item->parsed.kind == D9__STORED_SEGMENT ? OBJECT_MAX : TEXT_MAX))
		return "it is too large to be fetched";
	return d9__bucket_now_s() < source->rest_until_s ? source->error : NULL;
}

void d9__bucket_fetch(void *context, const char *name, d9__source_ready *ready, void *ready_context)
{
	struct d9__bucket_source *source = context;
	struct d9__bucket_item *item = d9__bucket_item_find(source, name);
	struct d9__bucket_waiter *waiter;
	struct d9__bucket_fetch *fetch;
	const char *why;

	if (item && is_there(source, item)) {
		ready(ready_context, NULL);
		return;
	}
	why = refusal(source, item);
	waiter = why ? NULL : calloc(1, sizeof(*waiter));
	fetch = waiter ? fetch_of(source, item) : NULL;
	if (!fetch) {
		free(waiter);
		ready(ready_context, why ? why : "out of memory");
		return;
	}
	*waiter = (struct d9__bucket_waiter) { .ready = ready, .context = ready_context, .next = fetch->waiters };
	fetch->waiters = waiter;
	d9__bucket_pump_fetches(source);
}

void d9__bucket_end_fetches(struct d9__bucket_source *source)
{
	while (source->fetches)
		end_fetch(source, source->fetches, "the server has ended");
}
