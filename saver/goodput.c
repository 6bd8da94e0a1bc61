// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"
#include "saver/saver_private.h"
#include "saver/tiers/tier_choose_private.h"

/* A fast tier that doesn't answer in this time is skipped. */
#define LOOK_US (2 * MUSTER_SECOND)

void
muster_saver_set_goodput (MusterSaver *self, const MusterGoodput *goodput)
{
  g_return_if_fail (MUSTER_IS_SAVER (self) && goodput != NULL);

  for (guint i = 0; i < self->tiers->n; i++)
    muster_checkpoint_directory_set_goodput (&self->tiers->fast[i].checkpoints, goodput);
  muster_checkpoint_directory_set_goodput (&self->directory, goodput);
}

/* Takes a directory's account if it is later and of the same job (began_us 0: of any job). */
static void
take_later (MusterSaver *self, const MusterCheckpointRecord *record, MusterGoodput *goodput)
{
  if (record == NULL || record->goodput.began_us == 0)
    return;
  const double age = muster_checkpoint_directory_now (&self->directory) - record->goodput_time;
  const gint64 age_us = age > 0 && age < 1e12 ? (gint64)(age * MUSTER_SECOND) : 0;
  if (goodput->began_us != 0 &&
      (goodput->began_us != record->goodput.began_us || goodput->age_us <= age_us))
    return;
  *goodput = record->goodput;
  goodput->age_us = age_us;
}

static void
look_in_fast_tiers (MusterSaver *self, MusterStorage *storage, MusterGoodput *goodput)
{
  const MusterTiers *tiers = self->tiers;
  const MusterTierLook look = {.storage = storage,
                               .base_name = self->directory.base_name,
                               .latest_filename = self->directory.latest_filename};
  const char *directories[MUSTER_MAX_FAST_TIERS];
  if (tiers->n == 0)
    return;
  for (guint i = 0; i < tiers->n; i++)
    directories[i] = tiers->fast[i].rule.directory;
  g_autoptr (GPtrArray) listings = muster_tier_list_all (&look, directories, tiers->n, LOOK_US);
  for (guint i = 0; i < listings->len; i++)
    take_later (self, ((const MusterTierListing *)listings->pdata[i])->record, goodput);
}

/* No error is reported: a job resumes without the account, too. */
gboolean
muster_saver_read_goodput (MusterSaver *self, const char *directory, MusterGoodput *goodput)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && directory != NULL && goodput != NULL, FALSE);

  MusterGoodput found = MUSTER_GOODPUT_INIT;
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  take_later (self, record, &found);
  look_in_fast_tiers (self, storage, &found);
  if (found.began_us == 0)
    return FALSE;
  *goodput = found;
  return TRUE;
}

gboolean
muster_saver_write_goodput (MusterSaver *self, const char *directory, gint64 deadline_us,
                            GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, directory);

  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (&self->directory);
  return muster_checkpoint_directory_write_goodput (&self->directory, lease, directory, deadline_us,
                                                    cancellable, error);
}
