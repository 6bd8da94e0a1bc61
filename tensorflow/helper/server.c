// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/helper/server.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { INVALID_ARGUMENT = 3 };

/* Declarations of TensorFlow's C API (c_api.h, c_api_experimental.h). */
typedef struct TF_Status TF_Status;
typedef struct TF_Server TF_Server;

typedef struct {
  const char *(*version) (void);
  TF_Status *(*new_status) (void);
  int (*get_code) (const TF_Status *);
  const char *(*message) (const TF_Status *);
  TF_Server *(*new_server) (const void *definition, size_t size, TF_Status *);
  void (*start) (TF_Server *, TF_Status *);
} Api;

/* Returns NULL, or the name of a function that the library lacks. */
static const char *
find_functions (void *library, Api *api)
{
  const struct {
    const char *name;
    void *at;
  } functions[] = {
      {"TF_Version", &api->version},      {"TF_NewStatus", &api->new_status},
      {"TF_GetCode", &api->get_code},     {"TF_Message", &api->message},
      {"TF_NewServer", &api->new_server}, {"TF_ServerStart", &api->start},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym (library, functions[i].name);
    if (found == NULL)
      return functions[i].name;
    memcpy (functions[i].at, &found, sizeof found);
  }
  return NULL;
}

/* --- the ServerDef; each part is shorter than 128 bytes, so that its length is one byte --- */

typedef struct {
  char bytes[128];
  size_t size;
} Part;

static void
put (Part *part, int field, const void *bytes, size_t size)
{
  if (size > 127 || part->size + 2 + size > sizeof part->bytes)
    return;
  part->bytes[part->size++] = (char)(field << 3 | 2);
  part->bytes[part->size++] = (char)size;
  memcpy (part->bytes + part->size, bytes, size);
  part->size += size;
}

static void
put_text (Part *part, int field, const char *text)
{
  put (part, field, text, strlen (text));
}

static Part
define_server (uint16_t port)
{
  char address[32];
  Part task = {"\x08", 2}; /* tasks {key: 0 … */
  Part job = {0}, cluster = {0}, server = {0};
  snprintf (address, sizeof address, "localhost:%u", port);
  put_text (&task, 2, address); /* … value: address} */
  put_text (&job, 1, "localhost");
  put (&job, 2, task.bytes, task.size);
  put (&cluster, 1, job.bytes, job.size);
  put (&server, 1, cluster.bytes, cluster.size);
  put_text (&server, 2, "localhost"); /* job_name; task_index is 0 */
  put_text (&server, 5, "grpc");      /* protocol */
  return server;
}

/* RTLD_LOCAL hides its symbols from the rest of this process. */
static bool
load (const char *library, Api *api, char *text, size_t n_text)
{
  void *handle = dlopen (library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf (text, n_text, "it can't be loaded: %s", dlerror ());
    return false;
  }
  const char *lacks = find_functions (handle, api);
  if (lacks == NULL)
    return true;
  snprintf (text, n_text,
            "it has no symbol %s, so it isn't TensorFlow, or was built without the server", lacks);
  return false;
}

bool
muster_server_in_process (const char *library, uint16_t port, void (*loaded) (void), char *version,
                          size_t n_text, int *code)
{
  Api api;
  *code = INVALID_ARGUMENT;
  if (!load (library, &api, version, n_text))
    return false;
  loaded ();
  Part definition = define_server (port);
  TF_Status *status = api.new_status ();
  TF_Server *server = api.new_server (definition.bytes, definition.size, status);
  if (api.get_code (status) == 0)
    api.start (server, status);
  *code = api.get_code (status);
  snprintf (version, n_text, "%s", *code == 0 ? api.version () : api.message (status));
  return *code == 0;
}
