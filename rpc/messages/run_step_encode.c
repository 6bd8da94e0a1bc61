// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/run_step_fields_private.h"

#include "base/clock.h"
#include "base/error.h"

/* Names and metadata are not included, so a message of this size may still be refused as a whole;
 * this only avoids writing far more. */
#define MAX_TENSORS ((gsize)G_MAXINT32)

static void
put_named_tensor (MusterRope *out, guint32 number, const char *name, MusterTensor *tensor)
{
  const gsize n_name = strlen (name);
  const gsize n_tensor = muster_tensor_proto_size (tensor);
  const gsize size = (n_name > 0 ? muster_proto_field_size (NAMED_TENSOR_NAME, n_name) : 0) +
                     muster_proto_field_size (NAMED_TENSOR_TENSOR, n_tensor);
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_head (tail, number, size);
  muster_proto_put_string (tail, NAMED_TENSOR_NAME, name);
  muster_tensor_proto_put (out, NAMED_TENSOR_TENSOR, tensor);
}

static void
put_bytes (MusterRope *out, guint32 number, GBytes *bytes)
{
  muster_proto_put_head (muster_rope_tail (out), number, g_bytes_get_size (bytes));
  muster_rope_append (out, bytes);
}

/* Adds a tensor to a message's size, up to the limit. */
static void
add_size (gsize *size, MusterTensor *tensor)
{
  if (*size <= MAX_TENSORS)
    *size += muster_tensor_proto_size (tensor);
}

static gboolean
check_size (gsize size, GError **error)
{
  if (size <= MAX_TENSORS)
    return TRUE;
  g_autofree char *text = muster_format_size (size);
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "the step's tensors need a message of %s or more, over the limit of 2.1 GB; "
                      "use fewer or smaller tensors",
                      text);
}

static gboolean
check_sizes (MusterTensor *const *tensors, gsize n, GError **error)
{
  gsize size = 0;
  for (gsize i = 0; i < n; i++)
    add_size (&size, tensors[i]);
  return check_size (size, error);
}

static void
put_names (MusterRope *out, guint32 number, const char *const *names, gsize n)
{
  GByteArray *tail = muster_rope_tail (out);
  for (gsize i = 0; i < n; i++)
    muster_proto_put_bytes (tail, number, names[i], strlen (names[i]));
}

const char *
muster_step_fetch_suffix (const char *name)
{
  return strchr (name, ':') != NULL ? "" : ":0";
}

static void
put_fetches (GByteArray *tail, const char *const *names, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    const char *suffix = muster_step_fetch_suffix (names[i]);
    const gsize size = strlen (names[i]), n_suffix = strlen (suffix);
    muster_proto_put_head (tail, RUN_STEP_FETCH, size + n_suffix);
    g_byte_array_append (tail, (const guint8 *)names[i], (guint)size);
    g_byte_array_append (tail, (const guint8 *)suffix, (guint)n_suffix);
  }
}

gboolean
muster_step_request_encode_run (const MusterStepRequest *self, MusterRope *out, GError **error)
{
  const MusterStep *step = &self->step;
  gsize size = 0;
  for (gsize i = 0; i < step->n_feeds; i++)
    add_size (&size, step->feeds[i].tensor);
  if (!check_size (size, error))
    return FALSE;
  muster_proto_put_string (muster_rope_tail (out), RUN_STEP_SESSION_HANDLE, self->session_handle);
  for (gsize i = 0; i < step->n_feeds; i++)
    put_named_tensor (out, RUN_STEP_FEED, step->feeds[i].name, step->feeds[i].tensor);
  put_fetches (muster_rope_tail (out), step->fetches, step->n_fetches);
  put_names (out, RUN_STEP_TARGET, step->targets, step->n_targets);
  if (step->options != NULL)
    put_bytes (out, RUN_STEP_OPTIONS, step->options);
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_string (tail, RUN_STEP_PARTIAL_RUN_HANDLE, self->partial_run);
  muster_proto_put_uint (tail, RUN_STEP_STORE_ERRORS, self->store_errors_in_response_body != 0);
  muster_proto_put_uint (tail, RUN_STEP_REQUEST_ID, (guint64)self->request_id);
  return TRUE;
}

gboolean
muster_step_request_encode_callable (const MusterStepRequest *self, MusterRope *out, GError **error)
{
  if (!check_sizes (self->bare_feeds, self->n_bare_feeds, error))
    return FALSE;
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_string (tail, RUN_CALLABLE_SESSION_HANDLE, self->session_handle);
  muster_proto_put_uint (tail, RUN_CALLABLE_HANDLE, (guint64)self->callable);
  muster_proto_put_uint (tail, RUN_CALLABLE_REQUEST_ID, (guint64)self->request_id);
  for (gsize i = 0; i < self->n_bare_feeds; i++)
    muster_tensor_proto_put (out, RUN_CALLABLE_FEED, self->bare_feeds[i]);
  return TRUE;
}

gboolean
muster_step_response_encode_run (MusterRope *out, const char *const *fetches,
                                 MusterTensor *const *tensors, gsize n, GBytes *metadata,
                                 GError **error)
{
  if (!check_sizes (tensors, n, error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    put_named_tensor (out, STEP_RESPONSE_TENSOR, fetches[i], tensors[i]);
  if (metadata != NULL)
    put_bytes (out, STEP_RESPONSE_METADATA, metadata);
  return TRUE;
}

void
muster_step_response_encode_error (MusterRope *out, const GError *failed)
{
  g_autofree char *text = g_utf8_make_valid (failed->message, -1);
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_uint (tail, STEP_RESPONSE_STATUS_CODE, (guint64)muster_error_to_wire (failed));
  muster_proto_put_string (tail, STEP_RESPONSE_STATUS_TEXT, text);
}

gboolean
muster_step_response_encode_callable (MusterRope *out, MusterTensor *const *tensors, gsize n,
                                      GBytes *metadata, GError **error)
{
  if (!check_sizes (tensors, n, error))
    return FALSE;
  for (gsize i = 0; i < n; i++)
    muster_tensor_proto_put (out, STEP_RESPONSE_TENSOR, tensors[i]);
  if (metadata != NULL)
    put_bytes (out, STEP_RESPONSE_METADATA, metadata);
  return TRUE;
}
