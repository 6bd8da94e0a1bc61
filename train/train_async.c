// SPDX-License-Identifier: Apache-2.0
#include "base/background_private.h"
#include "train/train.h"

typedef struct {
  MusterBackground parent;
  MusterTraining *training; /* (owned) (nullable) */
  MusterTrained trained;
} Train;

static const MusterTrained NOTHING_TRAINED = {
    .step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1};

static void
train (gpointer data, GCancellable *cancellable, GError **error)
{
  Train *call = data;
  (void)muster_train (call->training, &call->trained, cancellable, error);
}

static void
clear_train (gpointer data)
{
  Train *call = data;
  if (call->training != NULL)
    g_boxed_free (MUSTER_TYPE_TRAINING, call->training);
  muster_trained_clear (&call->trained);
}

static const MusterVerb training_verb = {"muster-train", train, clear_train};

void
muster_train_async (const MusterTraining *training, GCancellable *cancellable,
                    GAsyncReadyCallback callback, gpointer user_data)
{
  Train *call = g_new0 (Train, 1);
  call->training = training != NULL ? g_boxed_copy (MUSTER_TYPE_TRAINING, training) : NULL;
  call->trained = NOTHING_TRAINED;
  muster_background_start (&training_verb, NULL, call, cancellable, callback, user_data);
}

gboolean
muster_train_finish (GAsyncResult *result, MusterTrained *trained, GError **error)
{
  if (trained != NULL)
    *trained = NOTHING_TRAINED;
  muster_require (error, FALSE, result);
  Train *call = muster_background_call (&training_verb, NULL, result, error);
  if (call == NULL)
    return FALSE;

  if (trained != NULL) {
    *trained = call->trained;
    call->trained = NOTHING_TRAINED;
  }
  return muster_background_finish (call, result, error);
}
