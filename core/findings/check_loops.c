/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what keeps loops going that have nothing to do. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Told if it went on for so many windows, as those of one callback are. */
#define SPELL_WINDOWS D9__SPELL_WINDOWS

/* A timer that wakes an idle process so often, per second, is worth a warning. */
#define IDLE_WARNING_RATE 200

/* Whether |spell| lasted for at least half of the time its worker was looked at. */
static bool is_most(const struct d9__findings *findings, const struct d9__spell *spell)
{
	const struct d9__worker *worker =
		d9__table_find(&findings->analysis->timeline.by_id, spell->worker);

	return worker && 2 * spell->windows >= worker->windows;
}

static void add_spell(struct d9__findings *findings, struct d9__finding *finding,
		      const struct d9__callback *callback, enum d9__spell_kind kind)
{
	const struct d9__spell *spell = callback->spells[kind].worst;
	uint64_t workers = callback->spells[kind].workers;
	const char *site = d9__callback_site(callback);

	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = spell->first_ns,
							 .has_worker = true,
							 .worker = spell->worker,
							 .task = spell->task,
							 .callback = callback },
				 "began; in all %s calls in %s, which took %s, %.1f %% of that time%s%s",
				 d9__units_count(spell->calls).text, d9__units_ns(spell->ns).text,
				 d9__units_ns(spell->busy_ns).text,
				 spell->ns ? 100 * (double)spell->busy_ns / (double)spell->ns : 0,
				 site ? "; registered at " : "", site ? site : "");
	if (workers > 1)
		d9__finding_add_evidence(findings, finding, NULL, "so it was on %s other worker%s",
					 d9__units_count(workers - 1).text, workers > 2 ? "s" : "");
}

/* ---- spin ---- */

/* Write the source that is ready again and again: "descriptor 7", "its timer", ... */
static void describe_source(const struct d9__spell *spell, char *buf, size_t size)
{
	if (spell->fd >= 0)
		snprintf(buf, size, "descriptor %" PRId64 "%s%s%s", spell->fd, spell->tasks > 1 ? " (as were " : "",
			 spell->tasks > 1 ? d9__units_count(spell->tasks - 1).text : "",
			 spell->tasks > 1 ? " others)" : "");
	else if (spell->reason == D9__WAKE_TIMER)
		snprintf(buf, size, "its timer");
	else if (spell->reason == D9__WAKE_FD)
		snprintf(buf, size, "its descriptor");
	else
		snprintf(buf, size, "it");
}

static const char *spin_advice(const struct d9__spell *spell)
{
	if (spell->fd >= 0 || spell->reason == D9__WAKE_FD)
		return "Read until EAGAIN, remove EV_WRITE (G_IO_OUT) when the buffer is empty, "
		       "free the event at end of "
		       "file or error: the descriptor stays ready, because nothing is read from "
		       "it, writing is "
		       "waited for while there is nothing to write, or the peer hung up and it was "
		       "not "
		       "closed. If it listens, accept(2) fails, for lack of "
		       "descriptors say: stop listening until one is free. If it does read each "
		       "time, let "
		       "it read more at once.";
	if (spell->reason == D9__WAKE_TIMER)
		return "Give the timer a period, or wait for what it looks for: it is due at once each time it is "
		       "set.";
	return "Wait for what it looks for, or stop when there is nothing left to do: it makes itself ready again "
	       "each time it runs, so that the loop never sleeps.";
}

static void spin(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__spell *spell = callback->spells[D9__SPELL_SPIN].worst;
	struct d9__finding *finding;
	char source[160];
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	describe_source(spell, source, sizeof(source));
	finding = d9__finding_add(
		findings, is_most(findings, spell) ? D9__CRITICAL : D9__WARNING, spell->ns,
		spin_advice(spell),
		"%.*s is called %s times a second and does next to nothing (%s each time): %s was ready "
		"again at once, and worker %" PRIu64 " never slept for %s.",
		name.len, name.text, d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text,
		d9__units_ns(spell->busy_ns / spell->calls).text, source, spell->worker,
		d9__units_ns(spell->ns).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "is called %s times a second for nothing",
			      d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text);
	add_spell(findings, finding, callback, D9__SPELL_SPIN);
	d9__finding_add_evidence(
		findings, finding, NULL,
		"a tenth of a second counts if one task was called 2,000 times a second of what "
		"the machine left, for less than 10 us each, with at most a twentieth as many "
		"waits over 10 us, and more time between than in callbacks");
}

