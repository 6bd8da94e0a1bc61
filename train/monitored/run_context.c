// SPDX-License-Identifier: Apache-2.0
/* One run of a monitored session: what hooks add to the step's feeds, fetches and options, the
 * run itself, and the values for each hook afterwards. One context serves all runs, so that a run
 * allocates little. */
#include "base/error.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/run_options_private.h"
#include "train/monitored/run_context_private.h"

/* The time limit for reading the global step outside a run. */
#define POLL_US (30 * MUSTER_SECOND)

/* The first fields of RunOptions, numbers all. */
#define N_MERGED MUSTER_RUN_OPTIONS_INTER_OP_THREAD_POOL

struct _MusterRunContext {
  gatomicrefcount refs;
  char *global_step;      /* (owned) (nullable) */
  MusterClock *clock;     /* (owned) */
  MusterSession *session; /* (not owned) (nullable) */
  const MusterStep *step; /* (not owned) (nullable) the caller's */
  GObject *hook;          /* (not owned) (nullable) whose before_run runs */
  GStringChunk *names;    /* (owned) the hooks' names, each once, so that a run allocates none */
  GPtrArray *fetches;     /* (owned) (element-type utf8) the caller's first; borrowed names */
  GPtrArray *values;   /* (owned) (element-type MusterTensor) one for each fetch, after the run */
  GArray *feeds;       /* (owned) (element-type MusterFeed) the caller's first; hooks' are owned */
  GPtrArray *feeders;  /* (owned) (element-type GObject) one for each feed of a hook */
  GByteArray *options; /* (owned) of the hooks */
  GBytes *metadata;    /* (owned) (nullable) */
  GCancellable *cancellable; /* (not owned) (nullable) the run's */
  guint step_at;             /* the global step's index in fetches */
  gint64 step_now;           /* -1: not read yet */
  gboolean wants_stop;
  MusterRunHoldFunc hold_func; /* (nullable) */
  gpointer hold_data;          /* (not owned) */
};

G_DEFINE_BOXED_TYPE (MusterRunContext, muster_run_context, muster_run_context_ref,
                     muster_run_context_unref)

MusterRunContext *
muster_run_context_new (const char *global_step, MusterClock *clock)
{
  MusterRunContext *self = g_new0 (MusterRunContext, 1);
  g_atomic_ref_count_init (&self->refs);
  self->global_step = g_strdup (global_step);
  self->clock = g_object_ref (clock);
  self->names = g_string_chunk_new (256);
  self->fetches = g_ptr_array_new ();
  self->values = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  self->feeds = g_array_new (FALSE, FALSE, sizeof (MusterFeed));
  self->feeders = g_ptr_array_new ();
  self->options = g_byte_array_new ();
  return self;
}

