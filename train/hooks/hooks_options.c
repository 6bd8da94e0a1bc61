// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/fields_private.h"
#include "train/hooks/hooks.h"

/* What other languages need in place of structs and arrays. */

MUSTER_DEFINE_OPTIONS (MusterCheckpointSaverOptions, muster_checkpoint_saver_options)

MusterCheckpointSaverOptions *
muster_checkpoint_saver_options_new (const char *checkpoint_dir)
{
  g_return_val_if_fail (checkpoint_dir != NULL, NULL);

  const MusterCheckpointSaverOptions options = {.checkpoint_dir = checkpoint_dir};
  return muster_checkpoint_saver_options_copy (&options);
}

/* --- steps and feeds --- */

MusterHook *
muster_final_ops_hook_new_for_builder (MusterStepBuilder *step)
{
  g_return_val_if_fail (step != NULL, NULL);

  const MusterStep built = muster_step_builder_step (step);
  return muster_final_ops_hook_new (&built);
}

typedef struct {
  MusterFeedListFunc func;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
  guint n_tensors;
} FeedList;

static void
feed_list_free (gpointer data)
{
  FeedList *self = data;
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self);
}

static gboolean
feed_list (MusterTensor **feeds, gint64 deadline_us, GCancellable *cancellable, gpointer data,
           GError **error)
{
  FeedList *self = data;
  GError *failure = NULL;
  g_autoptr (GPtrArray) made = self->func (deadline_us, cancellable, self->user_data, &failure);
  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  if (made != NULL) /* the tensors are ours, whether the array would free them or not */
    g_ptr_array_set_free_func (made, (GDestroyNotify)muster_tensor_unref);
  if (made == NULL || made->len != self->n_tensors)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the feed function returned %u tensors; the hook feeds %u",
                        made != NULL ? made->len : 0, self->n_tensors);
  for (guint i = 0; i < made->len; i++)
    feeds[i] = made->pdata[i] != NULL ? muster_tensor_ref (made->pdata[i]) : NULL;
  return TRUE;
}

MusterHook *
muster_feed_list_hook_new (const char *const *tensors, MusterFeedListFunc func, gpointer user_data,
                           GDestroyNotify destroy)
{
  g_return_val_if_fail (tensors != NULL && func != NULL, NULL);

  FeedList *self = g_new (FeedList, 1);
  *self = (FeedList){func, user_data, destroy, g_strv_length ((char **)tensors)};
  return muster_feed_func_hook_new (tensors, feed_list, self, feed_list_free);
}
