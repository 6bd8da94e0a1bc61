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
muster_server_in_process (const char *library, const void *definition, size_t n,
                          void (*loaded) (void), char *version, size_t n_text, int *code)
{
  Api api;
  *code = INVALID_ARGUMENT;
  if (!load (library, &api, version, n_text))
    return false;
  loaded ();
  TF_Status *status = api.new_status ();
  TF_Server *server = api.new_server (definition, n, status);
  if (api.get_code (status) == 0)
    api.start (server, status);
  *code = api.get_code (status);
  snprintf (version, n_text, "%s", *code == 0 ? api.version () : api.message (status));
  return *code == 0;
}
