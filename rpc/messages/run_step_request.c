// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/run_step_private.h"

/* A request is read twice: once to check its fields and count them, once to fill arrays that were
 * allocated in one piece, names included. */

typedef struct {
  const char *what; /* for errors */
  gboolean is_callable;
  gsize n_feeds;
  gsize n_fetches;
  gsize n_targets;
  gsize text; /* of the names and handles, each with its NUL */
  gboolean has_options;
} Layout;

/* What is left for the fields to come. */
typedef struct {
  char *text;   /* where the next name goes */
  gsize budget; /* how much tensors may expand */
} Remainder;

static gboolean
count_text (Layout *layout, const MusterProtoField *field, gsize *n)
{
  if (!muster_field_is_text (field))
    return FALSE;
  layout->text += field->size + 1;
  *n += 1;
  return TRUE;
}

static gboolean
count_run_field (Layout *layout, const MusterProtoField *field)
{
  gsize ignored = 0;
  MusterNamedTensor feed;
  switch (field->number) {
  case RUN_STEP_SESSION_HANDLE:
  case RUN_STEP_PARTIAL_RUN_HANDLE:
    return count_text (layout, field, &ignored);
  case RUN_STEP_FETCH:
    return count_text (layout, field, &layout->n_fetches);
  case RUN_STEP_TARGET:
    return count_text (layout, field, &layout->n_targets);
  case RUN_STEP_FEED:
    if (!muster_named_tensor_read (field, &feed))
      return FALSE;
    layout->text += feed.name_size + 1;
    layout->n_feeds++;
    return TRUE;
  case RUN_STEP_OPTIONS:
    if (layout->has_options)
      return FALSE; /* not merged but refused */
    layout->has_options = TRUE;
    return field->type == MUSTER_WIRE_BYTES;
  case RUN_STEP_STORE_ERRORS:
  case RUN_STEP_REQUEST_ID:
    return field->type == MUSTER_WIRE_VARINT;
  default:
    return TRUE;
  }
}

static gboolean
count_callable_field (Layout *layout, const MusterProtoField *field)
{
  gsize ignored = 0;
  switch (field->number) {
  case RUN_CALLABLE_SESSION_HANDLE:
    return count_text (layout, field, &ignored);
  case RUN_CALLABLE_FEED:
    layout->n_feeds++;
    return field->type == MUSTER_WIRE_BYTES;
  case RUN_CALLABLE_HANDLE:
  case RUN_CALLABLE_REQUEST_ID:
    return field->type == MUSTER_WIRE_VARINT;
  default:
    return TRUE;
  }
}

static gboolean
count_fields (Layout *layout, GBytes *message, GError **error)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (message, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (layout->is_callable ? count_callable_field (layout, &field)
                            : count_run_field (layout, &field))
      continue;
    g_autofree char *why = g_strdup_printf ("field %u is not what it should be", field.number);
    return muster_field_refuse (layout->what, why, error);
  }
  return muster_proto_at_end (&reader) ||
         muster_field_refuse (layout->what, "it ends in the middle of a field", error);
}

/* The struct, its arrays and its text in one allocation; all zero, so that it can be freed as it
 * is. */
static MusterStepRequest *
allocate (const Layout *layout, Remainder *rest, GError **error)
{
  gsize n_names = layout->is_callable ? 0 : layout->n_feeds;
  gsize n_pointers = n_names + layout->n_feeds + layout->n_fetches + layout->n_targets;
  gsize size = sizeof (MusterStepRequest) + n_pointers * sizeof (gpointer) + layout->text;
  MusterStepRequest *self = g_try_malloc0 (size);
  if (self == NULL) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "no memory for a %s of %" G_GSIZE_FORMAT " names", layout->what, n_pointers);
    return NULL;
  }
  self->feeds = (MusterTensor **)(self + 1);
  const char **names = (const char **)(self->feeds + layout->n_feeds);
  self->feed_names = layout->is_callable ? NULL : names;
  self->fetches = names + n_names;
  self->targets = self->fetches + layout->n_fetches;
  rest->text = (char *)(self->targets + layout->n_targets);
  self->session_handle = "";
  return self;
}

static const char *
keep_text (Remainder *rest, const void *data, gsize size)
{
  char *kept = rest->text;
  if (size > 0)
    memcpy (kept, data, size);
  kept[size] = '\0';
  rest->text += size + 1;
  return kept;
}

static gboolean
add_feed (MusterStepRequest *self, GBytes *message, const char *name, const void *data, gsize size,
          Remainder *rest, GError **error)
{
  MusterTensor *tensor =
      muster_tensor_proto_read_within (data, size, message, &rest->budget, error);
  if (tensor == NULL && name != NULL)
    g_prefix_error (error, "feed '%s': ", name);
  else if (tensor == NULL)
    g_prefix_error (error, "feed %" G_GSIZE_FORMAT ": ", self->n_feeds);
  if (tensor == NULL)
    return FALSE;
  if (name != NULL)
    self->feed_names[self->n_feeds] = name;
  self->feeds[self->n_feeds++] = tensor;
  return TRUE;
}

