// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/run_step_private.h"

static void
put_metadata (MusterRope *out, GBytes *metadata)
{
  if (metadata == NULL)
    return;
  muster_proto_put_head (muster_rope_tail (out), STEP_RESPONSE_METADATA,
                         g_bytes_get_size (metadata));
  muster_rope_append (out, metadata);
}

void
muster_step_response_encode_run (MusterRope *out, const char *const *fetches,
                                 MusterTensor *const *tensors, gsize n, GBytes *metadata,
                                 const GError *failed)
{
  for (gsize i = 0; failed == NULL && i < n; i++)
    muster_named_tensor_put (out, STEP_RESPONSE_TENSOR, fetches[i], tensors[i]);
  put_metadata (out, metadata);
  if (failed == NULL)
    return;
  g_autofree char *text = g_utf8_make_valid (failed->message, -1);
  GByteArray *tail = muster_rope_tail (out);
  muster_proto_put_uint (tail, STEP_RESPONSE_STATUS_CODE, (guint64)muster_error_to_wire (failed));
  muster_proto_put_string (tail, STEP_RESPONSE_STATUS_TEXT, text);
}

void
muster_step_response_encode_callable (MusterRope *out, MusterTensor *const *tensors, gsize n,
                                      GBytes *metadata)
{
  for (gsize i = 0; i < n; i++)
    muster_tensor_proto_put (out, STEP_RESPONSE_TENSOR, tensors[i]);
  put_metadata (out, metadata);
}

/* A response as it is being read. */
typedef struct {
  GBytes *message;           /* (not owned) */
  const char *const *wanted; /* (not owned) (nullable) names; NULL in RunCallable */
  GPtrArray *tensors;        /* (owned) as many as were asked for; (nullable) elements */
  gsize n_seen;
  gsize budget;     /* how much tensors may yet expand */
  GBytes *metadata; /* (owned) (nullable) */
  int status;
  char *status_text; /* (owned) (nullable) */
} Response;

static void
response_clear (Response *self)
{
  g_clear_pointer (&self->tensors, g_ptr_array_unref);
  g_clear_pointer (&self->metadata, g_bytes_unref);
  g_clear_pointer (&self->status_text, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Response, response_clear)

/* "y" and "y:0" name the same tensor, and masters answer with either. */
static gsize
bare_size (const char *name, gsize size)
{
  return size > 2 && memcmp (name + size - 2, ":0", 2) == 0 ? size - 2 : size;
}

static gboolean
is_named (const char *wanted, const char *name, gsize name_size)
{
  gsize n = bare_size (name, name_size);
  return bare_size (wanted, strlen (wanted)) == n && memcmp (wanted, name, n) == 0;
}

/* The place of a tensor that came: nearly always the next one. n where it was not asked for. */
static gsize
find_place (const Response *self, const MusterNamedTensor *got)
{
  gsize n = self->tensors->len;
  if (self->n_seen < n && is_named (self->wanted[self->n_seen], got->name, got->name_size))
    return self->n_seen;
  for (gsize i = 0; i < n; i++)
    if (self->tensors->pdata[i] == NULL && is_named (self->wanted[i], got->name, got->name_size))
      return i;
  return n;
}

static gboolean
refuse_unasked (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INTERNAL,
                      "the master's response holds a tensor that was not asked for");
}

static gboolean
take_tensor (Response *self, const MusterProtoField *field, GError **error)
{
  MusterNamedTensor got = {.tensor = field->data, .tensor_size = field->size};
  if (self->wanted != NULL ? !muster_named_tensor_read (field, &got)
                           : field->type != MUSTER_WIRE_BYTES)
    return muster_field_refuse ("response", "it has a malformed tensor", error);
  gsize place = self->wanted != NULL ? find_place (self, &got) : self->n_seen;
  if (place >= self->tensors->len || self->tensors->pdata[place] != NULL)
    return refuse_unasked (error);
  self->tensors->pdata[place] = muster_tensor_proto_read_within (
      got.tensor, got.tensor_size, self->message, &self->budget, error);
  self->n_seen++;
  return self->tensors->pdata[place] != NULL;
}

