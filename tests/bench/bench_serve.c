/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of `dial9 serve` waits for its answers, among 10 clients and among 200:
 *
 *	bench_serve URL PATH...         bench_serve.sh starts a server for it
 *
 * Each client has a connection that it keeps, and asks for the paths in turn.  At a given load
 *requests fall due at random moments, whether those before were answered or not, and wait from then
 *on: one that finds all clients busy waits for one, too. "Without rest" each client asks again as
 *soon as it has its answer.  Then 200 clients have to wait 20 times as long as 10, by any server
 *that 10 keep busy: what can differ is how many requests are answered in all.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"

#define FEW	 10
#define MANY	 200
#define ROUNDS	 7
#define REQUESTS 1000 /* of a round */
#define LOAD	 4    /* one in so many of those that the server can answer */
#define BUDGET	 2

struct client {
	int fd;
	bool busy;
	double due_ns; /* of the request that it has made */
	size_t left;   /* of the answer's body; SIZE_MAX: the head is not here yet */
	size_t n;      /* of |head| */
	char head[2048];
};

static struct client clients[MANY];
static size_t n_clients;
static unsigned idle[MANY], n_idle; /* the first has rested longest */
static int epoll = -1;
static struct sockaddr_in address;
static char host[64], *token;
static char **paths;
static size_t n_paths, next_path;
static double took[REQUESTS];
static uint64_t seed = 88172645463325252u;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static double now_ns(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

static void connect_all(size_t n)
{
	struct epoll_event event = { .events = EPOLLIN };
	int one = 1;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (n_clients = 0; n_clients < n; n_clients++) {
		struct client *client = &clients[n_clients];

		*client = (struct client) {
			.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
		};
		event.data.u32 = (uint32_t)n_clients;
		if (client->fd < 0 ||
		    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
		    (connect(client->fd, (struct sockaddr *)&address, sizeof(address)) &&
		     errno != EINPROGRESS) ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event))
			fail("connect");
		idle[n_clients] = (unsigned)n_clients;
	}
	n_idle = (unsigned)n;
}

static void close_all(void)
{
	for (size_t i = 0; i < n_clients; i++)
		close(clients[i].fd);
	close(epoll);
}

