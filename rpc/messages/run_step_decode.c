// SPDX-License-Identifier: Apache-2.0
/* Decodes RunStep and RunCallable by hand: tensors refer to the message's bytes, and what a
 * message claims is checked before memory is taken. */
#include "rpc/messages/run_step_fields_private.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory_account_private.h"
#include "graph/run_options_private.h"

/* A NamedTensorProto's two fields, as bytes in the message. */
typedef struct {
  const char *name; /* (not owned) not NUL-terminated */
  gsize name_size;
  const guint8 *tensor; /* (not owned) */
  gsize tensor_size;
} NamedTensor;

static gboolean
refuse_message (const char *what, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "malformed %s: %s", what, why);
}

/* TRUE if the field's bytes are UTF-8 without a NUL. */
static gboolean
is_text (const MusterProtoField *field)
{
  return field->type == MUSTER_WIRE_BYTES &&
         (field->size == 0 || g_utf8_validate_len ((const char *)field->data, field->size, NULL));
}

/* The field's bytes, shared with message. */
static GBytes *
to_bytes (GBytes *message, const MusterProtoField *field)
{
  const guint8 *start = g_bytes_get_data (message, NULL);
  return field->size == 0 ? g_bytes_new (NULL, 0)
                          : g_bytes_new_from_bytes (message, field->data - start, field->size);
}

/* FALSE if field isn't a NamedTensorProto with a UTF-8 name. */
static gboolean
read_named_tensor (const MusterProtoField *field, NamedTensor *out)
{
  if (field->type != MUSTER_WIRE_BYTES)
    return FALSE;
  *out = (NamedTensor){.name = "", .tensor = (const guint8 *)""};
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  MusterProtoField inner;
  while (muster_proto_read_field (&reader, &inner)) {
    if (inner.number == NAMED_TENSOR_NAME) {
      if (!is_text (&inner))
        return FALSE;
      out->name = (const char *)inner.data;
      out->name_size = inner.size;
    } else if (inner.number == NAMED_TENSOR_TENSOR) {
      if (inner.type != MUSTER_WIRE_BYTES || out->tensor_size > 0)
        return FALSE; /* a repeated tensor is refused, not merged */
      out->tensor = inner.data;
      out->tensor_size = inner.size;
    }
  }
  return muster_proto_at_end (&reader);
}

/* --- a request ---
 *
 * It is read twice: once to check its fields and count them, once to fill arrays that were
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

/* The space for the next fields. */
typedef struct {
  MusterFeed *feeds;   /* the request's, like the next two: RunStep's */
  MusterTensor **bare; /* RunCallable's */
  const char **fetches;
  const char **targets;
  char *text;   /* where the next name goes */
  gsize budget; /* bytes by which tensors may still expand */
} Remainder;

static gboolean
count_text (Layout *layout, const MusterProtoField *field, gsize *n)
{
  if (!is_text (field))
    return FALSE;
  layout->text += field->size + 1;
  *n += 1;
  return TRUE;
}

static gboolean
count_run_field (Layout *layout, const MusterProtoField *field)
{
  gsize ignored = 0;
  NamedTensor feed;
  switch (field->number) {
  case RUN_STEP_SESSION_HANDLE:
  case RUN_STEP_PARTIAL_RUN_HANDLE:
    return count_text (layout, field, &ignored);
  case RUN_STEP_FETCH:
    return count_text (layout, field, &layout->n_fetches);
  case RUN_STEP_TARGET:
    return count_text (layout, field, &layout->n_targets);
  case RUN_STEP_FEED:
    if (!read_named_tensor (field, &feed))
      return FALSE;
    layout->text += feed.name_size + 1;
    layout->n_feeds++;
    return TRUE;
  case RUN_STEP_OPTIONS:
    if (layout->has_options)
      return FALSE; /* refused, not merged */
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
    return refuse_message (layout->what, why, error);
  }
  return muster_proto_at_end (&reader) ||
         refuse_message (layout->what, "it ends in the middle of a field", error);
}

