/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parts.  The flush thread takes anchors, keeps the last of them, derives the slope from one
 * about a second back and publishes a conversion.  The slots' slow half copies it.
 *
 * While ticks are not trusted, |valid| is 0: every stamp of every slot comes here.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/time.h"
#include "ring/clock.h"
#include "ring/silence.h"
#include "ring/slot.h"

#define VALID_NS       (250 * D9__MS_NS)
#define CALIBRATE_NS   (100 * D9__MS_NS)
#define SLOPE_NS       (900 * D9__MS_NS)
#define PROOF_PPM      10
#define STEP_PPM       1000
#define STEP_SLACK_NS  1000
#define WIDTH_MAX_NS   20000 /* a wider anchor was preempted: not used */
#define STEPS_PER_HOUR 3
#define ANCHORS        16
#define KEEP_NS        (75 * D9__MS_NS) /* between kept anchors */

struct d9__clock_hot d9__clock_hot;

/* The conversion that slots copy.  Flush thread writes, |seq| odd meanwhile. */
static struct {
	_Atomic(uint32_t) seq;
	_Atomic(uint32_t) mult;
	_Atomic(uint64_t) base_ticks, base_ns;
	_Atomic(uint32_t) kind;
} published = { .seq = 2 };

struct conversion {
	uint32_t seq, mult, kind;
	uint64_t base_ticks, base_ns;
};

/* Flush thread. */
static struct {
	struct d9__anchor anchors[ANCHORS]; /* newest at (count - 1) % ANCHORS */
	unsigned count;
	bool wanted;      /* ticks may be used at all */
	bool proof;       /* two slopes have to agree before they are */
	double proof_slope; /* the first of them, 0 = none yet */
	uint64_t proof_ns;  /* length of a slope that proves */
	uint64_t step_ns[STEPS_PER_HOUR]; /* when the newest steps were seen */
} flush;

static _Atomic(uint64_t) steps;
static _Atomic(uintptr_t) reason; /* const char * */
static _Atomic(uint64_t) bracket_ns;
static _Atomic(uint64_t) slope_bits; /* a double */

static uint64_t (*fake_ticks)(void);
static uint64_t (*fake_mono)(void);

/* ---- reading ---- */

static bool thread_may_read_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	int mode = PR_TSC_ENABLE;

	return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
#else
	return true;
#endif
}

/* Some thread may not read ticks: the C library's clock_gettime(), which does, would end it. */
static _Atomic(bool) forbidden;

static uint64_t system_clock_ns(clockid_t id)
{
	struct timespec ts = { 0, 0 };
	int saved = errno;

	syscall(SYS_clock_gettime, id, &ts);
	errno = saved;
	return d9__timespec_ns(&ts);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	if (__builtin_expect(atomic_load_explicit(&forbidden, memory_order_relaxed), 0))
		return d9__slot_is_barred(d9__self.slot) ? 0 : system_clock_ns(id);
	clock_gettime(id, &ts);
	return d9__timespec_ns(&ts);
}

uint64_t d9__clock_mono_ns(void)
{
	return fake_mono ? fake_mono() : clock_ns(CLOCK_MONOTONIC);
}

uint64_t d9__clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t d9__clock_boot_ns(void)
{
	return fake_mono ? fake_mono() : clock_ns(CLOCK_BOOTTIME);
}

static uint64_t read_ticks(void)
{
	return fake_ticks ? fake_ticks() : d9__clock_ticks();
}

/* Ticks as ns, roughly: to compare brackets. */
static uint64_t width_ns(uint64_t ticks)
{
	uint64_t bits = atomic_load_explicit(&slope_bits, memory_order_relaxed);
	double slope;

	memcpy(&slope, &bits, sizeof(slope));
	return (uint64_t)((double)ticks * (slope > 0 ? slope : 1.0));
}

