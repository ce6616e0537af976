/* SPDX-License-Identifier: Apache-2.0 */
/* Check of CPU time that no loop used: by other threads of the process, or where no sample was
 * taken. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze/hot_threads.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* Told if so large a part of the process's CPU time is elsewhere, in percent; less than this is
 * none. */
#define ELSEWHERE_PERCENT 50
#define ELSEWHERE_NS	  (100 * D9__MS_NS)

#define THREADS_TOLD 4

/* "compress-1 49 %, compress-2 48 %": the threads without a loop that samples found most, of
 * |all_ns|; "": none. */
static void describe_threads(const struct d9__samples *samples, uint64_t all_ns, char *buf,
			     size_t size)
{
	struct d9__hot_thread **threads = d9__hot_threads_sorted(&samples->threads);
	size_t used = 0, told = 0;

	buf[0] = '\0';
	for (size_t i = 0; threads && i < samples->threads.n && told < THREADS_TOLD && used < size;
	     i++) {
		uint64_t ns = threads[i]->counts.on * samples->period_ns;

		if (threads[i]->worker || 100 * ns < all_ns)
			continue;
		used += (size_t)snprintf(
			buf + used, size - used, "%s%s %.0f %%", told++ ? ", " : "",
			threads[i]->name[0] ? threads[i]->name : "a thread without a name",
			100 * (double)ns / (double)all_ns);
	}
	free(threads);
}

static void elsewhere(struct d9__findings *findings, const struct d9__cpu_shares *cpu)
{
	const struct d9__samples *samples = &findings->analysis->samples;
	double share = (double)cpu->elsewhere_ns / (double)cpu->all_ns;
	struct d9__finding *finding;
	char threads[160];

	describe_threads(samples, cpu->all_ns, threads, sizeof(threads));
	finding = d9__finding_add(
		findings, D9__INFO, cpu->elsewhere_ns,
		"Look at these threads for the CPU time of the process (dial9 report --section "
		"samples), and at what its loops' threads do before and behind their loops: these "
		"have little to do with it.",
		"%.0f %% of the process's CPU time, %s, is outside of its loops: in other threads, "
		"or in its loops' own before they began or after they ended%s%s.",
		100 * share, d9__units_ns(cpu->elsewhere_ns).text, threads[0] ? ": " : "", threads);
	d9__finding_set_brief(findings, finding, "%.0f %% of the CPU time is outside of loops",
			      100 * share);
	d9__finding_add_evidence(findings, finding, NULL,
				 "of %s: loops' threads %s, the recorder %s",
				 d9__units_ns(cpu->all_ns).text, d9__units_ns(cpu->loops_ns).text,
				 d9__units_ns(cpu->recorder_ns).text);
}

/* Samples stand for |share| of the process's CPU time. */
static void uncovered(struct d9__findings *findings, double share)
{
	uint64_t used_ns = findings->analysis->usage.program_ns;
	struct d9__finding *finding;
	char threads[160];

	describe_threads(&findings->analysis->samples, used_ns, threads, sizeof(threads));
	finding = d9__finding_add(
		findings, D9__INFO, (uint64_t)((1 - share) * (double)used_ns),
		"Take shares of samples as those of what was sampled: threads that end soon after "
		"they begin are missed, and "
		"what ran before the recorder did.",
		"Stack samples stand for %.0f %% of the %s of CPU time that the process used%s%s.",
		100 * share, d9__units_ns(used_ns).text, threads[0] ? "; beside loops in " : "",
		threads);
	d9__finding_set_brief(findings, finding, "samples tell of %.0f %% of the CPU time",
			      100 * share);
}

void d9__check_elsewhere(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__cpu_shares cpu = d9__analysis_cpu(a);
	double share = d9__analysis_sampled_share(a);

	if (a->timeline.n && cpu.elsewhere_ns >= ELSEWHERE_NS &&
	    100 * cpu.elsewhere_ns >= ELSEWHERE_PERCENT * cpu.all_ns)
		elsewhere(findings, &cpu);
	if (a->samples.on && share >= 0 && share < D9__SAMPLED_ENOUGH)
		uncovered(findings, share);
}
