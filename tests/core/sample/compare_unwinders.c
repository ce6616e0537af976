/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples a thread that runs the work of modules, and unwinds each sample twice in the handler: by our tables
 * and by libunwind, from the same context.  Both must see the same addresses.
 *
 *	compare_unwinders time SAMPLES MODULE...   every 97 us
 *	compare_unwinders step SAMPLES MODULE...   at every instruction of the first SAMPLES
 *
 * Three places are known where they do not, and where the result mostly says that it is doubtful:
 *
 *	lazy binding   glibc's _dl_runtime_resolve() keeps its stack pointer in rbx.  Rows do not follow rbx, so
 *	               what it calls is a stack that is cut there.
 *	landing        _Unwind_Resume() and others overwrite their own frame with the registers of the one where
 *	               an exception is caught.  libunwind goes on with what it finds there, also through a
 *	               return address of 0, which ends our walk as it ends stacks that were made by hand.
 *	end of a jump  the last instruction of the same functions jumps through rcx, where no row can look.
 *
 * Any other difference is a failure.  All are printed with names.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "core/sample/own_stack.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"
#include "work.h"

#define KEPT       4096 /* kinds of differences; more are a failure */
#define SHOWN      20   /* with all their frames */
#define PERIOD_NS  97000
#define MODULES    64

struct stack {
	uint32_t n;
	uint64_t pcs[D9__UNWIND_MAX];
};

static struct d9__unwind_thread thread;
static uint64_t n_samples, n_equal, n_frames, n_marked, n_different;
static struct difference {
	struct stack ours, theirs;
	struct d9__unwound unwound;
	uint64_t n; /* that are like this one */
} kept[KEPT];
static size_t n_kept;

static void unwind_by_libunwind(ucontext_t *context, struct stack *stack)
{
	unw_cursor_t cursor;
	unw_word_t pc;

	stack->n = 0;
	if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0)
		return;
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		stack->pcs[stack->n++] = pc;
	} while (stack->n < D9__UNWIND_MAX && unw_step(&cursor) > 0);
}

static bool equal(const struct stack *a, const struct stack *b)
{
	return a->n == b->n && !memcmp(a->pcs, b->pcs, a->n * sizeof(a->pcs[0]));
}

/* What explain() looks at is the same. */
static bool alike(const struct stack *a, const struct stack *b)
{
	return a->n && b->n && !memcmp(a->pcs, b->pcs, 4 * sizeof(a->pcs[0])) &&
	       a->pcs[a->n - 1] == b->pcs[b->n - 1];
}

static void keep(const struct stack *ours, const struct stack *theirs, struct d9__unwound unwound)
{
	size_t i = 0;

	n_different++;
	while (i < n_kept &&
	       !(kept[i].unwound.stop == unwound.stop && alike(&kept[i].ours, ours)))
		i++;
	if (i == KEPT)
		return;
	if (i == n_kept)
		kept[n_kept++] = (struct difference){ *ours, *theirs, unwound, 0 };
	kept[i].n++;
}

static void on_sample(int signal_number, siginfo_t *info, void *ucontext)
{
	struct d9__registers registers;
	struct d9__unwound unwound;
	struct stack ours = { 0 }, theirs;
	int saved_errno = errno;

	(void)signal_number;
	(void)info;
	d9__registers_of(&registers, ucontext);
	unwound = d9__unwind(&thread, &registers, ours.pcs, D9__UNWIND_MAX);
	ours.n = unwound.n;
	unwind_by_libunwind(ucontext, &theirs);
	n_samples++;
	n_frames += ours.n;
	n_marked += unwound.truncated || unwound.guessed;
	if (equal(&ours, &theirs))
		n_equal++;
	else
		keep(&ours, &theirs, unwound);
	errno = saved_errno;
}

/* With the trap flag set, the processor raises SIGTRAP behind every instruction. */
#define TRAP_FLAG 0x100

static uint64_t n_wanted;

static void on_step(int signal_number, siginfo_t *info, void *ucontext)
{
	ucontext_t *context = ucontext;

	on_sample(signal_number, info, ucontext);
	if (n_samples >= n_wanted)
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void start_steps(void)
{
	/* Past the red zone, which this function's frame may use. */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 : "i"(TRAP_FLAG)
			 : "memory", "cc");
}

static void print_frame(const struct stack *stack, uint32_t i)
{
	Dl_info info = { 0 };
	uint64_t pc = i < stack->n ? stack->pcs[i] : 0;

	if (i < stack->n)
		dladdr((void *)(uintptr_t)pc, &info);
	printf(" %012lx %-24.24s", (unsigned long)pc,
	       info.dli_sname ? info.dli_sname :
	       info.dli_fname ? strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 :
								info.dli_fname :
				"-");
}