/* Where ticks may not be read, the bracket is made of the clock itself. */
static void anchor(struct d9__anchor *out, unsigned brackets, bool ticks)
{
	uint64_t best = UINT64_MAX;

	*out = (struct d9__anchor){ .width_ns = best };
	for (unsigned i = 0; i < brackets; i++) {
		uint64_t before = ticks ? read_ticks() : d9__clock_mono_ns();
		uint64_t mono = d9__clock_mono_ns();
		uint64_t real = d9__clock_real_ns();
		uint64_t after = ticks ? read_ticks() : d9__clock_mono_ns();
		uint64_t width = after - before;

		if (width >= best)
			continue;
		best = width;
		out->ticks = ticks ? before + width / 2 : 0;
		out->mono_ns = mono;
		out->real_ns = real;
		out->width_ns = ticks ? width_ns(width) : width;
	}
}

void d9__clock_anchor(struct d9__anchor *out, unsigned brackets)
{
	anchor(out, brackets, flush.wanted);
}

void d9__clock_fake(uint64_t (*ticks)(void), uint64_t (*mono)(void))
{
	fake_ticks = ticks;
	fake_mono = mono;
}

/* ---- usable? ---- */

/* Valgrind answers this request; elsewhere it rotates a register by 128 bits: nothing. */
bool d9__clock_under_valgrind(void)
{
#if defined(__x86_64__)
	uint64_t args[6] = { 0x1001, 0, 0, 0, 0, 0 }, answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi;"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(&args[0])
			 : "cc", "memory");
	return answer != 0;
#else
	return false;
#endif
}

static bool ticks_are_invariant(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#elif defined(__aarch64__)
	return true; /* the architecture says so */
#else
	return false;
#endif
}

/* Does the kernel itself keep time with the bare counter? */
static bool kernel_trusts_ticks(void)
{
	char name[32] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	return n > 0 && (strcmp(name, "tsc\n") == 0 || strcmp(name, "arch_sys_counter\n") == 0);
}

/* A hypervisor that traps the instruction makes it useless.  Best of three, against preemption. */
static bool ticks_are_cheap(void)
{
	for (int try = 0; try < 3; try++) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC);

		for (int i = 0; i < 32; i++)
			read_ticks();
		if (clock_ns(CLOCK_MONOTONIC) - begin < 32 * 50)
			return true;
	}
	return false;
}

static const char *why_not_ticks(enum d9__clock_want want)
{
	if (want == D9__CLOCK_WANT_MONOTONIC)
		return "asked for clock_gettime";
	if (fake_ticks)
		return NULL;
	if (!ticks_are_invariant())
		return "no invariant tick counter";
	if (!thread_may_read_ticks())
		return "reading ticks is forbidden (PR_SET_TSC)";
	if (want == D9__CLOCK_WANT_TICKS)
		return NULL;
	if (d9__clock_under_valgrind())
		return "running under valgrind";
	if (!ticks_are_cheap())
		return "reading ticks is slow here";
	return NULL;
}

/* ---- the flush thread ---- */

static void set_reason(const char *text)
{
	atomic_store_explicit(&reason, (uintptr_t)text, memory_order_relaxed);
}

/*
 * The release stores keep the odd |seq| before them, the last one keeps them before the even one;
 * pairs with the acquire loads in load_conversion().
 */
static void publish(enum d9__clock_kind kind, const struct d9__anchor *base, uint32_t mult)
{
	uint32_t seq = atomic_load_explicit(&published.seq, memory_order_relaxed);

	atomic_store_explicit(&published.seq, seq + 1, memory_order_relaxed);
	atomic_store_explicit(&published.kind, kind, memory_order_release);
	atomic_store_explicit(&published.mult, mult, memory_order_release);
	atomic_store_explicit(&published.base_ticks, base->ticks, memory_order_release);
	atomic_store_explicit(&published.base_ns, base->mono_ns, memory_order_release);
	atomic_store_explicit(&published.seq, seq + 2, memory_order_release);
}

static struct conversion load_conversion(void)
{
	struct conversion conv;
	uint32_t seq;

