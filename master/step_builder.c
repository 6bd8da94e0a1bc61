// SPDX-License-Identifier: Apache-2.0
#include "master/step_builder.h"

#include "base/require.h"

struct _MusterStepBuilder {
  gatomicrefcount refs;
  GArray *feeds;      /* (owned) of MusterFeed, which own their contents */
  GPtrArray *fetches; /* (owned) of char, as targets */
  GPtrArray *targets;
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
                      .n_targets = self->targets->len};
}

GPtrArray *
muster_step_builder_run (MusterStepBuilder *self, MusterSession *session, gint64 timeout_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, session);

  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  MusterStep step = muster_step_builder_step (self);
  g_autoptr (GPtrArray) values =
      g_ptr_array_new_full (self->fetches->len, (GDestroyNotify)muster_tensor_unref);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->fetches->len + 1);

  step.deadline_us = muster_deadline_after (now_us, timeout_us);
  if (!muster_session_run (session, &step, fetched, NULL, cancellable, error))
    return NULL;
  for (guint i = 0; i < self->fetches->len; i++)
    g_ptr_array_add (values, fetched[i]);
  return g_steal_pointer (&values);
}
