// SPDX-License-Identifier: Apache-2.0
#include "tests/saver/model_life.h"

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/quarantine.h"
#include "engine/session/local_master.h"
#include "saver/restore.h"
#include "tests/gtest_shim.h"

#define TRAINED 9

static gint64
soon (void)
{
  return g_get_monotonic_time () + 60 * MUSTER_SECOND;
}

ModelLife
model_life_new (const MusterShardedModel *model, const MusterSaverOptions *options,
                MusterStorage *masters)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (model);
  ModelLife self = {
      .model = model,
      .storage = options->storage,
      .master = muster_local_master_new_with (masters != NULL ? masters : options->storage, 0),
      .saver = muster_saver_new (meta_graph, options, NULL)};
  self.session = muster_master_create_session (self.master, muster_meta_graph_graph (meta_graph),
                                               NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  return self;
}

void
model_life_claim (ModelLife *self)
{
  const MusterClaim claim = {.model = "digits", .take_over = TRUE};
  self->clock = muster_fake_clock_new ();
  self->judge = muster_fake_master_new (self->clock);
  muster_fake_master_set_announcing (self->judge);
  self->judged = muster_master_create_session (MUSTER_MASTER (self->judge), NULL, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, NULL);
  self->lease = muster_session_claim (self->judged, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_TRUE (self->lease != NULL);
  muster_saver_set_lease (self->saver, self->lease);
}

void
model_life_save_in_background (ModelLife *self)
{
  self->async = muster_async_saver_new (self->saver, self->session, MUSTER_SAVES_BLOCK, 0, NULL);
}

void
model_life_clear (ModelLife *self)
{
  g_clear_object (&self->async);
  g_clear_object (&self->lease);
  g_clear_object (&self->judged);
  g_clear_object (&self->judge);
  g_clear_object (&self->clock);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  g_clear_object (&self->saver);
}

static gboolean
save_beside (ModelLife *self, const char *directory, gint64 step, GError **error)
{
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save (self->async, directory, step, soon (), NULL, error);
  return ticket != NULL && muster_sharded_model_set (self->model, self->session, TRAINED, error) &&
         muster_async_saver_sync (self->async, soon (), NULL, error);
}

gboolean
model_life_save (ModelLife *self, guint8 value, const char *directory, gint64 step, GError **error)
{
  if (!muster_sharded_model_set (self->model, self->session, value, error))
    return FALSE;
  if (self->async != NULL)
    return save_beside (self, directory, step, error);
  g_autofree char *prefix =
      muster_saver_save (self->saver, self->session, directory, step, soon (), NULL, error);
  return prefix != NULL;
}

int
model_life_restore (ModelLife *self, const char *directory, GError **error)
{
  const MusterRestoreOptions latest = {.directory = directory};
  g_auto (MusterRestored) restored = {0};
  if (!muster_saver_restore (self->saver, self->session, &latest, &restored, soon (), NULL, error))
    return -1;
  return restored.prefix != NULL ? muster_sharded_model_get (self->session, error) : 0;
}

char *
model_life_fault (MusterStorage *storage, const char *prefix)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, &error);
  if (reader != NULL && muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error))
    return NULL;
  return g_strdup_printf ("'%s' is listed: %s", prefix, error->message);
}

char *
model_life_fault_of_listed (MusterStorage *storage, const char *directory)
{
  g_auto (GStrv) listed = muster_checkpoint_list (storage, directory, NULL);
  char *fault = NULL;
  for (char **prefix = listed; fault == NULL && prefix != NULL && *prefix != NULL; prefix++)
    fault = model_life_fault (storage, *prefix);
  return fault;
}