MusterRunContext *
muster_run_context_ref (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_run_context_unref (MusterRunContext *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_run_context_end (self);
  g_string_chunk_free (self->names);
  g_object_unref (self->clock);
  g_ptr_array_unref (self->fetches);
  g_ptr_array_unref (self->values);
  g_array_unref (self->feeds);
  g_ptr_array_unref (self->feeders);
  g_byte_array_unref (self->options);
  g_free (self->global_step);
  g_free (self);
}

void
muster_run_context_begin (MusterRunContext *self, MusterSession *session, const MusterStep *step,
                          GCancellable *cancellable)
{
  muster_run_context_end (self);
  self->session = session;
  self->step = step;
  self->cancellable = cancellable;
  self->hook = NULL;
  self->wants_stop = FALSE;
  self->step_now = -1;
  for (gsize i = 0; i < step->n_fetches; i++)
    g_ptr_array_add (self->fetches, (gpointer)step->fetches[i]);
  if (step->n_feeds > 0)
    g_array_append_vals (self->feeds, step->feeds, (guint)step->n_feeds);
  if (self->global_step != NULL)
    self->step_at = muster_run_context_fetch (self, self->global_step);
}

void
muster_run_context_end (MusterRunContext *self)
{
  for (guint i = 0; i < self->feeders->len; i++)
    muster_tensor_unref (g_array_index (self->feeds, MusterFeed, self->feeds->len - 1 - i).tensor);
  g_array_set_size (self->feeds, 0);
  g_ptr_array_set_size (self->feeders, 0);
  g_ptr_array_set_size (self->fetches, 0);
  g_ptr_array_set_size (self->values, 0);
  g_byte_array_set_size (self->options, 0);
  g_clear_pointer (&self->metadata, g_bytes_unref);
  self->session = NULL;
  self->step = NULL;
  self->hook = NULL;
  self->cancellable = NULL;
}

void
muster_run_context_set_hook (MusterRunContext *self, GObject *hook)
{
  self->hook = hook;
}

/* --- before the run --- */

const MusterStep *
muster_run_context_step (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->step;
}

MusterSession *
muster_run_context_session (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->session;
}

gint64
muster_run_context_deadline_us (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->step == NULL || self->step->deadline_us == 0 ? MUSTER_WAIT_FOREVER
                                                            : self->step->deadline_us;
}

GCancellable *
muster_run_context_cancellable (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->cancellable;
}

void
muster_run_context_set_hold_func (MusterRunContext *self, MusterRunHoldFunc func,
                                  gpointer user_data)
{
  self->hold_func = func;
  self->hold_data = user_data;
}

void
muster_run_context_hold (MusterRunContext *self, const char *why)
{
  if (self->hold_func != NULL)
    self->hold_func (why, self->hold_data);
}

void
muster_run_context_request_stop (MusterRunContext *self)
{
  g_return_if_fail (self != NULL);
  self->wants_stop = TRUE;
}

gboolean
muster_run_context_wants_stop (const MusterRunContext *self)
{
  return self->wants_stop;
}

guint
muster_run_context_fetch (MusterRunContext *self, const char *tensor)
{
  g_return_val_if_fail (self != NULL && tensor != NULL, 0);

  for (guint i = 0; i < self->fetches->len; i++)
    if (self->fetches->pdata[i] == tensor || strcmp (self->fetches->pdata[i], tensor) == 0)
      return i;
  g_ptr_array_add (self->fetches, g_string_chunk_insert_const (self->names, tensor));
  return self->fetches->len - 1;
}

void
muster_run_context_feed (MusterRunContext *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);

  MusterFeed feed = {g_string_chunk_insert_const (self->names, name), muster_tensor_ref (value)};
  g_array_append_val (self->feeds, feed);
  g_ptr_array_add (self->feeders, self->hook);
}

void
muster_run_context_add_options (MusterRunContext *self, GBytes *options)
{
  g_return_if_fail (self != NULL && options != NULL);

  gsize size;
  const void *data = g_bytes_get_data (options, &size);
  g_byte_array_append (self->options, data, (guint)size);
}

/* --- the run --- */

/* "x" and "x:0" name the same tensor. */
static gboolean
is_same_tensor (const char *a, const char *b)
{
  gsize n = strlen (a);
  gsize m = strlen (b);
  if (n == m)
    return strcmp (a, b) == 0;
  const char *longer = n > m ? a : b;
  return strncmp (a, b, MIN (n, m)) == 0 && strcmp (longer + MIN (n, m), ":0") == 0;
}

/* There are few feeds, so each pair is compared. */
static gboolean
check_feeds (MusterRunContext *self, GError **error)
{
  guint n_own = self->feeds->len - self->feeders->len;
  for (guint i = n_own; i < self->feeds->len; i++)
    for (guint j = 0; j < i; j++) {
      const char *name = g_array_index (self->feeds, MusterFeed, i).name;
      if (!is_same_tensor (name, g_array_index (self->feeds, MusterFeed, j).name))
        continue;
      if (j < n_own)
        muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                     "Same tensor is fed by a SessionRunHook and user. Conflict(s): %s", name);
      else
        muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                     "Same tensor is fed by two hooks. Conflict(s): %s (%s and %s)", name,
                     G_OBJECT_TYPE_NAME (self->feeders->pdata[j - n_own]),
                     G_OBJECT_TYPE_NAME (self->feeders->pdata[i - n_own]));
      return FALSE;
    }
  return TRUE;
}

/* Concatenating serialised messages merges them, and the later value of a field wins. A field whose
 * largest value is needed is therefore appended again (MON.27). */
