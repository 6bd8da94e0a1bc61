// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"

#include "base/error.h"

#include <math.h>

#define MOST_FEEDS 16

static gint64
scalar_int (const MusterTensor *tensor)
{
  if (muster_tensor_n_elements (tensor) != 1)
    return -1;
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_INT64:
    return *(const gint64 *)muster_tensor_data (tensor);
  case MUSTER_INT32:
    return *(const gint32 *)muster_tensor_data (tensor);
  default:
    return -1;
  }
}

static float
scalar_float (const MusterTensor *tensor)
{
  gboolean fits =
      muster_tensor_dtype (tensor) == MUSTER_FLOAT && muster_tensor_n_elements (tensor) == 1;
  return fits ? *(const float *)muster_tensor_data (tensor) : NAN;
}

gint64
muster_read_global_step (MusterSession *session, MusterScaffold *scaffold, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  const char *name = muster_scaffold_global_step (scaffold);
  if (name == NULL) {
    g_set_error (
        error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
        "the model has no global step: make one with tf.compat.v1.train.create_global_step ()");
    return -1;
  }
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, name, deadline_us, cancellable, error);
  if (value == NULL)
    return -1;
  gint64 step = scalar_int (value);
  if (step < 0)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the global step '%s' is no integer scalar", name);
  return step;
}

/* One step of the loop: a batch in; the global step and the loss out. */
static gboolean
run_step (MusterSession *session, const char *train_op, const char *global_step,
          const MusterTraining *training, gint64 *step, float *loss, GCancellable *cancellable,
          GError **error)
{
  MusterTensor *batch[MOST_FEEDS] = {NULL};
  MusterFeed feeds[MOST_FEEDS];
  muster_batches_next (training->batches, batch);
  for (gsize i = 0; i < training->n_feeds; i++)
    feeds[i] = (MusterFeed){.name = training->feeds[i], .tensor = batch[i]};
  const char *fetches[] = {global_step, training->loss};
  MusterStep what = {.feeds = feeds,
                     .n_feeds = training->n_feeds,
                     .fetches = fetches,
                     .n_fetches = training->loss != NULL ? 2 : 1,
                     .targets = &train_op,
                     .n_targets = 1,
                     .deadline_us = MUSTER_WAIT_FOREVER};
  MusterTensor *fetched[2] = {NULL, NULL};
  gboolean ok = muster_session_run (session, &what, fetched, NULL, cancellable, error);
  for (gsize i = 0; i < training->n_feeds; i++)
    muster_tensor_unref (batch[i]);
  if (!ok)
    return FALSE;
  *step = scalar_int (fetched[0]);
  *loss = fetched[1] != NULL ? scalar_float (fetched[1]) : NAN;
  muster_tensor_unref (fetched[0]);
  muster_tensor_unref (fetched[1]);
  return TRUE;
}

static gboolean
save (MusterSession *session, const MusterTraining *training, gint64 step,
      GCancellable *cancellable, GError **error)
{
  g_autofree char *prefix = muster_saver_save (training->saver, session, training->checkpoint_dir,
                                               step, MUSTER_WAIT_FOREVER, cancellable, error);
  if (prefix == NULL)
    return FALSE;
  if (training->saved != NULL)
    training->saved (prefix, step, training->user_data);
  return TRUE;
}

gboolean
muster_train (MusterSession *session, MusterScaffold *scaffold, const MusterTraining *training,
              gint64 *step, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (training->n_feeds <= MOST_FEEDS, FALSE);
  const char *train_op = muster_scaffold_train_op (scaffold);
  if (train_op == NULL) {
    g_set_error (
        error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
        "the meta graph has no train op: add it to the collection 'train_op' before exporting");
    return FALSE;
  }
  gint64 now = muster_read_global_step (session, scaffold, MUSTER_WAIT_FOREVER, cancellable, error);
  if (now < 0)
    return FALSE;
  gint64 saved_at = now;
  const char *global_step = muster_scaffold_global_step (scaffold);
  gboolean go_on = TRUE;
  while (go_on && now < training->until_step) {
    float loss = NAN;
    /* The step is read beside the update, before or after it; another task may have stepped too: it
     * is a count, not an id. */
    if (!run_step (session, train_op, global_step, training, &now, &loss, cancellable, error))
      return FALSE;
    if (training->progress != NULL)
      go_on = training->progress (now, loss, training->user_data);
    if (training->saver != NULL && training->save_every_steps > 0 &&
        now >= saved_at + training->save_every_steps) {
      if (!save (session, training, now, cancellable, error))
        return FALSE;
      saved_at = now;
    }
  }
  if (training->saver != NULL && now != saved_at &&
      !save (session, training, now, cancellable, error))
    return FALSE;
  if (step != NULL)
    *step = now;
  return TRUE;
}
