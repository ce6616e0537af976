/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered: events that say who recorded them and count up, and what a trace of them adds up to. */

#ifndef D9_TESTS_RECORD_NUMBERED_H
#define D9_TESTS_RECORD_NUMBERED_H

#include <dial9/event.h>

#include "core/record/scratch.h"

#define NUMBERED_WHO 16

static const struct d9_field numbered_fields[] = {
	{ "pid", D9_FIELD_VARINT, NULL, NULL },
	{ "who", D9_FIELD_VARINT, NULL, NULL },
	{ "number", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type numbered = D9_EVENT_TYPE("Numbered", numbered_fields);

static inline void number(uint64_t who, uint64_t n)
{
	uint64_t pid = (uint64_t)getpid();

	D9_EMIT(&numbered, pid, who, n);
}

struct numbers {
	uint64_t pid; /* whose they have to be */
	uint64_t found[NUMBERED_WHO], next[NUMBERED_WHO], missing[NUMBERED_WHO];
	uint64_t lost; /* told by RecorderLossEvents */
	uint64_t polls[NUMBERED_WHO];
	bool seen[NUMBERED_WHO], polling[NUMBERED_WHO];
	uint64_t foreign, disorder, unnamed; /* what must not be */
	uint64_t told; /* of |lost|, not matched by a gap yet */
};

static inline uint64_t numbered_field(const struct d9_event *event, const char *name)
{
	const struct d9_value *value = d9_event_field(event, name);

	return value ? value->u.u64 : UINT64_MAX;
}

static inline void numbers_poll(struct numbers *n, const struct d9_event *event, bool starts)
{
	uint64_t worker = numbered_field(event, "worker_id");

	/* A trace may begin with either. */
	if (worker >= NUMBERED_WHO || (n->seen[worker] && n->polling[worker] == starts)) {
		n->disorder++;
		return;
	}
	n->seen[worker] = true;
	n->polling[worker] = starts;
	n->polls[worker] += starts;
}

static inline void numbers_note(void *arg, const struct d9_event *event)
{
	struct numbers *n = arg;
	const char *name = d9_event_name(event);
	uint64_t who, i;

	if (!strcmp(name, "PollStartEvent") || !strcmp(name, "PollEndEvent"))
		numbers_poll(n, event, name[4] == 'S');
	if (!strcmp(name, "RecorderLossEvent")) {
		n->lost += numbered_field(event, "events");
		n->told += numbered_field(event, "events");
	}
	if (strcmp(name, "Numbered") != 0)
		return;
	who = numbered_field(event, "who");
	i = numbered_field(event, "number");
	if (numbered_field(event, "pid") != n->pid || who >= NUMBERED_WHO) {
		n->foreign++;
		return;
	}
	if (i < n->next[who]) {
		n->disorder++;
		return;
	}
	n->found[who]++;
	n->missing[who] += i - n->next[who];
	/* A gap is named before what comes behind it. */
	if (i != n->next[who] && n->told < i - n->next[who])
		n->unnamed++;
	else
		n->told -= i - n->next[who];
	n->next[who] = i + 1;
}

/* Read the trace of process |pid| below |dir|, in the order of its file. */
static inline struct numbers numbers_of(const char *dir, pid_t pid)
{
	struct numbers numbers = { .pid = (uint64_t)pid };
	DIR *d = opendir(dir);
	char ending[32], path[PATH_MAX];

	snprintf(ending, sizeof(ending), "-%d", (int)pid);
	for (struct dirent *e; d && (e = readdir(d));) {
		size_t len = strlen(e->d_name), end = strlen(ending);

		if (len < end || strcmp(e->d_name + len - end, ending) != 0)
			continue;
		snprintf(path, sizeof(path), "%.3000s/%s", dir, e->d_name);
		scratch_read(path, true, numbers_note, &numbers);
	}
	if (d)
		closedir(d);
	return numbers;
}

#endif /* D9_TESTS_RECORD_NUMBERED_H */