	do {
		seq = atomic_load_explicit(&published.seq, memory_order_acquire);
		conv.kind = atomic_load_explicit(&published.kind, memory_order_acquire);
		conv.mult = atomic_load_explicit(&published.mult, memory_order_acquire);
		conv.base_ticks = atomic_load_explicit(&published.base_ticks, memory_order_acquire);
		conv.base_ns = atomic_load_explicit(&published.base_ns, memory_order_acquire);
		conv.seq = atomic_load_explicit(&published.seq, memory_order_relaxed);
	} while (conv.seq != seq || (seq & 1));
	return conv;
}

/* The newest anchor at least |age_ns| before |now|, or NULL. */
static const struct d9__anchor *anchor_before(const struct d9__anchor *now, uint64_t age_ns)
{
	for (unsigned i = flush.count; i > 0 && i + ANCHORS > flush.count; i--) {
		const struct d9__anchor *a = &flush.anchors[(i - 1) % ANCHORS];

		if (now->mono_ns - a->mono_ns >= age_ns)
			return a;
	}
	return NULL;
}

static const struct d9__anchor *newest_anchor(void)
{
	return &flush.anchors[(flush.count - 1) % ANCHORS];
}

static double slope_between(const struct d9__anchor *a, const struct d9__anchor *b)
{
	if (b->ticks <= a->ticks || b->mono_ns <= a->mono_ns)
		return 0;
	return (double)(b->mono_ns - a->mono_ns) / (double)(b->ticks - a->ticks);
}

/* The multiplier of |slope|, or 0 if it does not fit. */
static uint32_t mult_of(double slope)
{
	double mult = slope * (double)(UINT64_C(1) << D9__CLOCK_SHIFT) + 0.5;

	return mult >= 1 && mult < 4294967295.0 ? (uint32_t)mult : 0;
}

static void use_ticks(const struct d9__anchor *now, double slope)
{
	uint32_t mult = mult_of(slope);
	uint64_t bits;

	if (!mult) {
		flush.wanted = false;
		set_reason("the ticks are too slow");
		return;
	}
	memcpy(&bits, &slope, sizeof(bits));
	atomic_store_explicit(&slope_bits, bits, memory_order_relaxed);
	publish(fake_ticks ? D9__CLOCK_FAKE : D9__CLOCK_TICKS, now, mult);
	atomic_store_explicit(&d9__clock_hot.valid, (uint64_t)((double)VALID_NS / slope),
			      memory_order_relaxed);
	set_reason("");
}

static bool agree(double a, double b)
{
	double diff = a > b ? a - b : b - a;

	return diff <= b * PROOF_PPM / 1e6;
}

/* No conversion yet: is there enough to make one? */
static void calibrate(const struct d9__anchor *now)
{
	const struct d9__anchor *then =
		anchor_before(now, flush.proof ? flush.proof_ns : CALIBRATE_NS);
	double slope = then ? slope_between(then, now) : 0;

	if (slope <= 0)
		return;
	if (!flush.proof || (flush.proof_slope > 0 && agree(slope, flush.proof_slope))) {
		flush.proof = false;
		use_ticks(now, slope);
		return;
	}
	/* The second slope begins where the first ends. */
	flush.proof_slope = slope;
	flush.count = 0;
}

static uint64_t convert(uint64_t base_ns, uint64_t dt, uint32_t mult)
{
	return base_ns + (dt * mult >> D9__CLOCK_SHIFT);
}

/* Is |now| where the published conversion says?  Over long intervals by the exact slope. */
static bool as_predicted(const struct d9__anchor *now, const struct conversion *conv)
{
	double ns = (double)(int64_t)(now->ticks - conv->base_ticks) * (double)conv->mult /
		    (double)(UINT64_C(1) << D9__CLOCK_SHIFT);
	double interval = (double)(int64_t)(now->mono_ns - conv->base_ns);
	double off = ns > interval ? ns - interval : interval - ns;

	return interval >= 0 && off <= interval * STEP_PPM / 1e6 + STEP_SLACK_NS;
}

