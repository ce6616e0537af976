/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More clients than descriptors: accept() fails with EMFILE, the connections stay, and the listener
 * that waits for the next one finds these at once.  The innocent twin rests after an error.
 *
 *	scenario_glib_accept_storm listener|service [innocent]
 */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <dial9/glib.h>

#define CLIENTS	    30
#define LIMIT	    300 /* descriptors of this program ... */
#define DESCRIPTORS 10	/* ... and those that are left for clients */
#define PAUSE_MS    100

static GPtrArray *connections;
static unsigned errors;
static gboolean innocent;

static void on_accepted(GObject *listener, GAsyncResult *result, gpointer arg);

static gboolean accept_next(gpointer listener)
{
	g_socket_listener_accept_async(listener, NULL, on_accepted, NULL);
	return G_SOURCE_REMOVE;
}

static void on_accepted(GObject *listener, GAsyncResult *result, gpointer arg)
{
	GSocketConnection *connection =
		g_socket_listener_accept_finish(G_SOCKET_LISTENER(listener), result, NULL, NULL);

	(void)arg;
	if (connection)
		g_ptr_array_add(connections, connection);
	else
		errors++;
	if (!connection && innocent)
		g_timeout_add(PAUSE_MS, accept_next, listener);
	else
		accept_next(listener);
}

/* A service accepts for itself, and warns of each connection that it could not. */
static gboolean on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source,
			    gpointer arg)
{
	(void)source, (void)arg;
	g_ptr_array_add(connections, g_object_ref(connection));
	/* It will be asked for no more than it has descriptors. */
	if (innocent && connections->len == DESCRIPTORS / 2)
		g_socket_service_stop(service);
	return TRUE;
}

static void count_warning(const gchar *domain, GLogLevelFlags level, const gchar *message,
			  gpointer arg)
{
	(void)domain, (void)level, (void)message, (void)arg;
	errors++;
}

/* Connections that nobody has taken yet. */
static void connect_clients(GSocketAddress *address)
{
	gssize size = g_socket_address_get_native_size(address);
	g_autofree struct sockaddr *native = g_malloc((gsize)size);

	g_socket_address_to_native(address, native, (gsize)size, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, native, (socklen_t)size) < 0)
			perror("client");
	}
}

/* All others are in use already. */
static void use_up_descriptors(void)
{
	struct rlimit limit;
	int fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = LIMIT;
	setrlimit(RLIMIT_NOFILE, &limit);
	do
		fd = dup(0);
	while (fd >= 0 && fd < LIMIT - DESCRIPTORS - 1);
}

static gboolean stop(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static GSocketListener *listen_as(gboolean service)
{
	GSocketListener *listener;

	if (!service)
		return g_socket_listener_new();
	listener = G_SOCKET_LISTENER(g_socket_service_new());
	g_signal_connect(listener, "incoming", G_CALLBACK(on_incoming), NULL);
	g_log_set_handler("GLib-GIO", G_LOG_LEVEL_WARNING, count_warning, NULL);
	return listener;
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	gboolean service = argc > 1 && !strcmp(argv[1], "service");
	GSocketListener *listener = listen_as(service);
	g_autofree gchar *name = g_strdup_printf("dial9-accept-storm-%d", (int)getpid());
	GSocketAddress *address = g_unix_socket_address_new_with_type(name, -1, G_UNIX_SOCKET_ADDRESS_ABSTRACT);

	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	g_socket_listener_set_backlog(listener, CLIENTS);
	connections = g_ptr_array_new_with_free_func(g_object_unref);
	d9_g_main_context_attach(NULL);
	if (!g_socket_listener_add_address(listener, address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT,
					   NULL, NULL, NULL)) {
		fputs("cannot listen\n", stderr);
		return 1;
	}
	connect_clients(address);
	use_up_descriptors();
	if (!service)
		accept_next(listener);
	g_timeout_add(1000, stop, loop);
	g_main_loop_run(loop);
	printf("%u accepted, %u errors\n", connections->len, errors);
	g_ptr_array_unref(connections);
	g_object_unref(address);
	g_object_unref(listener);
	g_main_loop_unref(loop);
	return 0;
}
