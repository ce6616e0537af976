/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/trigger_text.h"
#include "cli/cmd.h"
#include "cli/trigger_names.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/control.h"

#define ANSWER_NS UINT64_C(10000000000)

static const struct d9__opt opts[] = {
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "trigger",
	.synopsis = "PID [set TEXT... | remove NAME... | fire NAME...]",
	.text = "Show the triggers of process PID and how often each has fired, or change them:\n"
		"  set TEXT     arm it, instead of the one of its name if there is one\n"
		"  remove NAME  disarm it; a dump that it began goes on\n"
		"  fire NAME    keep the seconds around now, whatever it waits for\n"
		"What stands in TEXT: man 7 dial9-trigger.\n"
		"Exit status: 0 done; 1 there is no recorder, it may not be asked or gives no\n"
		"answer, or it has no trigger of that name or no room; 2 bad usage or a mistake\n"
		"in TEXT.\n",
	.opts = opts,
};

/*
 * Ask about a trigger.  The answer is copied to |*out|, because the process still owns the
 * original.  0 or an exit status, after one line.
 */
static int ask(struct d9__control *control, uint32_t what, uint32_t number, const char *text,
	       struct d9__ring_trigger *out)
{
	struct d9__ring_trigger *shared = control->trigger;
	uint32_t before = atomic_load(&shared->requested);
	/*
	 * Wait until an earlier request is answered, because its requester may not have waited for
	 * it.
	 */
	int status = d9__control_await(control, &shared->done, before, ANSWER_NS);

	if (status)
		return status;
	shared->what = what;
	shared->number = number;
	snprintf(shared->text, sizeof(shared->text), "%s", text);
	/* release: the process that reads the new number also reads the words before */
	atomic_store_explicit(&shared->requested, before + 1, memory_order_release);
	d9__control_wake(control);
	status = d9__control_await(control, &shared->done, before + 1, ANSWER_NS);
	*out = *shared;
	out->answer[sizeof(out->answer) - 1] = '\0';
	return status;
}

/* ---- show ---- */

static void print_trigger(struct d9__text_out *out, const struct d9__ring_trigger *trigger)
{
	if (trigger->fired)
		d9__text_printf(out, "%7" PRIu64 "  ", trigger->fired);
	else
		d9__text_string(out, "      -  ");
	d9__text_escaped(out, trigger->answer, strlen(trigger->answer));
	d9__text_char(out, '\n');
}

/*
 * Print all triggers.  Each answer names the next number to ask for; limit the questions, because a
 * broken process may answer nonsense.
 */
static int show(struct d9__control *control)
{
	struct d9__ring_trigger answer = { .shown = 0 };
	struct d9__text_out out;
	unsigned n = 0;
	int status;

	d9__text_init(&out, STDOUT_FILENO);
	for (uint32_t number = 0; number < D9__TRIGGERS_MAX; number = answer.shown + 1) {
		status = ask(control, D9__TRIGGER_SHOW, number, "", &answer);
		if (status || answer.err || answer.shown < number)
			break;
		if (!n++)
			d9__text_string(&out, "  FIRED  TRIGGER\n");
		print_trigger(&out, &answer);
	}
	if (!status && !n)
		d9__text_printf(&out, "process %d has no triggers\n", (int)control->pid);
	return d9__text_finish(&out, "trigger") || status ? D9__EXIT_FINDING : 0;
}

/* ---- change ---- */

static const struct verb {
	const char *name;
	uint32_t what;
	const char *missing;
} verbs[] = {
	{ "set", D9__TRIGGER_SET, "which TEXT" },
	{ "remove", D9__TRIGGER_REMOVE, "which NAME" },
	{ "fire", D9__TRIGGER_FIRE, "which NAME" },
	{ NULL, 0, NULL },
};