static gboolean
fill_run_field (MusterStepRequest *self, GBytes *message, const MusterProtoField *field,
                Remainder *rest, GError **error)
{
  MusterNamedTensor feed;
  switch (field->number) {
  case RUN_STEP_SESSION_HANDLE:
    self->session_handle = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_PARTIAL_RUN_HANDLE:
    self->partial_run_handle = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_FETCH:
    self->fetches[self->n_fetches++] = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_TARGET:
    self->targets[self->n_targets++] = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_FEED:
    muster_named_tensor_read (field, &feed);
    return add_feed (self, message, keep_text (rest, feed.name, feed.name_size), feed.tensor,
                     feed.tensor_size, rest, error);
  case RUN_STEP_OPTIONS:
    self->options = field->size > 0 ? muster_field_to_bytes (message, field) : NULL;
    break;
  case RUN_STEP_STORE_ERRORS:
    self->store_errors_in_response_body = field->value != 0;
    break;
  case RUN_STEP_REQUEST_ID:
    self->request_id = (gint64)field->value;
    break;
  default:
    break;
  }
  return TRUE;
}

static gboolean
fill_callable_field (MusterStepRequest *self, GBytes *message, const MusterProtoField *field,
                     Remainder *rest, GError **error)
{
  switch (field->number) {
  case RUN_CALLABLE_SESSION_HANDLE:
    self->session_handle = keep_text (rest, field->data, field->size);
    break;
  case RUN_CALLABLE_HANDLE:
    self->callable = (gint64)field->value;
    break;
  case RUN_CALLABLE_FEED:
    return add_feed (self, message, NULL, field->data, field->size, rest, error);
  case RUN_CALLABLE_REQUEST_ID:
    self->request_id = (gint64)field->value;
    break;
  default:
    break;
  }
  return TRUE;
}

static MusterStepRequest *
decode (Layout *layout, GBytes *message, GError **error)
{
  Remainder rest = {.budget = MUSTER_MAX_EXPANSION};
  if (!count_fields (layout, message, error))
    return NULL;
  g_autoptr (MusterStepRequest) self = allocate (layout, &rest, error);
  if (self == NULL)
    return NULL;

  gsize size;
  gconstpointer data = g_bytes_get_data (message, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    gboolean is_good = layout->is_callable
                           ? fill_callable_field (self, message, &field, &rest, error)
                           : fill_run_field (self, message, &field, &rest, error);
    if (!is_good) {
      g_prefix_error (error, "%s: ", layout->what);
      return NULL;
    }
  }
  return g_steal_pointer (&self);
}

MusterStepRequest *
muster_step_request_decode_run (GBytes *message, GError **error)
{
  return decode (&(Layout){.what = "RunStep request"}, message, error);
}

MusterStepRequest *
muster_step_request_decode_callable (GBytes *message, GError **error)
{
  return decode (&(Layout){.what = "RunCallable request", .is_callable = TRUE}, message, error);
}

void
muster_step_request_free (MusterStepRequest *self)
{
  if (self == NULL)
    return;
  for (gsize i = 0; i < self->n_feeds; i++)
    muster_tensor_unref (self->feeds[i]);
  g_clear_pointer (&self->options, g_bytes_unref);
  g_free (self);
}

static void
put_names (MusterRope *out, guint32 number, const char *const *names, gsize n)
{
  GByteArray *tail = muster_rope_tail (out);
  for (gsize i = 0; i < n; i++)
    muster_proto_put_bytes (tail, number, names[i], strlen (names[i]));
}

void
muster_step_request_encode_run (const MusterStepRequest *self, MusterRope *out)
{
  muster_proto_put_string (muster_rope_tail (out), RUN_STEP_SESSION_HANDLE, self->session_handle);
  for (gsize i = 0; i < self->n_feeds; i++)
    muster_named_tensor_put (out, RUN_STEP_FEED, self->feed_names[i], self->feeds[i]);
  put_names (out, RUN_STEP_FETCH, self->fetches, self->n_fetches);
  put_names (out, RUN_STEP_TARGET, self->targets, self->n_targets);
  if (self->options != NULL) {
    muster_proto_put_head (muster_rope_tail (out), RUN_STEP_OPTIONS,
                           g_bytes_get_size (self->options));
    muster_rope_append (out, self->options);
  }
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_string (tail, RUN_STEP_PARTIAL_RUN_HANDLE, self->partial_run_handle);
  muster_proto_put_uint (tail, RUN_STEP_STORE_ERRORS, self->store_errors_in_response_body != 0);
  muster_proto_put_uint (tail, RUN_STEP_REQUEST_ID, (guint64)self->request_id);
}

void
muster_step_request_encode_callable (const MusterStepRequest *self, MusterRope *out)
{
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_string (tail, RUN_CALLABLE_SESSION_HANDLE, self->session_handle);
  muster_proto_put_uint (tail, RUN_CALLABLE_HANDLE, (guint64)self->callable);
  muster_proto_put_uint (tail, RUN_CALLABLE_REQUEST_ID, (guint64)self->request_id);
  for (gsize i = 0; i < self->n_feeds; i++)
    muster_tensor_proto_put (out, RUN_CALLABLE_FEED, self->feeds[i]);
}
