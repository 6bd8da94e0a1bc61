// SPDX-License-Identifier: Apache-2.0
#include "saver/async/background.h"

#include "base/background.h"

#define SAVER(X)      X (OBJECT, MusterAsyncSaver)
#define MANAGER(X)    X (OBJECT, MusterCheckpointManager)
#define SESSION(X)    X (KEPT, MusterSession *, session, g_object_ref, g_object_unref)
#define TEXT(X, name) X (KEPT, const char *, name, g_strdup, MUSTER_FREE_STRING)
#define DEADLINE(X)   X (VALUE, gint64, deadline_us)

static void
clear_ticket (MusterSaveTicket **ticket)
{
  g_clear_pointer (ticket, muster_save_ticket_unref);
}

static void
free_options (const MusterRestoreOptions *options)
{
  muster_restore_options_free ((MusterRestoreOptions *)options);
}

#define WAIT(X)                                                                                    \
  X (SELF, MusterSaveTicket, muster_save_ticket_ref, muster_save_ticket_unref)                     \
  X (VALUE, MusterSaveState, state)                                                                \
  DEADLINE (X)
MUSTER_ASYNC (muster_save_ticket_wait, muster_save_ticket_wait, "muster-wait", gboolean,
              MUSTER_PLAIN, WAIT)

/* --- async savers --- */

#define BY_DEADLINE(X) SAVER (X) DEADLINE (X)
MUSTER_ASYNC (muster_async_saver_prepare, muster_async_saver_prepare, "muster-prepare", gboolean,
              MUSTER_PLAIN, BY_DEADLINE)
MUSTER_ASYNC (muster_async_saver_sync, muster_async_saver_sync, "muster-sync", gboolean,
              MUSTER_PLAIN, BY_DEADLINE)
MUSTER_ASYNC (muster_async_saver_sync_saves, muster_async_saver_sync_saves, "muster-sync", gboolean,
              MUSTER_PLAIN, BY_DEADLINE)
MUSTER_ASYNC (muster_async_saver_shutdown, muster_async_saver_shutdown, "muster-shutdown", gboolean,
              MUSTER_PLAIN, BY_DEADLINE)

#define SAVE(X) SAVER (X) TEXT (X, directory) X (VALUE, gint64, step) DEADLINE (X)
MUSTER_ASYNC (muster_async_saver_save, muster_async_saver_save, "muster-save", MusterSaveTicket *,
              clear_ticket, SAVE)

#define SAVE_IN_TIERS(X)                                                                           \
  SAVER (X)                                                                                        \
  TEXT (X, directory)                                                                              \
  X (VALUE, gint64, step)                                                                          \
  X (VALUE, MusterTierSet, due)                                                                    \
  DEADLINE (X)
MUSTER_ASYNC (muster_async_saver_save_in_tiers, muster_async_saver_save_in_tiers, "muster-save",
              MusterSaveTicket *, clear_ticket, SAVE_IN_TIERS)

#define BY_PREFIX(X) SAVER (X) TEXT (X, prefix) DEADLINE (X)
MUSTER_ASYNC (muster_async_saver_write, muster_async_saver_write, "muster-save", MusterSaveTicket *,
              clear_ticket, BY_PREFIX)
MUSTER_ASYNC (muster_async_saver_read, muster_async_saver_read, "muster-restore", gboolean,
              MUSTER_PLAIN, BY_PREFIX)

#define RESTORE(X)                                                                                 \
  SAVER (X)                                                                                        \
  X (KEPT, const MusterRestoreOptions *, options, muster_restore_options_copy, free_options)       \
  X (OUT, MusterRestored, restored, muster_restored_clear)                                         \
  DEADLINE (X)
MUSTER_ASYNC (muster_async_saver_restore, muster_async_saver_restore, "muster-restore", gboolean,
              MUSTER_PLAIN, RESTORE)

/* --- checkpoint managers --- */

#define MANAGER_SAVE(X)                                                                            \
  MANAGER (X)                                                                                      \
  SESSION (X)                                                                                      \
  X (VALUE, gint64, number)                                                                        \
  X (VALUE, gboolean, check_interval)                                                              \
  X (OUT, MusterSaved, saved, muster_saved_clear)                                                  \
  DEADLINE (X)
MUSTER_ASYNC (muster_checkpoint_manager_save, muster_checkpoint_manager_save, "muster-save",
              gboolean, MUSTER_PLAIN, MANAGER_SAVE)

#define MANAGER_SYNC(X) MANAGER (X) DEADLINE (X)
MUSTER_ASYNC (muster_checkpoint_manager_sync, muster_checkpoint_manager_sync, "muster-sync",
              gboolean, MUSTER_PLAIN, MANAGER_SYNC)

#define MANAGER_RESTORE(X)                                                                         \
  MANAGER (X)                                                                                      \
  SESSION (X)                                                                                      \
  X (OUT, char *, restored, MUSTER_CLEAR_STRING)                                                   \
  DEADLINE (X)
MUSTER_ASYNC (muster_checkpoint_manager_restore_or_initialize,
              muster_checkpoint_manager_restore_or_initialize, "muster-restore", gboolean,
              MUSTER_PLAIN, MANAGER_RESTORE)
