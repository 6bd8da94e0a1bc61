// SPDX-License-Identifier: Apache-2.0
/* A loop over epochs and batches with callbacks, and how often a backup is saved. */
#include "callbacks/fit.h"

#include "base/check_time_private.h"
#include "base/require_private.h"

/* --- when --- */

static gboolean
refuse_freq (const char *got, GError **error)
{
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "Invalid value for argument `save_freq`. Received: '%s'. Expected 'epoch', 'never' or "
      "a number of batches, 1 or more",
      got);
}

gboolean
muster_save_freq_check (const MusterSaveFreq *freq, GError **error)
{
  muster_require (error, FALSE, freq);

  if (freq->kind != MUSTER_SAVE_EVERY_N || freq->n >= 1)
    return TRUE;
  g_autofree char *got = g_strdup_printf ("%" G_GINT64_FORMAT, freq->n);
  return refuse_freq (got, error);
}

gboolean
muster_save_freq_parse (const char *text, MusterSaveFreq *freq, GError **error)
{
  muster_require (error, FALSE, text, freq);

  gint64 n = 0;
  if (g_str_equal (text, "epoch"))
    *freq = (MusterSaveFreq){.kind = MUSTER_SAVE_EPOCH};
  else if (g_str_equal (text, "never"))
    *freq = (MusterSaveFreq){.kind = MUSTER_SAVE_NEVER};
  else if (g_ascii_string_to_signed (text, 10, 1, G_MAXINT64, &n, NULL))
    *freq = (MusterSaveFreq){.kind = MUSTER_SAVE_EVERY_N, .n = n};
  else
    return refuse_freq (text, error);
  return TRUE;
}

/* --- the loop --- */

MusterFitPosition
muster_fit_position_after (gint64 epoch, gint64 batch, gint64 n_batches)
{
  if (n_batches > 0 && batch + 1 >= n_batches)
    return (MusterFitPosition){epoch + 1, 0};
  return (MusterFitPosition){epoch, batch + 1};
}

typedef enum { TRAIN_BEGIN, EPOCH_BEGIN, BATCH_END, EPOCH_END, TRAIN_END } Operation;

/* One call of muster_fit (). */
typedef struct {
  const MusterFit *fit;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Training;

static gboolean
call_one (const Training *self, const MusterFitCallback *one, Operation operation,
          MusterFitPosition *at, GError **error)
{
  const gint64 until_us = self->deadline_us;
  GCancellable *const end = self->cancellable;
  switch (operation) {
  case TRAIN_BEGIN:
    return one->train_begin == NULL ||
           one->train_begin (at, self->fit->n_batches, until_us, end, one->user_data, error);
  case EPOCH_BEGIN:
    return one->epoch_begin == NULL ||
           one->epoch_begin (at->epoch, until_us, end, one->user_data, error);
  case BATCH_END:
    return one->batch_end == NULL ||
           one->batch_end (at->epoch, at->batch, until_us, end, one->user_data, error);
  case EPOCH_END:
    return one->epoch_end == NULL ||
           one->epoch_end (at->epoch, until_us, end, one->user_data, error);
  case TRAIN_END:
  default:
    return one->train_end == NULL || one->train_end (until_us, end, one->user_data, error);
  }
}

/* at: the start of training, the epoch, or the last batch. */
static gboolean
call_all (const Training *self, Operation operation, MusterFitPosition *at, GError **error)
{
  for (gsize i = 0; i < self->fit->n_callbacks; i++)
    if (!call_one (self, &self->fit->callbacks[i], operation, at, error))
      return FALSE;
  return TRUE;
}

static void
train_failed (const MusterFit *fit, const GError *failure)
{
  for (gsize i = 0; i < fit->n_callbacks; i++)
    if (fit->callbacks[i].train_failed != NULL)
      fit->callbacks[i].train_failed (failure, fit->callbacks[i].user_data);
}

static gboolean
check_time (const Training *self, const MusterFitPosition *at, GError **error)
{
  g_autofree char *what = g_strdup_printf (
      "Training from epoch %" G_GINT64_FORMAT ", batch %" G_GINT64_FORMAT, at->epoch, at->batch);
  return muster_check_time (what, self->deadline_us, self->cancellable, error);
}

/* *is_over: the epoch has no more batches. */
static gboolean
train_some (const Training *self, MusterFitPosition *at, gboolean *is_over, GError **error)
{
  const MusterFit *fit = self->fit;
  gint64 n = MAX (fit->batches_per_call, 1);
  GError *failure = NULL;
  if (!check_time (self, at, error))
    return FALSE;
  if (fit->n_batches > 0)
    n = MIN (n, fit->n_batches - at->batch);
  if (!fit->train (at, n, self->deadline_us, self->cancellable, fit->user_data, &failure)) {
    if (failure == NULL)
      failure = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_INTERNAL,
                                     "the train function failed without an error");
    *is_over = fit->n_batches == 0 && muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE);
    if (!*is_over)
      g_propagate_error (error, failure);
    else
      g_error_free (failure);
    return *is_over;
  }
  at->batch += n;
  MusterFitPosition ended = {at->epoch, at->batch - 1};
  return call_all (self, BATCH_END, &ended, error);
}

static gboolean
train_epoch (const Training *self, MusterFitPosition *at, GError **error)
{
  const gint64 n_batches = self->fit->n_batches;
  gboolean is_over = FALSE;
  MusterFitPosition epoch = {at->epoch, 0};
  if (!call_all (self, EPOCH_BEGIN, &epoch, error))
    return FALSE;
  while (!is_over && (n_batches == 0 || at->batch < n_batches))
    if (!train_some (self, at, &is_over, error))
      return FALSE;
  *at = (MusterFitPosition){epoch.epoch + 1, 0};
  return call_all (self, EPOCH_END, &epoch, error);
}

static gboolean
train_all (const Training *self, MusterFitPosition *at, GError **error)
{
  const MusterFit *fit = self->fit;
  if (!check_time (self, at, error) || !call_all (self, TRAIN_BEGIN, at, error))
    return FALSE;
  if (fit->n_batches > 0 && at->batch >= fit->n_batches)
    *at = (MusterFitPosition){at->epoch + 1, 0};
  while (at->epoch < fit->n_epochs)
    if (!train_epoch (self, at, error))
      return FALSE;
  return call_all (self, TRAIN_END, at, error);
}

gboolean
muster_fit (const MusterFit *fit, MusterFitPosition *reached, gint64 deadline_us,
            GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, fit);
  muster_require (error, FALSE, fit->train);
  muster_require_array (error, FALSE, fit->callbacks, fit->n_callbacks);

  const Training training = {fit, deadline_us, cancellable};
  MusterFitPosition at = fit->start;
  GError *failure = NULL;

  if (fit->n_epochs < 0 || fit->n_batches < 0 || fit->batches_per_call < 0 || at.epoch < 0 ||
      at.batch < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "epochs and batches are counted from 0");
  }
  gboolean is_done = train_all (&training, &at, &failure);
  if (reached != NULL)
    *reached = at;
  if (is_done)
    return TRUE;
  train_failed (fit, failure);
  g_propagate_error (error, failure);
  return FALSE;
}