static GBytes *
merge_options (MusterRunContext *self)
{
  guint64 largest[N_MERGED + 1] = {0};
  GByteArray *merged = g_byte_array_new ();
  if (self->step->options != NULL)
    g_byte_array_append (merged, g_bytes_get_data (self->step->options, NULL),
                         (guint)g_bytes_get_size (self->step->options));
  g_byte_array_append (merged, self->options->data, self->options->len);
  MusterProtoReader reader = muster_proto_reader (merged->data, merged->len);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number <= N_MERGED && field.type == MUSTER_WIRE_VARINT)
      largest[field.number] = MAX (largest[field.number], field.value);
  for (guint32 i = 1; i <= N_MERGED; i++)
    muster_proto_put_uint (merged, i, largest[i]);
  return g_byte_array_free_to_bytes (merged);
}

gboolean
muster_run_context_run (MusterRunContext *self, gint64 deadline_us, GError **error)
{
  g_autoptr (GBytes) merged = NULL;
  MusterStep step = *self->step;
  if (self->feeders->len > 0 && !check_feeds (self, error))
    return FALSE;
  step.fetches = (const char *const *)self->fetches->pdata;
  step.n_fetches = self->fetches->len;
  step.feeds = (const MusterFeed *)(gpointer)self->feeds->data;
  step.n_feeds = self->feeds->len;
  step.deadline_us = deadline_us;
  if (self->options->len > 0)
    step.options = merged = merge_options (self);
  g_ptr_array_set_size (self->values, (gint)self->fetches->len);
  return muster_session_run (self->session, &step, (MusterTensor **)self->values->pdata,
                             &self->metadata, self->cancellable, error);
}

/* --- after the run --- */

MusterTensor *
muster_run_context_value (MusterRunContext *self, guint fetched)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_return_val_if_fail (fetched < self->values->len, NULL);
  return self->values->pdata[fetched];
}

GBytes *
muster_run_context_metadata (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->metadata;
}

gint64
muster_step_of (const MusterTensor *value)
{
  gint64 step;
  return muster_tensor_get_int64 (value, &step, NULL) ? step : -1;
}

gint64
muster_read_global_step (MusterSession *session, MusterScaffold *scaffold, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, -1, session, scaffold);
  const char *name = muster_scaffold_global_step (scaffold);
  if (name == NULL) {
    muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "the model has no global step; create it with tf.compat.v1.train.create_global_step ()");
    return -1;
  }
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, name, deadline_us, cancellable, error);
  if (value == NULL)
    return -1;
  gint64 step = muster_step_of (value);
  if (step < 0)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the global step '%s' isn't an integer scalar", name);
  return step;
}

gint64
muster_run_context_global_step (MusterRunContext *self)
{
  g_return_val_if_fail (self != NULL, -1);

  const MusterTensor *value = self->global_step != NULL && self->step_at < self->values->len
                                  ? self->values->pdata[self->step_at]
                                  : NULL;
  return value != NULL ? muster_step_of (value) : -1;
}

gint64
muster_run_context_step_now (MusterRunContext *self, GError **error)
{
  muster_require (error, -1, self);
  if (self->session == NULL) {
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s", "the run has ended");
    return -1;
  }

  gint64 poll_us = muster_deadline_after (muster_clock_now_us (self->clock), POLL_US);

  if (self->step_now >= 0)
    return self->step_now;
  if (self->global_step == NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "The model has no global step");
    return -1;
  }
  g_autoptr (MusterTensor) value = muster_session_fetch (
      self->session, self->global_step, MIN (poll_us, muster_run_context_deadline_us (self)),
      self->cancellable, error);
  if (value == NULL)
    return -1;
  self->step_now = muster_step_of (value);
  if (self->step_now < 0)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the global step '%s' isn't a number of 0 or more", self->global_step);
  return self->step_now;
}

void
muster_run_context_hand_out (MusterRunContext *self, MusterTensor **fetched, GBytes **metadata)
{
  for (gsize i = 0; fetched != NULL && i < self->step->n_fetches; i++)
    fetched[i] = muster_tensor_ref (self->values->pdata[i]);
  if (metadata != NULL)
    *metadata = self->metadata != NULL ? g_bytes_ref (self->metadata) : NULL;
}