static bool is_in(uint64_t pc, const char *file, const char *function)
{
	Dl_info info = { 0 };

	return dladdr((void *)(uintptr_t)pc, &info) && info.dli_fname &&
	       strstr(info.dli_fname, file) &&
	       (!*function || (info.dli_sname && strstr(info.dli_sname, function)));
}

static bool starts_like(const struct difference *difference)
{
	return difference->ours.n <= difference->theirs.n &&
	       !memcmp(difference->ours.pcs, difference->theirs.pcs,
		       difference->ours.n * sizeof(difference->ours.pcs[0]));
}

/* Where ours ended because the return address was 0, libunwind went on. */
static bool ended_at_zero(const struct difference *difference)
{
	return starts_like(difference) && difference->theirs.n > difference->ours.n &&
	       difference->theirs.pcs[difference->ours.n] == 0;
}

/* Return the reason for the difference if it is known, or NULL. */
static const char *explain(const struct difference *difference)
{
	const struct stack *ours = &difference->ours;

	if (difference->unwound.stop == D9__STOP_REGISTER && starts_like(difference) &&
	    is_in(ours->pcs[ours->n - 1], "/ld-linux", ""))
		return "lazy binding";
	if (!difference->unwound.truncated && !difference->unwound.guessed &&
	    !ended_at_zero(difference))
		return NULL;
	for (uint32_t i = 1; i < ours->n && i < 4; i++)
		if (is_in(ours->pcs[i], "/libgcc_s", "_Unwind_"))
			return "landing";
	return is_in(ours->pcs[0], "/libgcc_s", "_Unwind_") ? "end of a jump" : NULL;
}

/* How many it explains: all that are alike, or none. */
static uint64_t print_difference(const struct difference *difference, bool whole)
{
	uint32_t n = difference->ours.n > difference->theirs.n ? difference->ours.n :
								 difference->theirs.n;
	const char *why = explain(difference);

	printf("%s, %lu times: ours on the left, ended for reason %d%s\n",
	       why ? why : "NOT EXPLAINED", (unsigned long)difference->n,
	       difference->unwound.stop, difference->unwound.guessed ? ", guessed" : "");
	for (uint32_t i = 0; i < n && (whole || !why); i++) {
		print_frame(&difference->ours, i);
		print_frame(&difference->theirs, i);
		printf("\n");
	}
	return why ? difference->n : 0;
}

static timer_t start_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec spec = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &spec, NULL)) {
		perror("timer_create");
		exit(99);
	}
	return timer;
}

struct plan {
	work_fn work[MODULES];
	int n;
	bool steps;
};

static void *run(void *arg)
{
	static uint8_t alternate[65536];
	const struct plan *plan = arg;
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) }, before;
	unsigned seed = 1, i = 0;
	timer_t timer = 0;

	sigaltstack(&stack, &before);
	own_stack(&thread);
	if (plan->steps)
		start_steps();
	else
		timer = start_timer();
	while (n_samples < n_wanted)
		seed = plan->work[i++ % (unsigned)plan->n](seed) * 7;
	if (!plan->steps)
		timer_delete(timer);
	sigaltstack(&before, NULL); /* AddressSanitizer has one of its own, and frees it */
	return NULL;
}

static work_fn load(const char *path)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	work_fn fn = handle ? (work_fn)dlsym(handle, "work") : NULL;

	if (!fn) {
		printf("%s\n", dlerror());
		exit(99);
	}
	return fn;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART };
	struct plan plan = { .steps = argc > 1 && !strcmp(argv[1], "step") };
	uint64_t n_explained = 0;
	pthread_t worker;

	for (int i = 3; i < argc && plan.n < MODULES; i++)
		plan.work[plan.n++] = load(argv[i]);
	if (!plan.n)
		return 99;
	n_wanted = strtoull(argv[2], NULL, 10);
	d9__unwind_tables_want_rows();
	d9__unwind_tables_refresh(1);
	action.sa_sigaction = plan.steps ? on_step : on_sample;
	sigaction(plan.steps ? SIGTRAP : SIGPROF, &action, NULL);
	if (pthread_create(&worker, NULL, run, &plan))
		return 99;
	pthread_join(worker, NULL);
	for (size_t i = 0; i < n_kept; i++)
		n_explained += print_difference(&kept[i], i < SHOWN);
	printf("%lu samples, %lu equal, %lu different and explained, %lu marked, %.1f frames on average, "
	       "%u foreign stacks\n",
	       (unsigned long)n_samples, (unsigned long)n_equal, (unsigned long)n_explained,
	       (unsigned long)n_marked, (double)n_frames / (double)n_samples,
	       (unsigned)thread.copies);
	d9__unwind_tables_release();
	return n_explained != n_different || n_samples < n_wanted;
}
