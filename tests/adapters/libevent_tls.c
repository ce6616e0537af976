/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS bufferevents, on a socket and as a filter: both ends greet, echo and part.
 *
 *	libevent_tls [--out=FILE]
 */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>

#include "counters.h"

#define ROUNDS 20

static struct event_base *base;
static SSL_CTX *server_context, *client_context;
static int left;

/* ---- a key, and a certificate that is signed by that key ---- */

static void make_contexts(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	server_context = SSL_CTX_new(TLS_server_method());
	client_context = SSL_CTX_new(TLS_client_method());
	if (!X509_sign(certificate, key, EVP_sha256()) ||
	    SSL_CTX_use_certificate(server_context, certificate) != 1 ||
	    SSL_CTX_use_PrivateKey(server_context, key) != 1)
		exit(99);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

/* ---- both ends ---- */

static void on_server_read(struct bufferevent *bev, void *arg)
{
	(void)arg;
	COUNT_TIMING(on_server_read, KIND_SPAN);
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void on_server_written(struct bufferevent *bev, void *arg)
{
	(void)bev, (void)arg;
	COUNT_TIMING(on_server_written, KIND_SPAN);
}

static void on_server_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev, (void)what, (void)arg;
	COUNT_TIMING(on_server_event, KIND_SPAN);
}

static void on_client_read(struct bufferevent *bev, void *arg)
{
	char byte;

	(void)arg;
	COUNT_TIMING(on_client_read, KIND_SPAN);
	while (bufferevent_read(bev, &byte, 1) == 1)
		left--;
	if (left > 0)
		bufferevent_write(bev, "x", 1);
	else
		event_base_loopbreak(base);
}

static void on_client_event(struct bufferevent *bev, short what, void *arg)
{
	(void)arg;
	COUNT_TIMING(on_client_event, KIND_SPAN);
	if (what != BEV_EVENT_CONNECTED)
		complain("event", BEV_EVENT_CONNECTED, what);
	bufferevent_write(bev, "x", 1);
}

static void echo(struct bufferevent *server, struct bufferevent *client)
{
	if (!server || !client)
		exit(99);
	bufferevent_setcb(server, on_server_read, on_server_written, on_server_event, NULL);
	bufferevent_setcb(client, on_client_read, NULL, on_client_event, NULL);
	bufferevent_enable(server, EV_READ | EV_WRITE);
	bufferevent_enable(client, EV_READ | EV_WRITE);
	left = ROUNDS;
	event_base_dispatch(base);
	bufferevent_free(client);
	event_base_loop(base, EVLOOP_NONBLOCK);
	bufferevent_free(server);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void echo_on_sockets(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		complain("socketpair", 0, errno);
	echo(bufferevent_openssl_socket_new(base, fds[0], SSL_new(server_context),
					    BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE),
	     bufferevent_openssl_socket_new(base, fds[1], SSL_new(client_context),
					    BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE));
}

static void echo_through_filters(void)
{
	struct bufferevent *pair[2];

	if (bufferevent_pair_new(base, BEV_OPT_DEFER_CALLBACKS, pair))
		complain("pair", 0, -1);
	echo(bufferevent_openssl_filter_new(base, pair[0], SSL_new(server_context),
					    BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE),
	     bufferevent_openssl_filter_new(base, pair[1], SSL_new(client_context),
					    BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE));
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? argv[1] + 6 : NULL;

	signal(SIGPIPE, SIG_IGN); /* the one end says good-bye when the other has gone */
	make_contexts();
	base = event_base_new();
	echo_on_sockets();
	echo_through_filters();
	event_base_free(base);
	SSL_CTX_free(server_context);
	SSL_CTX_free(client_context);
	return counters_write(out);
}