static gboolean
take_field (Response *self, const MusterProtoField *field, GError **error)
{
  switch (field->number) {
  case STEP_RESPONSE_TENSOR:
    return take_tensor (self, field, error);
  case STEP_RESPONSE_METADATA:
    if (field->type != MUSTER_WIRE_BYTES || self->metadata != NULL)
      return muster_field_refuse ("response", "its metadata is malformed", error);
    self->metadata = muster_field_to_bytes (self->message, field);
    return TRUE;
  case STEP_RESPONSE_STATUS_CODE:
    self->status = field->type == MUSTER_WIRE_VARINT ? (int)field->value : MUSTER_ERROR_UNKNOWN;
    return TRUE;
  case STEP_RESPONSE_STATUS_TEXT:
    if (!muster_field_is_text (field))
      return muster_field_refuse ("response", "its status has a text that is not UTF-8", error);
    g_free (self->status_text);
    self->status_text = g_strndup ((const char *)field->data, field->size);
    return TRUE;
  default:
    return TRUE;
  }
}

static gboolean
read_fields (Response *self, GError **error)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (self->message, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (!take_field (self, &field, error))
      return FALSE;
  return muster_proto_at_end (&reader) ||
         muster_field_refuse ("response", "it ends in the middle of a field", error);
}

/* A tensor that was asked for twice may come once. */
static MusterTensor *
find_twin (const Response *self, gsize missing)
{
  for (gsize i = 0; self->wanted != NULL && i < self->tensors->len; i++)
    if (self->tensors->pdata[i] != NULL &&
        is_named (self->wanted[i], self->wanted[missing], strlen (self->wanted[missing])))
      return muster_tensor_ref (self->tensors->pdata[i]);
  return NULL;
}

static gboolean
complete (Response *self, GError **error)
{
  for (gsize i = 0; i < self->tensors->len && self->n_seen < self->tensors->len; i++) {
    if (self->tensors->pdata[i] != NULL)
      continue;
    self->tensors->pdata[i] = find_twin (self, i);
    if (self->tensors->pdata[i] != NULL)
      continue;
    return muster_fail (error, MUSTER_ERROR_INTERNAL, "the master's response lacks '%s'",
                        self->wanted != NULL ? self->wanted[i] : "a fetched tensor");
  }
  return TRUE;
}

static gboolean
decode (GBytes *message, const char *const *fetches, gsize n_fetches, MusterTensor **tensors,
        GBytes **metadata, GError **error)
{
  g_auto (Response) self = {.message = message, .wanted = fetches, .budget = MUSTER_MAX_EXPANSION};
  self.tensors = g_ptr_array_new_full (n_fetches, (GDestroyNotify)muster_tensor_unref);
  g_ptr_array_set_size (self.tensors, n_fetches);
  if (!read_fields (&self, error))
    return FALSE;
  if (self.status != 0) {
    return muster_fail (error, muster_error_from_wire (self.status), "%s",
                        self.status_text != NULL ? self.status_text : "(no message)");
  }
  if (!complete (&self, error))
    return FALSE;
  for (gsize i = 0; i < n_fetches; i++)
    tensors[i] = g_steal_pointer (&self.tensors->pdata[i]);
  if (metadata != NULL)
    *metadata = g_steal_pointer (&self.metadata);
  return TRUE;
}

gboolean
muster_step_response_decode_run (GBytes *message, const char *const *fetches, gsize n_fetches,
                                 MusterTensor **tensors, GBytes **metadata, GError **error)
{
  static const char *const none[] = {NULL};
  return decode (message, fetches != NULL ? fetches : none, n_fetches, tensors, metadata, error);
}

gboolean
muster_step_response_decode_callable (GBytes *message, gsize n_fetches, MusterTensor **tensors,
                                      GBytes **metadata, GError **error)
{
  return decode (message, NULL, n_fetches, tensors, metadata, error);
}
