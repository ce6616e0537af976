// SPDX-License-Identifier: Apache-2.0
// memory_program [pvalloc] [throw]: allocates and frees in every way there is, and knows what it did: one size, one way.
// pvalloc, throw: with these, which not every allocator can do.
// At its end it prints a line for each size, "SIZE allocated freed", of the process that is named first on it.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#define TIMES 200

// The compiler may not leave |block| out.
static inline void keep(const void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

static void tell(const char *who, size_t size, int allocated, int freed)
{
	printf("%s %zu %d %d\n", who, size, allocated, freed);
}

// Until samples are taken: of the hooks' own variable, which is there in every thread.
static void wait_for_samples()
{
	const uint64_t *self = static_cast<const uint64_t *>(dlsym(RTLD_DEFAULT, "d9__alloc_self"));
	const struct timespec pause = { 0, 1000000 };

	while (self && !self[1]) {
		free(malloc(1));
		nanosleep(&pause, nullptr);
	}
}

// ---- C ----

static void once(void *block)
{
	keep(block);
	memset(block, 1, 8);
	free(block);
}

static void c_functions(bool with_pvalloc)
{
	for (int i = 0; i < TIMES; i++) {
		void *block = nullptr;

		once(malloc(1001));
		once(calloc(17, 59));
		once(realloc(nullptr, 1007));
		once(reallocarray(nullptr, 1, 1013));
		if (posix_memalign(&block, 64, 1019))
			abort();
		once(block);
		once(aligned_alloc(64, 1088));
		once(memalign(32, 1031));
		once(valloc(1033));
		if (with_pvalloc)
			once(pvalloc(1039));
	}
	for (size_t size : { 1001, 1003, 1007, 1013, 1019, 1088, 1031, 1033 })
		tell("main", size, TIMES, TIMES);
	tell("main", 1039, with_pvalloc ? TIMES : 0, with_pvalloc ? TIMES : 0);
}

// Each step frees what the one before gave; one that cannot succeed changes nothing.
static void reallocations()
{
	volatile size_t too_much = SIZE_MAX / 2;

	for (int i = 0; i < TIMES; i++) {
		void *block = malloc(2003), *moved;

		block = realloc(block, 200003);
		keep(block);
		moved = realloc(block, too_much);
		if (moved || reallocarray(block, too_much, 16))
			abort();
		block = reallocarray(block, 1, 2011);
		keep(block);
		block = realloc(block, 0);
		free(block);
	}
	for (size_t size : { 2003, 200003, 2011 })
		tell("main", size, TIMES, TIMES);
}

// ---- C++ ----

struct alignas(128) Aligned {
	char bytes[3072];
};

static void operators(bool can_throw)
{
	volatile size_t too_much = SIZE_MAX / 4;

	for (int i = 0; i < TIMES; i++) {
		void *plain = operator new(3001);
		char *array = new char[3011];
		char *quiet = new (std::nothrow) char[3019];
		Aligned *aligned = new Aligned;
		Aligned *aligned_quiet = new (std::nothrow) Aligned[2];

		for (const void *block : { plain, (void *)array, (void *)quiet, (void *)aligned, (void *)aligned_quiet })
			keep(block);
		operator delete(plain, size_t(3001));
		delete[] array;
		operator delete[](quiet, std::nothrow);
		delete aligned;
		delete[] aligned_quiet;
		if (!can_throw)
			continue;
		try {
			keep(new char[too_much]);
			abort();
		} catch (const std::bad_alloc &) {
		}
		if (new (std::nothrow) char[too_much])
			abort();
	}
	for (size_t size : { 3001, 3011, 3019, 3072, 6144 })
		tell("main", size, TIMES, TIMES);
}

// ---- threads ----

static pthread_key_t key;
static pthread_barrier_t barrier;
static void *handed[4][TIMES];

static void at_thread_end(void *block)
{
	free(block);
	once(malloc(4003));
}

// What one thread allocates another frees, and what it keeps is freed when it ends.
static void *work(void *number)
{
	size_t own = (size_t)number, other = (own + 1) % 4;

	for (int i = 0; i < TIMES; i++)
		handed[own][i] = malloc(4001);
	pthread_setspecific(key, malloc(4007));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < TIMES; i++)
		free(handed[other][i]);
	return nullptr;
}

static void threads()
{
	pthread_t ids[4];

	pthread_key_create(&key, at_thread_end);
	pthread_barrier_init(&barrier, nullptr, 4);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&ids[i], nullptr, work, (void *)i);
	for (pthread_t id : ids)
		pthread_join(id, nullptr);
	tell("main", 4001, 4 * TIMES, 4 * TIMES);
	tell("main", 4003, 4, 4);
	tell("main", 4007, 4, 4);
}

// ---- processes ----

// A child frees what its parent allocated, which is no news in its own trace.
static void child_of(void *parents)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		free(malloc(1)); // its recorder begins with this one
		for (int i = 0; i < TIMES; i++)
			once(malloc(5003));
		free(parents);
		tell("child", 5003, TIMES, TIMES);
		tell("child", 5009, 0, 0);
		exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		abort();
	free(parents);
	tell("main", 5003, 0, 0);
	tell("main", 5009, 1, 1);
}

// ---- before main() and behind it ----

static void *from_constructor;

__attribute__((constructor)) static void early()
{
	from_constructor = malloc(6007);
	once(calloc(1, 6011));
}

static void at_end()
{
	once(malloc(6001));
}

static bool has(char **words, const char *word)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

int main(int, char **argv)
{
	free(from_constructor);
	wait_for_samples();
	c_functions(has(argv, "pvalloc"));
	reallocations();
	operators(has(argv, "throw"));
	threads();
	child_of(malloc(5009));
	for (int i = 0; i < 10; i++)
		keep(malloc(6029));
	tell("main", 6029, 10, 0);
	tell("main", 6001, 1, 1);
	fflush(stdout);
	atexit(at_end);
	return 0;
}
