// SPDX-License-Identifier: Apache-2.0
#include "base/background_private.h"
#include "saver/saver.h"

/* --- save --- */

typedef struct {
  MusterBackground parent;
  MusterSaver *self;
  MusterSession *session; /* (owned) (nullable) */
  char *directory;        /* (owned) (nullable) */
  gint64 step;
  gint64 deadline_us;
  char *prefix; /* (owned) (nullable) */
} Save;

static void
save (gpointer data, GCancellable *cancellable, GError **error)
{
  Save *call = data;
  call->prefix = muster_saver_save (call->self, call->session, call->directory, call->step,
                                    call->deadline_us, cancellable, error);
}

static void
clear_save (gpointer data)
{
  Save *call = data;
  g_clear_object (&call->session);
  g_free (call->directory);
  g_free (call->prefix);
}

static const MusterVerb saving = {"muster-save", save, clear_save};

void
muster_saver_save_async (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 step, gint64 deadline_us, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  Save *call = g_new0 (Save, 1);
  call->self = self;
  g_set_object (&call->session, session);
  call->directory = g_strdup (directory);
  call->step = step;
  call->deadline_us = deadline_us;
  muster_background_start (&saving, self, call, cancellable, callback, user_data);
}

char *
muster_saver_save_finish (MusterSaver *self, GAsyncResult *result, GError **error)
{
  muster_require (error, NULL, self, result);
  Save *call = muster_background_call (&saving, self, result, error);
  if (call == NULL || !muster_background_finish (call, result, error))
    return NULL;
  return g_steal_pointer (&call->prefix);
}

/* --- restore --- */

typedef struct {
  MusterBackground parent;
  MusterSaver *self;
  MusterSession *session;        /* (owned) (nullable) */
  MusterRestoreOptions *options; /* (owned) (nullable) */
  gint64 deadline_us;
  MusterRestored restored;
} Restore;

static void
restore (gpointer data, GCancellable *cancellable, GError **error)
{
  Restore *call = data;
  (void)muster_saver_restore (call->self, call->session, call->options, &call->restored,
                              call->deadline_us, cancellable, error);
}

static void
clear_restore (gpointer data)
{
  Restore *call = data;
  g_clear_object (&call->session);
  if (call->options != NULL)
    g_boxed_free (MUSTER_TYPE_RESTORE_OPTIONS, call->options);
  muster_restored_clear (&call->restored);
}

static const MusterVerb restoring = {"muster-restore", restore, clear_restore};

void
muster_saver_restore_async (MusterSaver *self, MusterSession *session,
                            const MusterRestoreOptions *options, gint64 deadline_us,
                            GCancellable *cancellable, GAsyncReadyCallback callback,
                            gpointer user_data)
{
  Restore *call = g_new0 (Restore, 1);
  call->self = self;
  g_set_object (&call->session, session);
  call->options = options != NULL ? g_boxed_copy (MUSTER_TYPE_RESTORE_OPTIONS, options) : NULL;
  call->deadline_us = deadline_us;
  muster_background_start (&restoring, self, call, cancellable, callback, user_data);
}

gboolean
muster_saver_restore_finish (MusterSaver *self, GAsyncResult *result, MusterRestored *restored,
                             GError **error)
{
  muster_require (error, FALSE, self, result);
  Restore *call = muster_background_call (&restoring, self, result, error);
  if (call == NULL || !muster_background_finish (call, result, error))
    return FALSE;

  if (restored != NULL) {
    *restored = call->restored;
    call->restored = (MusterRestored){0};
  }
  return TRUE;
}
