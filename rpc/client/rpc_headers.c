// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/rpc_call_private.h"

#include <string.h>

#define MAX_HEADER_BYTES 4096

/* gRPC's keys are HTTP/2's; "grpc-…" is reserved, and "…-bin" is decoded. */
static gboolean
is_key (const char *key)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  return key != NULL && *key != '\0' && key[strspn (key, allowed)] == '\0' &&
         !g_str_has_prefix (key, "grpc-") && !g_str_has_suffix (key, "-bin") &&
         !g_str_equal (key, "authorization");
}

static gboolean
is_value (const char *value)
{
  if (value == NULL)
    return FALSE;
  for (const char *c = value; *c != '\0'; c++)
    if (!g_ascii_isprint (*c))
      return FALSE;
  return TRUE;
}

gboolean
muster_rpc_headers_check (const MusterRpcOptions *options, GError **error)
{
  gsize n_bytes = 0;
  gboolean is_good = options->n_headers <= MUSTER_RPC_MAX_HEADERS;
  for (gsize i = 0; is_good && i < options->n_headers; i++) {
    const MusterRpcHeader *header = &options->headers[i];
    is_good = is_key (header->key) && is_value (header->value);
    if (is_good)
      n_bytes += strlen (header->key) + strlen (header->value);
  }
  if (is_good && n_bytes <= MAX_HEADER_BYTES)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "malformed call headers (use at most 16, 4 KiB in total, with keys like "
                      "'a-key' and values of printable ASCII)");
}

void
muster_rpc_metadata_init (MusterRpcMetadata *self, MusterRpcClient *client,
                          const MusterRpcOptions *options)
{
  self->n_items = 0;
  grpc_slice authorization;
  if (muster_rpc_credentials_authorization (client->credentials, &authorization)) {
    grpc_metadata *item = &self->items[self->n_items++];
    item->key = grpc_slice_from_static_string ("authorization");
    item->value = authorization;
  }
  for (gsize i = 0; i < options->n_headers; i++) {
    grpc_metadata *item = &self->items[self->n_items++];
    item->key = grpc_slice_from_copied_string (options->headers[i].key);
    item->value = grpc_slice_from_copied_string (options->headers[i].value);
  }
}

void
muster_rpc_metadata_clear (MusterRpcMetadata *self)
{
  for (gsize i = 0; i < self->n_items; i++) {
    grpc_slice_unref (self->items[i].key);
    grpc_slice_unref (self->items[i].value);
  }
}