static void accept_storm(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__spell *spell = callback->spells[D9__SPELL_SPIN].worst;
	struct d9__finding *finding;
	char source[160];
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	describe_source(spell, source, sizeof(source));
	finding = d9__finding_add(
		findings, is_most(findings, spell) ? D9__CRITICAL : D9__WARNING, spell->ns,
		"Look for descriptors that are not closed, raise the limit (RLIMIT_NOFILE), and in the "
		"listener's error callback disable it until a descriptor is free again (GIO: "
		"g_socket_service_stop(), or no g_socket_listener_accept_async() right after an error): "
		"a connection that cannot be accepted stays, and the listener stays ready.",
		"The listener on %s is ready %s times a second and takes no connection: accept() fails, "
		"most likely for lack of descriptors. %.*s ran each time, and worker %" PRIu64
		" never slept for %s.",
		source, d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text, name.len, name.text,
		spell->worker, d9__units_ns(spell->ns).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "accept() fails, and is tried %s times a second",
			      d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text);
	add_spell(findings, finding, callback, D9__SPELL_SPIN);
}

/* A task that made so many others on descriptors of their own, before it span, takes connections. */
#define LISTENER_MADE 3

/* libev's tasks are told when they run first, with the callback that made them for a site. */
static bool is_site_of_others(const struct d9__analysis *a, const struct d9__callback *callback)
{
	const char *mark = strstr(callback->location, " @ "), *site;
	size_t len = mark ? (size_t)(mark - callback->location) : 0;

	for (size_t i = 0; i < a->callbacks.n && len; i++) {
		const struct d9__callback *other = a->callbacks.items[i];

		site = strstr(other->location, " @ ");
		if (site && other != callback && other->spawned >= LISTENER_MADE &&
		    strlen(site + 3) == len && !strncmp(site + 3, callback->location, len))
			return true;
	}
	return false;
}

/*
 * Whether the task of |spell| takes connections: the library says so, it did before, or its function is called
 * like that.
 */
static bool is_listener(const struct d9__findings *findings, const struct d9__callback *callback,
			const struct d9__spell *spell)
{
	static const char *const names[] = { "accept", "listen", "incoming", "connection", "new_client" };
	const struct d9__traced_task *task = d9__table_find(&findings->analysis->tasks.table, spell->task);

	if (spell->listener || spell->fd < 0)
		return spell->listener;
	for (size_t i = 0; callback->function && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasestr(callback->function, names[i]))
			return true;
	return (task && task->made >= LISTENER_MADE) || is_site_of_others(findings->analysis, callback);
}

/* Fewer reads, writes and accepts than one in so many calls are few. */
#define FEW_PART 10

/*
 * Whether half of |callback|'s calls and more read, wrote or accepted something, as far as that is
 * recorded: where events are lost, half of the reads, writes and accepts that are told, if these
 * are no few beside its calls.
 */
static bool brings(const struct d9__analysis *a, const struct d9__callback *callback)
{
	struct d9__io io = d9__callback_io(callback);

	return 2 * d9__io_useful(&io) >= callback->calls ||
	       (a->losses.events && FEW_PART * d9__io_calls(&io) >= callback->calls &&
		2 * d9__io_useful(&io) >= d9__io_calls(&io));
}

/* Whether |callback| brings something, or the library's callback that calls it does. */
static bool is_useful(const struct d9__findings *findings, const struct d9__callback *callback,
		      const struct d9__spell *spell)
{
	const struct d9__traced_task *task =
		d9__table_find(&findings->analysis->tasks.table, spell->task);

	return brings(findings->analysis, callback) ||
	       (task && task->callback && brings(findings->analysis, task->callback));
}

/*
 * Whether the calls of |callback| take most of what its loop is awake: it works, if for nothing,
 * which the account tells (check_shares.c).
 */
static bool has_most(const struct d9__findings *findings, const struct d9__callback *callback,
		     const struct d9__spell *spell)
{
	const struct d9__worker *worker =
		d9__table_find(&findings->analysis->timeline.by_id, spell->worker);
	const struct d9__owners *owners = worker ? &findings->owners[worker->number] : NULL;

	if (!d9__finding_is_io_recorded(findings->analysis) || findings->analysis->losses.events)
		return false;
	for (size_t i = 0; owners && i < owners->n; i++)
		if (owners->items[i].callback == callback &&
		    owners->items[i].kind == D9__OWNER_CALLBACK)
			return 2 * owners->items[i].ns > owners->awake_ns;
	return false;
}