#define SMALL 65536

/* The struct, its arrays and its text in one allocation; all zero, so that it can be freed as it
 * is. */
static MusterStepRequest *
allocate (const Layout *layout, Remainder *rest, GError **error)
{
  gsize n_bare = layout->is_callable ? layout->n_feeds : 0, n_feeds = layout->n_feeds - n_bare;
  gsize n_pointers = n_bare + layout->n_fetches + layout->n_targets;
  gsize size = sizeof (MusterStepRequest) + n_feeds * sizeof (MusterFeed) +
               n_pointers * sizeof (gpointer) + layout->text;
  /* A few names don't count: a step may free memory. */
  const gsize n_counted = size > SMALL ? size : 0;
  if (!muster_memory_take (MUSTER_MEMORY_MESSAGES, n_counted, error))
    return NULL;
  MusterStepRequest *self = g_try_malloc0 (size);
  if (self == NULL) {
    muster_memory_release (MUSTER_MEMORY_MESSAGES, n_counted);
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "no memory for a %s of %" G_GSIZE_FORMAT " names", layout->what,
                 n_feeds + n_pointers);
    return NULL;
  }
  rest->feeds = (MusterFeed *)(self + 1);
  rest->bare = (MusterTensor **)(rest->feeds + n_feeds);
  rest->fetches = (const char **)(rest->bare + n_bare);
  rest->targets = rest->fetches + layout->n_fetches;
  rest->text = (char *)(rest->targets + layout->n_targets);
  self->n_counted = n_counted;
  self->session_handle = "";
  self->step =
      (MusterStep){.feeds = rest->feeds, .fetches = rest->fetches, .targets = rest->targets};
  self->bare_feeds = rest->bare;
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
add_feed (MusterStepRequest *self, GBytes *message, const NamedTensor *feed, Remainder *rest,
          GError **error)
{
  const char *name = keep_text (rest, feed->name, feed->name_size);
  MusterTensor *tensor = muster_tensor_proto_read_within (feed->tensor, feed->tensor_size, message,
                                                          &rest->budget, error);
  if (tensor == NULL) {
    g_prefix_error (error, "feed '%s': ", name);
    return FALSE;
  }
  rest->feeds[self->step.n_feeds++] = (MusterFeed){name, tensor};
  return TRUE;
}

static gboolean
add_bare_feed (MusterStepRequest *self, GBytes *message, const MusterProtoField *field,
               Remainder *rest, GError **error)
{
  MusterTensor *tensor =
      muster_tensor_proto_read_within (field->data, field->size, message, &rest->budget, error);
  if (tensor == NULL) {
    g_prefix_error (error, "feed %" G_GSIZE_FORMAT ": ", self->n_bare_feeds);
    return FALSE;
  }
  rest->bare[self->n_bare_feeds++] = tensor;
  return TRUE;
}

static gboolean
set_options (MusterStepRequest *self, GBytes *message, const MusterProtoField *field,
             GError **error)
{
  if (field->size > 0)
    self->step.options = to_bytes (message, field);
  return muster_run_options_read (self->step.options, &self->timeout_us) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "malformed RunOptions");
}

static gboolean
fill_run_field (MusterStepRequest *self, GBytes *message, const MusterProtoField *field,
                Remainder *rest, GError **error)
{
  NamedTensor feed;
  switch (field->number) {
  case RUN_STEP_SESSION_HANDLE:
    self->session_handle = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_PARTIAL_RUN_HANDLE:
    self->partial_run = field->size > 0 ? keep_text (rest, field->data, field->size) : NULL;
    break;
  case RUN_STEP_FETCH:
    rest->fetches[self->step.n_fetches++] = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_TARGET:
    rest->targets[self->step.n_targets++] = keep_text (rest, field->data, field->size);
    break;
  case RUN_STEP_FEED:
    read_named_tensor (field, &feed);
    return add_feed (self, message, &feed, rest, error);
  case RUN_STEP_OPTIONS:
    return set_options (self, message, field, error);
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
    return add_bare_feed (self, message, field, rest, error);
  case RUN_CALLABLE_REQUEST_ID:
    self->request_id = (gint64)field->value;
    break;
  default:
    break;
  }
  return TRUE;
}

