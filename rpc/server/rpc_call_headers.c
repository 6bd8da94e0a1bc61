// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/rpc_server_private.h"

#include <string.h>

/* A header as text, made when it is first asked for. */
struct _MusterRpcCallHeader {
  MusterRpcCallHeader *next; /* (owned) (nullable) */
  char *key, *value;         /* (owned) */
};

void
muster_rpc_call_headers_free (MusterRpcCallHeader *first)
{
  while (first != NULL) {
    MusterRpcCallHeader *header = first;
    first = header->next;
    g_free (header->key);
    g_free (header->value);
    g_free (header);
  }
}

/* gRPC bounds all of a call's headers; what stands in them it doesn't look at. NULL if it isn't
 * text. */
static char *
text_of (grpc_slice slice)
{
  gsize size = GRPC_SLICE_LENGTH (slice);
  const char *bytes = (const char *)GRPC_SLICE_START_PTR (slice);
  for (gsize i = 0; i < size; i++)
    if (!g_ascii_isprint (bytes[i]))
      return NULL;
  return g_strndup (bytes, size);
}

/* Call with the lock held, as below. */
static const char *
make_text (MusterRpcCall *self, const char *key)
{
  for (size_t i = 0; i < self->metadata.count; i++) {
    const grpc_metadata *item = &self->metadata.metadata[i];
    if (grpc_slice_str_cmp (item->key, key) != 0)
      continue;
    char *value = text_of (item->value);
    if (value == NULL)
      return NULL;
    MusterRpcCallHeader *header = g_new (MusterRpcCallHeader, 1);
    *header = (MusterRpcCallHeader){self->headers, g_strdup (key), value};
    self->headers = header;
    return value;
  }
  return NULL;
}

static const char *
find_text (MusterRpcCall *self, const char *key)
{
  for (MusterRpcCallHeader *header = self->headers; header != NULL; header = header->next)
    if (g_str_equal (header->key, key))
      return header->value;
  return make_text (self, key);
}

const char *
muster_rpc_call_header (MusterRpcCall *self, const char *key)
{
  g_mutex_lock (&self->lock);
  const char *value = find_text (self, key);
  g_mutex_unlock (&self->lock);
  return value;
}