/* Spins of listeners, or of all others. */
static void check_spins(struct d9__findings *findings, bool listeners,
			void (*tell)(struct d9__findings *findings,
				     const struct d9__callback *callback))
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__spell *spell = callbacks->items[i]->spells[D9__SPELL_SPIN].worst;

		if (spell && spell->windows >= SPELL_WINDOWS &&
		    !is_useful(findings, callbacks->items[i], spell) &&
		    (listeners || !has_most(findings, callbacks->items[i], spell)) &&
		    is_listener(findings, callbacks->items[i], spell) == listeners)
			tell(findings, callbacks->items[i]);
	}
}

void d9__check_accept_storm(struct d9__findings *findings)
{
	check_spins(findings, true, accept_storm);
}

void d9__check_spin(struct d9__findings *findings)
{
	check_spins(findings, false, spin);
}

/* ---- wake storm ---- */

static void wake_storm(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__spell *spell = callback->spells[D9__SPELL_STORM].worst;
	struct d9__finding *finding;
	char sender[256];
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	d9__finding_waker(findings, spell->waker, spell->waker_worker, sender, sizeof(sender));
	finding = d9__finding_add(
		findings, D9__WARNING, spell->calls,
		"Wake the loop only if nothing was waiting for it yet, hand over in batches, and let the callback "
		"take all there is: each wake costs both threads a system call and a switch.",
		"%s wakes worker %" PRIu64 " %s times a second to run %.*s: being woken takes the loop "
		"longer than what it is woken for.",
		sender, spell->worker, d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text,
		name.len, name.text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "is woken %s times a second for little",
			      d9__units_count(d9__finding_rate(spell->calls, spell->ns)).text);
	add_spell(findings, finding, callback, D9__SPELL_STORM);
	d9__finding_add_evidence(findings, finding, NULL,
				 "%.1f calls for each time the loop woke; a tenth of a second counts if "
				 "other threads asked for over 200 calls and four fifths of all, under 4 "
				 "for each time, and callbacks took less than half of the time awake",
				 spell->unparks ? (double)spell->calls / (double)spell->unparks : 0);
}

void d9__check_wake_storm(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->spells[D9__SPELL_STORM].workers)
			wake_storm(findings, callbacks->items[i]);
}

/* ---- idle wakes ---- */

/* Shorter calls look whether there is something to do, as most are; longer ones do it. */
#define LOOK_NS (15 * D9__US_NS)

static void idle_wakes(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__spell *spell = callback->spells[D9__SPELL_IDLE].worst;
	uint64_t rate = d9__finding_rate(spell->calls, spell->ns);
	bool looks = d9__histogram_quantile(&callback->durations, 0.5) < LOOK_NS;
	struct d9__finding *finding;
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	finding = d9__finding_add(findings,
				  rate >= IDLE_WARNING_RATE && looks &&
						  !brings(findings->analysis, callback)
					  ? D9__WARNING
					  : D9__INFO,
				  spell->calls,
				  "Make the period longer, set the timer only while there is "
				  "something to look for, or wait for the "
				  "event instead of looking: it keeps the CPU from sleeping.",
				  "The timer %.*s wakes worker %" PRIu64
				  " %s times a second while there is nothing else "
				  "to do.",
				  name.len, name.text, spell->worker, d9__units_count(rate).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "wakes an idle loop %s times a second",
			      d9__units_count(rate).text);
	d9__finding_set_effect(findings, finding, callback,
			       "it wakes an idle loop %s times a second",
			       d9__units_count(rate).text);
	add_spell(findings, finding, callback, D9__SPELL_IDLE);
	d9__finding_add_evidence(
		findings, finding, NULL,
		"a tenth of a second counts if the loop slept for nine tenths of it and "
		"nine tenths of its calls were timers; a warning from %u a second on, if "
		"most calls take under %s and neither read nor write",
		IDLE_WARNING_RATE, d9__units_ns(LOOK_NS).text);
}

void d9__check_idle_wakes(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__spell *spell = callbacks->items[i]->spells[D9__SPELL_IDLE].worst;

		if (spell && spell->windows >= SPELL_WINDOWS && is_most(findings, spell))
			idle_wakes(findings, callbacks->items[i]);
	}
}