static MusterStepRequest *
decode_request (Layout *layout, GBytes *message, GError **error)
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
  return decode_request (&(Layout){.what = "RunStep request"}, message, error);
}

MusterStepRequest *
muster_step_request_decode_callable (GBytes *message, GError **error)
{
  return decode_request (&(Layout){.what = "RunCallable request", .is_callable = TRUE}, message,
                         error);
}

void
muster_step_request_free (MusterStepRequest *self)
{
  if (self == NULL)
    return;
  for (gsize i = 0; i < self->step.n_feeds; i++)
    muster_tensor_unref (self->step.feeds[i].tensor);
  for (gsize i = 0; i < self->n_bare_feeds; i++)
    muster_tensor_unref (self->bare_feeds[i]);
  g_clear_pointer (&self->step.options, g_bytes_unref);
  muster_memory_release (MUSTER_MEMORY_MESSAGES, self->n_counted);
  g_free (self);
}

/* --- a response --- */

/* A response as it is being read. */
typedef struct {
  GBytes *message;           /* (not owned) */
  const char *const *wanted; /* (not owned) (nullable) names; NULL in RunCallable */
  GPtrArray *tensors;        /* (owned) as many as requested; (nullable) elements */
  gsize n_seen;
  gsize budget;     /* bytes by which tensors may still expand */
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

/* The index of a received tensor: usually the next. n if it wasn't requested. */
static gsize
find_place (const Response *self, const NamedTensor *got)
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
  NamedTensor got = {.tensor = field->data, .tensor_size = field->size};
  if (self->wanted != NULL ? !read_named_tensor (field, &got) : field->type != MUSTER_WIRE_BYTES)
    return refuse_message ("response", "it has a malformed tensor", error);
  gsize place = self->wanted != NULL ? find_place (self, &got) : self->n_seen;
  if (place >= self->tensors->len || self->tensors->pdata[place] != NULL)
    return refuse_unasked (error);
  self->tensors->pdata[place] = muster_tensor_proto_read_within (
      got.tensor, got.tensor_size, self->message, &self->budget, error);
  self->n_seen++;
  if (self->tensors->pdata[place] == NULL && self->wanted != NULL)
    g_prefix_error (error, "The fetch '%s': ", self->wanted[place]);
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
      return refuse_message ("response", "its metadata is malformed", error);
    self->metadata = to_bytes (self->message, field);
    return TRUE;
  case STEP_RESPONSE_STATUS_CODE:
    self->status = field->type == MUSTER_WIRE_VARINT ? (int)field->value : MUSTER_ERROR_UNKNOWN;
    return TRUE;
  case STEP_RESPONSE_STATUS_TEXT:
    if (!is_text (field))
      return refuse_message ("response", "its status has a text that is not UTF-8", error);
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
         refuse_message ("response", "it ends in the middle of a field", error);
}

/* A tensor that was requested twice may come once. */
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
decode_response (GBytes *message, const char *const *fetches, gsize n_fetches,
                 MusterTensor **tensors, GBytes **metadata, GError **error)
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
  return decode_response (message, fetches != NULL ? fetches : none, n_fetches, tensors, metadata,
                          error);
}

gboolean
muster_step_response_decode_callable (GBytes *message, gsize n_fetches, MusterTensor **tensors,
                                      GBytes **metadata, GError **error)
{
  return decode_response (message, NULL, n_fetches, tensors, metadata, error);
}
