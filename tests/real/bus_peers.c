/* SPDX-License-Identifier: Apache-2.0 */
/*
 * D-Bus without a bus: a server for one client, and a client that makes synchronous calls.  Know
 * nothing of dial9.
 *
 *	bus_peers serve FOLDER	prints its address, and when the client has gone "N calls"
 *	bus_peers call ADDRESS N
 */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static GMainLoop *loop;
static unsigned calls;

/* Does the thread |tid| sleep, or has it ended? */
static gboolean sleeps(const char *tid)
{
	char *path = g_strdup_printf("/proc/self/task/%s/stat", tid), *text = NULL;
	gboolean found = g_file_get_contents(path, &text, NULL, NULL);
	gboolean result = !found || g_str_has_prefix(strrchr(text, ')'), ") S");

	g_free(text);
	g_free(path);
	return result;
}

/* GDBus's thread still has things to do when a call or a connection is over.  Those come first. */
static void let_others_end(void)
{
	gboolean quiet;

	do {
		GDir *threads = g_dir_open("/proc/self/task", 0, NULL);
		const char *tid;

		quiet = TRUE;
		while ((tid = g_dir_read_name(threads)))
			if (atoi(tid) != getpid() && !sleeps(tid))
				quiet = FALSE;
		g_dir_close(threads);
		if (!quiet)
			g_usleep(1000);
	} while (!quiet);
}

static void on_call(GDBusConnection *connection, const char *sender, const char *path,
		    const char *interface, const char *method, GVariant *parameters,
		    GDBusMethodInvocation *invocation, gpointer arg)
{
	(void)connection, (void)sender, (void)path, (void)interface, (void)method, (void)arg;
	calls++;
	g_dbus_method_invocation_return_value(invocation, parameters);
}

static void on_closed(GDBusConnection *connection, gboolean vanished, GError *error, gpointer arg)
{
	(void)connection, (void)vanished, (void)error, (void)arg;
	g_main_loop_quit(loop);
}

static gboolean on_connection(GDBusServer *server, GDBusConnection *connection, gpointer arg)
{
	static const char xml[] =
		"<node><interface name='test.Echo'><method name='Echo'>"
		"<arg type='u' direction='in'/><arg type='u' direction='out'/>"
		"</method></interface></node>";
	static const GDBusInterfaceVTable table = { .method_call = on_call };
	GDBusNodeInfo *info = g_dbus_node_info_new_for_xml(xml, NULL);

	(void)server, (void)arg;
	g_object_ref(connection);
	g_dbus_connection_register_object(connection, "/", info->interfaces[0], &table, NULL, NULL,
					  NULL);
	g_signal_connect(connection, "closed", G_CALLBACK(on_closed), NULL);
	return TRUE;
}

static int serve(const char *folder)
{
	char *address = g_strdup_printf("unix:tmpdir=%s", folder), *guid = g_dbus_generate_guid();
	GDBusServer *server =
		g_dbus_server_new_sync(address, G_DBUS_SERVER_FLAGS_NONE, guid, NULL, NULL, NULL);

	if (!server)
		return 1;
	loop = g_main_loop_new(NULL, FALSE);
	g_signal_connect(server, "new-connection", G_CALLBACK(on_connection), NULL);
	g_dbus_server_start(server);
	printf("%s\n", g_dbus_server_get_client_address(server));
	fflush(stdout);
	g_main_loop_run(loop);
	let_others_end();
	printf("%u calls\n", calls);
	return 0;
}

static int call(const char *address, unsigned n)
{
	GDBusConnection *connection = g_dbus_connection_new_for_address_sync(
		address, G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT, NULL, NULL, NULL);
	unsigned sum = 0;

	if (!connection)
		return 1;
	for (unsigned i = 0; i < n; i++) {
		GVariant *answer = g_dbus_connection_call_sync(
			connection, NULL, "/", "test.Echo", "Echo", g_variant_new("(u)", i), NULL,
			G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);
		unsigned echo;

		if (!answer)
			return 1;
		g_variant_get(answer, "(u)", &echo);
		g_variant_unref(answer);
		sum += echo;
	}
	printf("%u\n", sum);
	if (!g_dbus_connection_close_sync(connection, NULL, NULL))
		return 1;
	let_others_end();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "call"))
		return call(argv[2], (unsigned)atoi(argv[3]));
	return 2;
}
