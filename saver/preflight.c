// SPDX-License-Identifier: Apache-2.0
#include "saver/compatibility_private.h"

#include "base/require.h"

gboolean
muster_match_check (const MusterMatch *self, GError **error)
{
  const MusterCheckpointFit *fit = &self->fit;

  if (fit->n_faults == 0)
    return TRUE;
  g_autofree char *faults = muster_checkpoint_fit_faults_to_text (fit);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "'%s' does not fit the graph: %u of %u variables%s%s",
               muster_bundle_reader_prefix (self->reader), fit->n_faults, fit->n_wanted, faults,
               fit->object_based
                   ? "\n  it is an object-based checkpoint of TensorFlow 2: the graph's names "
                     "are looked for among the variables' own"
                   : "");

  return FALSE;
}

gboolean
muster_match_judge (const MusterMatch *self, GError *failure, GError **error)
{
  if (muster_error_to_wire (failure) != MUSTER_ERROR_NOT_FOUND) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "'%s' is damaged: %s",
               muster_bundle_reader_prefix (self->reader), failure->message);
  g_error_free (failure);

  return FALSE;
}

gboolean
muster_match_verify (const MusterMatch *self, const MusterRestoreOptions *options,
                     GCancellable *cancellable, GError **error)
{
  GError *failure = NULL;

  return muster_bundle_reader_verify (self->reader, options->progress, options->user_data,
                                      cancellable, &failure) ||
         muster_match_judge (self, failure, error);
}

gboolean
muster_saver_preflight (MusterSaver *self, const char *prefix, GCancellable *cancellable,
                        GError **error)
{
  muster_require (error, FALSE, self, prefix);

  static const MusterRestoreOptions plain;
  g_auto (MusterMatch) match = {0};

  return self->is_empty ||
         (muster_storage_check_path (self->storage, "checkpoint", prefix, error) &&
          muster_match_make (&match, self, prefix, &plain, error) &&
          muster_match_check (&match, error) &&
          muster_match_verify (&match, &plain, cancellable, error));
}
