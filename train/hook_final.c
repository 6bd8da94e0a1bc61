// SPDX-License-Identifier: Apache-2.0
#include "train/hooks_private.h"

#define FINAL_TYPE_HOOK (final_hook_get_type ())
G_DECLARE_FINAL_TYPE (FinalHook, final_hook, FINAL, HOOK, MusterHook)

struct _FinalHook {
  MusterHook parent;
  char **fetches;    /* (owned) */
  char **targets;    /* (owned) */
  GArray *feeds;     /* (owned) (element-type MusterFeed) names and tensors owned */
  GPtrArray *values; /* (owned) (element-type MusterTensor) empty until the end */
};

G_DEFINE_FINAL_TYPE (FinalHook, final_hook, MUSTER_TYPE_HOOK)

static gboolean
need_nodes (char **names, MusterScaffold *scaffold, GError **error)
{
  for (char **name = names; *name; name++)
    if (!muster_hook_need_node (scaffold, *name, error))
      return FALSE;

  return TRUE;
}

static gboolean
final_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  FinalHook *self = FINAL_HOOK (hook);

  return need_nodes (self->fetches, scaffold, error) && need_nodes (self->targets, scaffold, error);
}

static gboolean
final_end (MusterHook *hook, MusterSession *session, GError **error)
{
  FinalHook *self = FINAL_HOOK (hook);
  MusterStep step = {.feeds = (const MusterFeed *)(gpointer)self->feeds->data,
                     .n_feeds = self->feeds->len,
                     .fetches = (const char *const *)self->fetches,
                     .n_fetches = g_strv_length (self->fetches),
                     .targets = (const char *const *)self->targets,
                     .n_targets = g_strv_length (self->targets)};
  g_autoptr (GError) failure = NULL;

  g_ptr_array_set_size (self->values, (gint)step.n_fetches);
  if (muster_session_run (session, &step, (MusterTensor **)self->values->pdata, NULL, NULL,
                          &failure))
    return TRUE;
  g_ptr_array_set_size (self->values, 0);
  if (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
    g_message ("An OutOfRangeError in the final ops: they depend on the input, which has ended.");
  g_propagate_error (error, g_steal_pointer (&failure));

  return FALSE;
}

static void
feed_clear (gpointer data)
{
  MusterFeed *feed = data;

  g_free ((char *)feed->name);
  muster_tensor_unref (feed->tensor);
}

static void
final_finalize (GObject *object)
{
  FinalHook *self = FINAL_HOOK (object);

  g_strfreev (self->fetches);
  g_strfreev (self->targets);
  g_array_unref (self->feeds);
  g_ptr_array_unref (self->values);
  G_OBJECT_CLASS (final_hook_parent_class)->finalize (object);
}

static void
final_hook_class_init (FinalHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = final_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = final_begin;
  MUSTER_HOOK_CLASS (klass)->end = final_end;
}

static void
final_hook_init (FinalHook *self)
{
  self->feeds = g_array_new (FALSE, FALSE, sizeof (MusterFeed));
  g_array_set_clear_func (self->feeds, feed_clear);
  self->values = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
}

static char **
copy_names (const char *const *names, gsize n)
{
  char **copy = g_new0 (char *, n + 1);

  for (gsize i = 0; i < n; i++)
    copy[i] = g_strdup (names[i]);

  return copy;
}

MusterHook *
muster_final_ops_hook_new (const MusterStep *step)
{
  FinalHook *self = g_object_new (FINAL_TYPE_HOOK, NULL);

  self->fetches = copy_names (step->fetches, step->n_fetches);
  self->targets = copy_names (step->targets, step->n_targets);
  for (gsize i = 0; i < step->n_feeds; i++) {
    MusterFeed feed = {g_strdup (step->feeds[i].name), muster_tensor_ref (step->feeds[i].tensor)};
    g_array_append_val (self->feeds, feed);
  }

  return MUSTER_HOOK (self);
}

MusterTensor *
muster_final_ops_hook_value (MusterHook *hook, gsize fetched)
{
  FinalHook *self = FINAL_HOOK (hook);

  return fetched < self->values->len ? self->values->pdata[fetched] : NULL;
}