/* Ticks or clock jumped: leave the ticks until two slopes agree; the third time in an hour for good. */
static void step(const struct d9__anchor *now)
{
	uint64_t n = atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
	uint64_t *oldest = &flush.step_ns[0];

	for (unsigned i = 1; i < STEPS_PER_HOUR; i++)
		if (flush.step_ns[i] < *oldest)
			oldest = &flush.step_ns[i];
	*oldest = now->mono_ns;
	atomic_store_explicit(&d9__clock_hot.valid, 0, memory_order_relaxed);
	publish(D9__CLOCK_MONOTONIC, now, 0);
	set_reason("ticks or clock jumped");
	flush.count = 0;
	flush.proof = true;
	flush.proof_slope = 0;
	flush.proof_ns = 2 * CALIBRATE_NS; /* twice: older than any conversion a slot may hold */
	for (unsigned i = 0; i < STEPS_PER_HOUR; i++)
		if (n + 1 < STEPS_PER_HOUR ||
		    now->mono_ns - flush.step_ns[i] > 3600 * D9__SECOND_NS)
			return;
	flush.wanted = false;
	set_reason("ticks or clock jumped three times in an hour");
}

static void update(const struct d9__anchor *now)
{
	struct conversion conv = load_conversion();
	const struct d9__anchor *then;

	if (conv.kind == D9__CLOCK_MONOTONIC) {
		calibrate(now);
	} else if (!as_predicted(now, &conv)) {
		step(now);
	} else {
		then = anchor_before(now, SLOPE_NS);
		if (!then) /* younger than a second: from the oldest on */
			then = &flush.anchors[flush.count > ANCHORS ? flush.count % ANCHORS : 0];
		if (slope_between(then, now) > 0)
			use_ticks(now, slope_between(then, now));
	}
}

void d9__clock_tick(struct d9__anchor *out)
{
	struct d9__anchor now;

	anchor(&now, 8, flush.wanted);
	atomic_store_explicit(&bracket_ns, now.width_ns, memory_order_relaxed);
	if (out)
		*out = now;
	if (!flush.wanted || (atomic_load(&slope_bits) && now.width_ns > WIDTH_MAX_NS))
		return;
	update(&now);
	/* A busy flush thread ticks often; what is kept has to reach back a second. */
	if (flush.wanted && (!flush.count || now.mono_ns - newest_anchor()->mono_ns >= KEEP_NS))
		flush.anchors[flush.count++ % ANCHORS] = now;
}

void d9__clock_forbid(void)
{
	atomic_store_explicit(&forbidden, true, memory_order_relaxed);
}

bool d9__clock_ask_thread(void)
{
	bool may = thread_may_read_ticks();

	if (!may)
		atomic_store_explicit(&forbidden, true, memory_order_relaxed);
	return may;
}

void d9__clock_start(enum d9__clock_want want)
{
	int saved = errno;
	const char *why = why_not_ticks(want);

	memset(&flush, 0, sizeof(flush));
	flush.wanted = !why;
	flush.proof = !why && !fake_ticks && want != D9__CLOCK_WANT_TICKS && !kernel_trusts_ticks();
	flush.proof_ns = D9__SECOND_NS;
	atomic_store(&d9__clock_hot.valid, 0);
	atomic_store(&slope_bits, 0);
	atomic_store(&steps, 0);
	publish(D9__CLOCK_MONOTONIC, &(struct d9__anchor){ 0 }, 0);
	set_reason(why ? why : "calibrating");
	if (flush.wanted)
		anchor(&flush.anchors[flush.count++], 8, true);
	errno = saved;
}

