// SPDX-License-Identifier: Apache-2.0
/* A session's variables as a MusterProgram. */
#include "base/require_private.h"
#include "callbacks/backup.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/quarantine.h"

struct _MusterSessionProgram {
  gatomicrefcount refs;
  MusterSaver *saver;     /* (owned) */
  MusterSession *session; /* (owned) */
  MusterClock *clock;     /* (owned) (nullable) */
};

MusterSessionProgram *
muster_session_program_new (MusterMetaGraph *meta_graph, MusterSession *session,
                            MusterStorage *storage, MusterClock *clock, GError **error)
{
  muster_require (error, NULL, meta_graph, session);

  /* The backup decides what is kept. */
  MusterSaverOptions options = {.base_name = "latest",
                                .unlisted = TRUE,
                                .no_meta_graph = TRUE,
                                .storage = storage,
                                .clock = clock};
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &options, error);

  if (saver == NULL)
    return NULL;
  MusterSessionProgram *self = g_new0 (MusterSessionProgram, 1);
  g_atomic_ref_count_init (&self->refs);
  self->saver = g_steal_pointer (&saver);
  self->session = g_object_ref (session);
  self->clock = clock != NULL ? g_object_ref (clock) : NULL;
  return self;
}

G_DEFINE_BOXED_TYPE (MusterSessionProgram, muster_session_program, muster_session_program_ref,
                     muster_session_program_free)

MusterSessionProgram *
muster_session_program_ref (MusterSessionProgram *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_session_program_free (MusterSessionProgram *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->saver);
  g_object_unref (self->session);
  g_clear_object (&self->clock);
  g_free (self);
}

/* Checks that the new backup can be read before the previous one is removed. */
static gboolean
save (const char *prefix, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
      GError **error)
{
  MusterSessionProgram *self = user_data;
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autoptr (MusterStorage) storage = muster_storage_bound (muster_saver_storage (self->saver),
                                                            deadline_us, self->clock, cancellable);
  MusterCheckpointOverview overview;
  g_autofree char *saved =
      muster_saver_save (self->saver, self->session, directory, muster_checkpoint_step (prefix),
                         deadline_us, cancellable, error);
  return saved != NULL && muster_checkpoint_inspect (storage, saved, &overview, error);
}

static gboolean
restore (const char *prefix, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
         GError **error)
{
  MusterSessionProgram *self = user_data;
  return muster_saver_restore (self->saver, self->session,
                               &(MusterRestoreOptions){.prefix = prefix}, NULL, deadline_us,
                               cancellable, error);
}

MusterProgram
muster_session_program_operations (MusterSessionProgram *self)
{
  g_return_val_if_fail (self != NULL, (MusterProgram){0});
  return (MusterProgram){.save = save, .restore = restore, .user_data = self};
}
