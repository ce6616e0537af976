/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of all kinds that compilers make of C, to be built with each compiler and level of optimisation:
 * with and without a frame pointer, of variable size, realigned, with leaf functions in the red zone, tail
 * calls, callbacks from libc, calls through a PLT, and the vDSO.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define N 64

#define NOINLINE __attribute__((noinline))

static volatile unsigned sink;

/* A leaf: its locals are in the red zone. */
static NOINLINE unsigned leaf(unsigned x)
{
	volatile unsigned local[8] = { x, x + 1, x + 2 };

	for (int i = 3; i < 8; i++)
		local[i] = local[i - 1] * 31 + local[i - 3];
	return local[7];
}

/* Uses most registers, so that many are saved. */
static NOINLINE unsigned wide(unsigned a, unsigned b, unsigned c, unsigned d)
{
	unsigned e = leaf(a), f = leaf(b), g = leaf(c), h = leaf(d);

	return leaf(e ^ f) + leaf(g ^ h) + a * e + b * f + c * g + d * h;
}

static NOINLINE unsigned variable(unsigned n)
{
	unsigned *p = alloca((n % 32 + 1) * sizeof(*p));

	memset(p, (int)n, (n % 32 + 1) * sizeof(*p));
	return wide(p[0], n, n + 1, p[n % 32]);
}

static NOINLINE unsigned realigned(unsigned n)
{
	_Alignas(64) volatile unsigned block[32];

	for (unsigned i = 0; i < 32; i++)
		block[i] = n + i;
	return variable(block[n % 32]) + block[3];
}

/* Realigned and of variable size: the CFA is a word in the frame. */
static NOINLINE unsigned realigned_variable(unsigned n)
{
	_Alignas(64) volatile unsigned block[16];
	unsigned *p = alloca((n % 16 + 1) * sizeof(*p));

	for (unsigned i = 0; i < 16; i++)
		block[i] = n * i;
	memset(p, 1, (n % 16 + 1) * sizeof(*p));
	return realigned(block[n % 16] + p[0]);
}

static NOINLINE unsigned tail(unsigned n)
{
	return n & 1 ? wide(n, 1, 2, 3) : leaf(n);
}

static NOINLINE unsigned many_arguments(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
					unsigned f, unsigned g, unsigned h)
{
	return wide(a + e, b + f, c + g, d + h) + realigned_variable(h);
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	sink += tail(x);
	return (x > y) - (x < y);
}

static NOINLINE unsigned sorted(unsigned seed)
{
	unsigned values[N];

	for (unsigned i = 0; i < N; i++)
		values[i] = seed = seed * 1103515245 + 12345;
	qsort(values, N, sizeof(values[0]), compare);
	return values[seed % N];
}

static NOINLINE unsigned deep(unsigned depth, unsigned seed)
{
	if (depth == 0)
		return many_arguments(seed, 1, 2, 3, 4, 5, 6, 7);
	return deep(depth - 1, seed + depth) + leaf(depth);
}

static NOINLINE unsigned in_libc(unsigned seed)
{
	struct timespec ts;
	char text[64];
	void *block;

	for (int i = 0; i < 8; i++) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		snprintf(text, sizeof(text), "%u %.3f %ld", seed, (double)seed / 3, ts.tv_nsec);
		seed += (unsigned)strlen(text) + (unsigned)getppid() + (unsigned)atoi(text);
		block = malloc(seed % 2000);
		free(block);
	}
	return seed;
}

/* A handler of the program, on whichever stack. */
static void on_signal(int signal_number)
{
	sink += sorted((unsigned)signal_number) + deep(4, 1);
}

static NOINLINE unsigned in_handlers(unsigned seed)
{
	struct sigaction usual = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction apart = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaction(SIGUSR1, &usual, NULL);
	sigaction(SIGUSR2, &apart, NULL);
	raise(SIGUSR1);
	raise(SIGUSR2);
	return seed + sink;
}

unsigned work(unsigned seed)
{
	return sorted(seed) + deep(seed % 24, seed) + in_libc(seed) + in_handlers(seed) + tail(seed);
}
