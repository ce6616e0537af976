/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server on libsoup 3, for ab; knows nothing of dial9.  Prints "listening on PORT", and
 * when SIGTERM ends it "N requests".
 */
#include <glib-unix.h>
#include <libsoup/soup.h>
#include <signal.h>
#include <stdio.h>

static unsigned requests;

static void on_request(SoupServer *server, SoupServerMessage *message, const char *path,
		       GHashTable *query, gpointer arg)
{
	(void)server;
	(void)path;
	(void)query;
	(void)arg;
	requests++;
	soup_server_message_set_response(message, "text/plain", SOUP_MEMORY_STATIC, "hello\n", 6);
	soup_server_message_set_status(message, 200, NULL);
}

static gboolean on_term(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

int main(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	SoupServer *server = soup_server_new("server-header", "test", NULL);
	GSList *uris;

	soup_server_add_handler(server, NULL, on_request, NULL, NULL);
	if (!soup_server_listen_local(server, 0, SOUP_SERVER_LISTEN_IPV4_ONLY, NULL))
		return 1;
	uris = soup_server_get_uris(server);
	printf("listening on %d\n", g_uri_get_port(uris->data));
	fflush(stdout);
	g_unix_signal_add(SIGTERM, on_term, loop);
	g_main_loop_run(loop);
	printf("%u requests\n", requests);
	return 0;
}