void d9__clock_status(struct d9__clock_status *out)
{
	struct conversion conv = load_conversion();
	uint64_t bits = atomic_load_explicit(&slope_bits, memory_order_relaxed);
	const char *why = (const char *)atomic_load_explicit(&reason, memory_order_relaxed);

	*out = (struct d9__clock_status){
		.kind = (enum d9__clock_kind)conv.kind,
		.reason = why ? why : "not started",
		.bracket_ns = atomic_load_explicit(&bracket_ns, memory_order_relaxed),
		.steps = atomic_load_explicit(&steps, memory_order_relaxed),
		.base_ns = conv.base_ns,
	};
	memcpy(&out->ns_per_tick, &bits, sizeof(out->ns_per_tick));
}

/* ---- slots ---- */

void d9__clock_slot_init(struct d9__slot *slot)
{
	slot->no_ticks = !d9__clock_ask_thread();
	slot->clock = D9__CLOCK_MONOTONIC;
	slot->clock_seq = 0; /* never published: the first stamp looks */
}

/* A slot's stamps never decrease.  Over 1 ms is no jitter between processors but a step. */
static uint64_t ordered(struct d9__slot *slot, uint64_t ns)
{
	if (ns >= slot->last_ns) {
		if (ns - slot->last_ns >= D9__SILENCE_NS)
			d9__silence_end(slot, ns);
		return slot->last_ns = ns;
	}
	if (slot->last_ns - ns > D9__MS_NS)
		atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
	return slot->last_ns;
}

/* A signal handler in between takes its stamp from the clock and leaves the conversion alone. */
static void adopt(struct d9__slot *slot, const struct conversion *conv, uint64_t ticks, uint64_t ns)
{
	slot->clock = D9__CLOCK_UPDATING;
	slot->clock_seq = conv->seq;
	atomic_signal_fence(memory_order_seq_cst);
	slot->base_ticks = ticks;
	slot->base_ns = ns;
	slot->mult = conv->mult;
	atomic_signal_fence(memory_order_seq_cst);
	slot->clock = (uint8_t)conv->kind;
}

/* The slot's conversion does not reach: take the newest, or anchor here and keep its slope. */
static uint64_t refresh(struct d9__slot *slot, const struct conversion *conv)
{
	uint64_t valid = atomic_load_explicit(&d9__clock_hot.valid, memory_order_relaxed);
	uint64_t ticks = read_ticks(), dt = ticks - conv->base_ticks;
	struct d9__anchor here;

	if (dt < valid) {
		adopt(slot, conv, conv->base_ticks, conv->base_ns);
		return convert(conv->base_ns, dt, conv->mult);
	}
	if (dt < 2 * valid) {
		adopt(slot, conv, ticks, convert(conv->base_ns, dt, conv->mult));
		return slot->base_ns;
	}
	anchor(&here, 3, true);
	adopt(slot, conv, here.ticks, here.mono_ns);
	return here.mono_ns;
}

uint64_t d9__clock_slot_now_slow(struct d9__slot *slot)
{
	uint32_t seq = atomic_load_explicit(&published.seq, memory_order_acquire);
	struct conversion conv;

	if (slot->no_ticks)
		return ordered(slot, system_clock_ns(CLOCK_MONOTONIC));
	if (slot->clock == D9__CLOCK_UPDATING)
		return d9__clock_mono_ns();
	if (slot->clock == D9__CLOCK_MONOTONIC && slot->clock_seq == seq)
		return ordered(slot, d9__clock_mono_ns());
	if (slot->clock != D9__CLOCK_MONOTONIC) {
		uint64_t base_ns = slot->base_ns, dt = read_ticks() - slot->base_ticks;

		/* True unless a signal handler replaced the conversion meanwhile. */
		if (dt < atomic_load_explicit(&d9__clock_hot.valid, memory_order_relaxed) &&
		    slot->base_ns == base_ns)
			return ordered(slot, convert(base_ns, dt, slot->mult));
	}
	conv = load_conversion();
	if (conv.kind == D9__CLOCK_MONOTONIC) {
		slot->clock = D9__CLOCK_MONOTONIC;
		slot->clock_seq = conv.seq;
		return ordered(slot, d9__clock_mono_ns());
	}
	return ordered(slot, refresh(slot, &conv));
}
