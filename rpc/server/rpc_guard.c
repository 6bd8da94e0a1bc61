// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/rpc_server_private.h"

#include <string.h>

#define NO_TOKEN    "this server requires a token; set --token-file"
#define WRONG_TOKEN "wrong token; set --token-file to the server's token"

/* The access check of one address of a server. */
typedef struct {
  grpc_slice authorization;
  GPtrArray *open_methods; /* (owned) (element-type char *) not changed any more once calls come */
} Guard;

static gboolean
slice_is (grpc_slice slice, const char *text)
{
  return GRPC_SLICE_LENGTH (slice) == strlen (text) &&
         memcmp (GRPC_SLICE_START_PTR (slice), text, strlen (text)) == 0;
}

static const grpc_metadata *
find (const grpc_metadata *metadata, size_t n_metadata, const char *key)
{
  for (size_t i = 0; i < n_metadata; i++)
    if (slice_is (metadata[i].key, key))
      return &metadata[i];
  return NULL;
}

/* Takes the same time for all wrong tokens of one length. */
static gboolean
is_authorized (const Guard *self, grpc_slice shown)
{
  gsize size = GRPC_SLICE_LENGTH (self->authorization);
  const guint8 *wanted = GRPC_SLICE_START_PTR (self->authorization);
  const guint8 *got = GRPC_SLICE_START_PTR (shown);
  if (GRPC_SLICE_LENGTH (shown) != size)
    return FALSE;
  volatile guint8 difference = 0;
  for (gsize i = 0; i < size; i++)
    difference |= wanted[i] ^ got[i];
  return difference == 0;
}

static gboolean
is_open (const Guard *self, const grpc_metadata *path)
{
  for (guint i = 0; path != NULL && i < self->open_methods->len; i++)
    if (slice_is (path->value, self->open_methods->pdata[i]))
      return TRUE;
  return FALSE;
}

/* Removes the token from the call: no handler sees it. */
static void
process (void *state, grpc_auth_context *context G_GNUC_UNUSED, const grpc_metadata *metadata,
         size_t n_metadata, grpc_process_auth_metadata_done_cb done, void *user_data)
{
  const Guard *self = state;
  const grpc_metadata *shown = find (metadata, n_metadata, "authorization");
  if ((shown != NULL && is_authorized (self, shown->value)) ||
      is_open (self, find (metadata, n_metadata, ":path")))
    done (user_data, shown, shown != NULL, NULL, 0, GRPC_STATUS_OK, NULL);
  else
    done (user_data, NULL, 0, NULL, 0, GRPC_STATUS_UNAUTHENTICATED,
          shown != NULL ? WRONG_TOKEN : NO_TOKEN);
}

static void
destroy (void *state)
{
  Guard *self = state;
  grpc_slice_unref (self->authorization);
  g_ptr_array_unref (self->open_methods);
  g_free (self);
}

void
muster_rpc_guard (grpc_server_credentials *secured, const grpc_slice *authorization,
                  GPtrArray *open_methods)
{
  Guard *self = g_new0 (Guard, 1);
  self->authorization = grpc_slice_ref (*authorization);
  self->open_methods = g_ptr_array_ref (open_methods);
  grpc_server_credentials_set_auth_metadata_processor (
      secured, (grpc_auth_metadata_processor){process, destroy, self});
}
