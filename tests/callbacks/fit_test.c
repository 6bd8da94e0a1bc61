// SPDX-License-Identifier: Apache-2.0
#include "callbacks/fit.h"

#include "tests/gtest_shim.h"

/* Trains for two batches; then the training is cancelled. */
static gboolean
train_two (const MusterFitPosition *at, gint64 n G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  if (at->batch == 1)
    g_cancellable_cancel (data);
  return TRUE;
}

static void
note_failure (const GError *failure, gpointer data)
{
  *(GError **)data = g_error_copy (failure);
}

MUSTER_TEST (Fit, ends_between_two_batches_when_it_is_cancelled)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL, heard = NULL;
  const MusterFitCallback callback = {.train_failed = note_failure, .user_data = &heard};
  const MusterFit fit = {.train = train_two,
                         .user_data = cancellable,
                         .n_epochs = 3,
                         .n_batches = 5,
                         .start = {1, 0},
                         .callbacks = &callback,
                         .n_callbacks = 1};
  MusterFitPosition reached = {0, 0};
  MUSTER_EXPECT_FALSE (muster_fit (&fit, &reached, MUSTER_WAIT_FOREVER, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_ERROR (heard, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (reached.epoch, 1);
  MUSTER_EXPECT_EQ (reached.batch, 2);
}
