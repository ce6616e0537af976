/* SPDX-License-Identifier: Apache-2.0 */
/* The client is loaded when it is asked for: no other command has to load an HTTP library at its start. */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/debuginfod.h"

/* Of <elfutils/debuginfod.h>. */
struct client {
	void *library, *handle;
	void *(*begin)(void);
	int (*find)(void *handle, const unsigned char *build_id, int len, char **path);
	void (*end)(void *handle);
};

/* ISO C knows no cast of dlsym()'s result to a function. */
static bool bind(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found != NULL;
}

static bool open_client(struct client *client)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls)
		return false;
	client->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (client->library && bind(client->library, "debuginfod_begin", (void *)&client->begin) &&
	    bind(client->library, "debuginfod_find_debuginfo", (void *)&client->find) &&
	    bind(client->library, "debuginfod_end", (void *)&client->end))
		client->handle = client->begin();
	return client->handle != NULL;
}

struct d9__elf_file *d9__debuginfod_find(const char *build_id)
{
	static struct client client;
	static bool tried;
	struct d9__elf_file *file = NULL;
	char *path = NULL;
	int fd;

	if (!tried)
		open_client(&client);
	tried = true;
	/* 0: |build_id| is text. */
	fd = client.handle ? client.find(client.handle, (const unsigned char *)build_id, 0, &path) : -1;
	if (fd < 0)
		return NULL;
	if (d9__elf_file_open(path, &file) || strcmp(d9__elf_file_build_id(file), build_id) != 0) {
		d9__elf_file_close(file);
		file = NULL;
	}
	close(fd);
	free(path);
	return file;
}