/* The next client asks for the next path. */
static void ask(double due_ns)
{
	struct client *client = &clients[idle[0]];
	char text[1024];
	int len = snprintf(text, sizeof(text), "GET /%s/%s HTTP/1.1\r\nHost: %s\r\n\r\n", token,
			   paths[next_path++ % n_paths], host);

	memmove(idle, idle + 1, --n_idle * sizeof(idle[0]));
	client->busy = true;
	client->due_ns = due_ns;
	client->left = SIZE_MAX;
	client->n = 0;
	/* While it still connects the kernel takes nothing. */
	while (send(client->fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		if (errno != EAGAIN && errno != ENOTCONN)
			fail("send");
}

/* The head is here: how much of the body follows. */
static void take_head(struct client *client)
{
	char *end, *length;

	client->head[client->n] = '\0';
	end = strstr(client->head, "\r\n\r\n");
	if (!end)
		return;
	length = strcasestr(client->head, "\r\ncontent-length:");
	if (strncmp(client->head, "HTTP/1.1 200 ", strlen("HTTP/1.1 200 ")) || !length ||
	    length > end) {
		fprintf(stderr, "the server answers: %.60s\n", client->head);
		exit(2);
	}
	client->left = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
	client->left -= (size_t)(client->head + client->n - (end + strlen("\r\n\r\n")));
}

/* Whether the answer is whole now. */
static bool receive(struct client *client)
{
	static char body[1 << 18];

	for (;;) {
		bool in_head = client->left == SIZE_MAX;
		ssize_t n =
			in_head ? recv(client->fd, client->head + client->n,
				       sizeof(client->head) - 1 - client->n, 0)
				: recv(client->fd, body,
				       sizeof(body) < client->left ? sizeof(body) : client->left,
				       0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			fail("recv");
		if (n < 0)
			return false;
		if (in_head) {
			client->n += (size_t)n;
			take_head(client);
		} else {
			client->left -= (size_t)n;
		}
		if (client->left == 0)
			return true;
	}
}

/* Take what has come, at most |wait_ms| from now; the number of answers so far. */
static size_t take_answers(size_t done, int wait_ms)
{
	struct epoll_event events[64];
	int n = epoll_wait(epoll, events, 64, wait_ms);

	for (int i = 0; i < n; i++) {
		struct client *client = &clients[events[i].data.u32];

		if (!client->busy || !receive(client))
			continue;
		if (done < REQUESTS)
			took[done] = now_ns() - client->due_ns;
		done++;
		client->busy = false;
		idle[n_idle++] = events[i].data.u32;
	}
	return done;
}

/* ns from one request to the next at |mean_ns| on average, as of people who know nothing of each
 * other. */
static double pause_of(double mean_ns)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return -mean_ns * log(((double)(seed >> 11) + 1) / 9007199254740992.0);
}

static double p99_of(size_t n)
{
	qsort(took, n, sizeof(took[0]), bench_by_value);
	return took[n * 99 / 100] / 1e3;
}

/* The 99th percentile in us of what |n| clients wait, at one request in |mean_ns| and |requests| of
 * them. */
static double p99_us(size_t n, double mean_ns, size_t requests)
{
	size_t asked = 0, done = 0;
	double due;

	connect_all(n);
	due = now_ns();
	while (done < requests) {
		while (asked < requests && n_idle && now_ns() >= due) {
			ask(due);
			asked++;
			due += pause_of(mean_ns);
		}
		done = take_answers(done, 0);
	}
	close_all();
	return p99_of(requests);
}

/* Requests in a second of |n| clients that never rest; |*p99|: what the slowest in a hundred took,
 * in us. */
static double rate_of(size_t n, double *p99)
{
	size_t done = 0;
	double start;

	connect_all(n);
	start = now_ns();
	while (done < REQUESTS) {
		while (n_idle)
			ask(now_ns());
		done = take_answers(done, 1000);
	}
	start = now_ns() - start;
	close_all();
	*p99 = p99_of(REQUESTS);
	return REQUESTS / (start / 1e9);
}

/* ms until the last of MANY clients that come at once has its answer. */
static double rush_ms(void)
{
	double start = now_ns();
	size_t done = 0;

	connect_all(MANY);
	while (n_idle)
		ask(start);
	while (done < MANY)
		done = take_answers(done, 1000);
	close_all();
	return (now_ns() - start) / 1e6;
}

/* "http://ADDRESS:PORT/TOKEN/" */
static void take_url(char *url)
{
	char *colon = strrchr(url, ':'), *slash = colon ? strchr(colon, '/') : NULL;

	if (strncmp(url, "http://", strlen("http://")) || !slash) {
		fputs("usage: bench_serve URL PATH...\n", stderr);
		exit(2);
	}
	token = slash + 1;
	token[strcspn(token, "/\n")] = '\0';
	snprintf(host, sizeof(host), "%.*s", (int)(slash - url) - (int)strlen("http://"),
		 url + strlen("http://"));
	address = (struct sockaddr_in) { .sin_family = AF_INET,
					 .sin_port = htons((uint16_t)atoi(colon + 1)) };
	*colon = '\0';
	if (inet_pton(AF_INET, url + strlen("http://"), &address.sin_addr) != 1)
		fail(url);
}

int main(int argc, char **argv)
{
	double few[ROUNDS], again[ROUNDS], many[ROUNDS], rare[ROUNDS], rates[2][ROUNDS],
		waits[2][ROUNDS], rush[ROUNDS], mean_ns, warm;

	if (argc < 3) {
		fputs("usage: bench_serve URL PATH...\n", stderr);
		return 2;
	}
	take_url(argv[1]);
	paths = argv + 2;
	n_paths = (size_t)argc - 2;
	rate_of(FEW, &warm);
	mean_ns = LOAD * 1e9 / rate_of(FEW, &warm);
	for (unsigned i = 0; i < ROUNDS; i++) {
		few[i] = p99_us(FEW, mean_ns, REQUESTS);
		many[i] = p99_us(MANY, mean_ns, REQUESTS);
		again[i] = p99_us(FEW, mean_ns, REQUESTS);
		rare[i] = p99_us(FEW, mean_ns * MANY / FEW, REQUESTS / 5);
		rates[0][i] = rate_of(FEW, &waits[0][i]);
		rates[1][i] = rate_of(MANY, &waits[1][i]);
		rush[i] = rush_ms();
	}
	printf("a request in %.0f us, a quarter of what the server can answer\n", mean_ns / 1e3);
	bench_same("p99 of 10 clients", few, again, ROUNDS);
	bench_ratio("serve: p99 of 200 clients, one load", "us", many, "10 clients", few, ROUNDS,
		    BUDGET);
	bench_ratio("serve: p99 of 200 clients, each asking as often", "us", many, "10 clients",
		    rare, ROUNDS, BUDGET);
	bench_ratio("serve: requests per s, 200 clients without rest", "1/s", rates[1],
		    "10 clients", rates[0], ROUNDS, 0);
	bench_ratio("serve: p99 of 200 clients without rest", "us", waits[1], "10 clients",
		    waits[0], ROUNDS, 0);
	bench_value("serve: 200 clients come at once, the last has its answer", "ms", rush, ROUNDS,
		    0);
	return 0;
}