/* Before anything is asked for: the recorder, which may be of another version, has the last word.  0 or an exit status. */
static int look_through(char **texts)
{
	struct d9__trigger trigger;
	struct d9__trigger_fault fault;

	for (; *texts; texts++)
		if (!d9__trigger_parse_names(*texts, strlen(*texts), &trigger, &fault))
			return d9__cmd_fail("trigger", "'%s', column %u: %s", *texts, fault.column, fault.text);
	return 0;
}

static int explain(const struct d9__control *control, const char *text, const struct d9__ring_trigger *answer)
{
	int pid = (int)control->pid;

	switch (answer->err) {
	case -EINVAL:
		return d9__cmd_fail("trigger", "process %d: '%s', %s", pid, text, answer->answer);
	case -ENOENT:
		d9__cmd_fail("trigger", "process %d has no trigger that is called '%s'; see: dial9 trigger %d", pid, text, pid);
		break;
	case -ENOSPC:
		d9__cmd_fail("trigger", "process %d has %u triggers, the most there can be; see: dial9 trigger %d", pid,
			     D9__TRIGGERS_MAX, pid);
		break;
	case -ESHUTDOWN:
		d9__cmd_fail("trigger", "process %d: its recorder is ending", pid);
		break;
	default:
		d9__cmd_fail("trigger", "process %d: %s", pid, d9_strerror(answer->err));
	}
	return D9__EXIT_FINDING;
}

/*
 * Request |what| with each of |sent|, whose command line form is in |texts|.  0 or an exit status.
 */
static int change(struct d9__control *control, uint32_t what, char **texts, char **sent)
{
	struct d9__ring_trigger answer;
	int status = 0;

	for (; !status && *sent; texts++, sent++) {
		status = ask(control, what, 0, *sent, &answer);
		if (!status && answer.err)
			status = explain(control, *texts, &answer);
	}
	return status;
}

/* Look up all names first, so that a wrong one arms no trigger. */
static int set(struct d9__control *control, char **texts)
{
	char **resolved;
	size_t n = 0;
	int status;

	while (texts[n])
		n++;
	resolved = calloc(n + 1, sizeof(*resolved));
	if (!resolved)
		return d9__cmd_fail("trigger", "out of memory");
	for (n = 0; texts[n] && (resolved[n] = d9__trigger_names_resolve_in(texts[n], control->pid)); n++)
		;
	status = texts[n] ? D9__EXIT_USAGE : change(control, D9__TRIGGER_SET, texts, resolved);
	while (n)
		free(resolved[--n]);
	free(resolved);
	return status;
}

static int do_verb(struct d9__control *control, const struct verb *verb, char **texts)
{
	return verb->what == D9__TRIGGER_SET ? set(control, texts) : change(control, verb->what, texts, texts);
}

static int run(const char *pid, const struct verb *verb, char **texts)
{
	struct d9__control control;
	int status = d9__control_open(&control, "trigger", pid);

	if (status)
		return status;
	status = d9__control_take_turn(&control, &control.trigger->owner, ANSWER_NS);
	if (!status) {
		status = verb ? do_verb(&control, verb, texts) : show(&control);
		d9__control_end_turn(&control.trigger->owner);
	}
	d9__control_close(&control);
	return status;
}

int d9__cmd_trigger(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	const struct verb *verb = verbs;
	char **operands;
	int key = d9__args_next(&args), status;

	if (key < 0)
		return d9__args_exit(key);
	operands = argv + args.first;
	if (!operands[0])
		return d9__cmd_fail("trigger", "which PID? see dial9 trigger --help");
	if (!operands[1])
		return run(operands[0], NULL, NULL);
	while (verb->name && strcmp(verb->name, operands[1]))
		verb++;
	if (!verb->name)
		return d9__cmd_fail("trigger", "'%s' is none of set, remove and fire", operands[1]);
	if (!operands[2])
		return d9__cmd_fail("trigger", "%s %s? see dial9 trigger --help", verb->name, verb->missing);
	status = verb->what == D9__TRIGGER_SET ? look_through(operands + 2) : 0;
	return status ? status : run(operands[0], verb, operands + 2);
}
