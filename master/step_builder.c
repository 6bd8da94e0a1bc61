// SPDX-License-Identifier: Apache-2.0
/* A step as an object, for bindings: it owns what a MusterStep borrows, and runs it. */
#include "master/step_builder.h"

#include "base/require_private.h"
#include "graph/step_copy_private.h"

struct _MusterStepBuilder {
  gatomicrefcount refs;
  GArray *feeds;      /* (owned) of MusterFeed, which own their contents */
  GPtrArray *fetches; /* (owned) of char, as targets */
  GPtrArray *targets;
  GBytes *options; /* (owned) (nullable) */
};

G_DEFINE_BOXED_TYPE (MusterStepBuilder, muster_step_builder, muster_step_builder_ref,
                     muster_step_builder_unref)

static void
clear_feed (gpointer data)
{
  MusterFeed *feed = data;
  g_free ((char *)feed->name);
  muster_tensor_unref (feed->tensor);
}

MusterStepBuilder *
muster_step_builder_new (void)
{
  MusterStepBuilder *self = g_new0 (MusterStepBuilder, 1);
  g_atomic_ref_count_init (&self->refs);
  self->feeds = g_array_new (FALSE, FALSE, sizeof (MusterFeed));
  g_array_set_clear_func (self->feeds, clear_feed);
  self->fetches = g_ptr_array_new_with_free_func (g_free);
  self->targets = g_ptr_array_new_with_free_func (g_free);
  return self;
}

MusterStepBuilder *
muster_step_builder_ref (MusterStepBuilder *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_step_builder_unref (MusterStepBuilder *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->feeds);
  g_ptr_array_unref (self->fetches);
  g_ptr_array_unref (self->targets);
  g_clear_pointer (&self->options, g_bytes_unref);
  g_free (self);
}

void
muster_step_builder_feed (MusterStepBuilder *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);

  for (guint i = 0; i < self->feeds->len; i++) {
    MusterFeed *feed = &g_array_index (self->feeds, MusterFeed, i);
    if (!g_str_equal (feed->name, name))
      continue;
    muster_tensor_ref (value);
    muster_tensor_unref (feed->tensor);
    feed->tensor = value;
    return;
  }
  g_array_append_vals (self->feeds, &(MusterFeed){g_strdup (name), muster_tensor_ref (value)}, 1);
}

guint
muster_step_builder_fetch (MusterStepBuilder *self, const char *tensor)
{
  g_return_val_if_fail (self != NULL && tensor != NULL, 0);
  g_ptr_array_add (self->fetches, g_strdup (tensor));
  return self->fetches->len - 1;
}

void
muster_step_builder_target (MusterStepBuilder *self, const char *op)
{
  g_return_if_fail (self != NULL && op != NULL);
  g_ptr_array_add (self->targets, g_strdup (op));
}

MusterStep
muster_step_builder_step (MusterStepBuilder *self)
{
  g_return_val_if_fail (self != NULL, (MusterStep){0});
  return (MusterStep){.feeds = (const MusterFeed *)self->feeds->data,
                      .n_feeds = self->feeds->len,
                      .fetches = (const char *const *)self->fetches->pdata,
                      .n_fetches = self->fetches->len,
                      .targets = (const char *const *)self->targets->pdata,
                      .n_targets = self->targets->len,
                      .options = self->options};
}

void
muster_step_builder_set_options (MusterStepBuilder *self, GBytes *options)
{
  g_return_if_fail (self != NULL);
  if (options != NULL)
    g_bytes_ref (options);
  g_clear_pointer (&self->options, g_bytes_unref);
  self->options = options;
}

/* --- runs --- */

static gint64
deadline_of (gint64 timeout_us)
{
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), timeout_us);
}

GPtrArray *
muster_step_builder_run_with_metadata (MusterStepBuilder *self, MusterSession *session,
                                       gint64 timeout_us, GBytes **metadata,
                                       GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->fetches->len + 1);
  MusterStep step = muster_step_builder_step (self);
  step.deadline_us = deadline_of (timeout_us);
  return muster_session_run (session, &step, fetched, metadata, cancellable, error)
             ? muster_tensors_take (fetched, self->fetches->len)
             : NULL;
}

GPtrArray *
muster_step_builder_run (MusterStepBuilder *self, MusterSession *session, gint64 timeout_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session);
  return muster_step_builder_run_with_metadata (self, session, timeout_us, NULL, cancellable,
                                                error);
}

char *
muster_step_builder_set_up_partial_run (MusterStepBuilder *self, MusterSession *session,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        GError **error)
{
  muster_require (error, NULL, self, session);
  const MusterStep step = muster_step_builder_step (self);
  return muster_session_set_up_partial_run (session, &step, deadline_us, cancellable, error);
}

GPtrArray *
muster_step_builder_run_part (MusterStepBuilder *self, MusterSession *session,
                              const char *partial_run, gint64 timeout_us, GCancellable *cancellable,
                              GError **error)
{
  muster_require (error, NULL, self, session, partial_run);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->fetches->len + 1);
  MusterStep step = muster_step_builder_step (self);
  step.deadline_us = deadline_of (timeout_us);
  return muster_session_run_part (session, partial_run, &step, fetched, NULL, cancellable, error)
             ? muster_tensors_take (fetched, self->fetches->len)
             : NULL;
}

gint64
muster_step_builder_make_callable (MusterStepBuilder *self, MusterSession *session,
                                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, 0, self, session);
  const MusterStep step = muster_step_builder_step (self);
  return muster_session_make_callable (session, &step, deadline_us, cancellable, error);
}

GPtrArray *
muster_step_builder_run_callable (MusterStepBuilder *self, MusterSession *session, gint64 callable,
                                  gint64 timeout_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->fetches->len + 1);
  g_autofree MusterTensor **feeds = g_new0 (MusterTensor *, self->feeds->len + 1);
  for (guint i = 0; i < self->feeds->len; i++)
    feeds[i] = g_array_index (self->feeds, MusterFeed, i).tensor;
  return muster_session_run_callable (session, callable, feeds, self->feeds->len,
                                      deadline_of (timeout_us), fetched, NULL, cancellable, error)
             ? muster_tensors_take (fetched, self->fetches->len)
             : NULL;
}
