// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "callbacks/backup.h"

/* Options on the heap, for other languages. */

MUSTER_DEFINE_OPTIONS (MusterBackupOptions, muster_backup_options)

MusterBackupOptions *
muster_backup_options_new (const char *backup_dir, MusterSessionProgram *program)
{
  g_return_val_if_fail (backup_dir != NULL && program != NULL, NULL);

  const MusterBackupOptions options = {.backup_dir = backup_dir, .session_program = program};
  return muster_backup_options_copy (&options);
}

void
muster_backup_options_set_save_freq (MusterBackupOptions *self, const MusterSaveFreq *save_freq)
{
  g_return_if_fail (self != NULL && save_freq != NULL);
  self->save_freq = *save_freq;
}

void
muster_backup_add_to (MusterBackup *self, MusterFit *fit)
{
  g_return_if_fail (self != NULL && fit != NULL);

  const MusterFitCallback callback = muster_backup_callback (self);
  (void)muster_backup_ref (self);
  muster_fit_add_callback (fit, &callback, (GDestroyNotify)muster_backup_free);
}

void
muster_backup_read_counters (MusterBackup *self, MusterBackupCounters *counters)
{
  g_return_if_fail (self != NULL && counters != NULL);
  *counters = muster_backup_counters (self);
}
