// SPDX-License-Identifier: Apache-2.0
#include "saver/background.h"

#include "base/background.h"

#define SAVER(X)      X (OBJECT, MusterSaver)
#define SESSION(X)    X (KEPT, MusterSession *, session, g_object_ref, g_object_unref)
#define TEXT(X, name) X (KEPT, const char *, name, g_strdup, MUSTER_FREE_STRING)
#define DEADLINE(X)   X (VALUE, gint64, deadline_us)

static void
free_options (const MusterRestoreOptions *options)
{
  muster_restore_options_free ((MusterRestoreOptions *)options);
}

#define SAVE(X) SAVER (X) SESSION (X) TEXT (X, directory) X (VALUE, gint64, step) DEADLINE (X)
MUSTER_ASYNC (muster_saver_save, muster_saver_save, "muster-save", char *, MUSTER_CLEAR_STRING,
              SAVE)

#define RESTORE(X)                                                                                 \
  SAVER (X)                                                                                        \
  SESSION (X)                                                                                      \
  X (KEPT, const MusterRestoreOptions *, options, muster_restore_options_copy, free_options)       \
  X (OUT, MusterRestored, restored, muster_restored_clear)                                         \
  DEADLINE (X)
MUSTER_ASYNC (muster_saver_restore, muster_saver_restore, "muster-restore", gboolean, MUSTER_PLAIN,
              RESTORE)

#define CHECK(X) SAVER (X) TEXT (X, prefix)
MUSTER_ASYNC (muster_saver_check_compatible, muster_saver_check_compatible, "muster-check",
              gboolean, MUSTER_PLAIN, CHECK)

#define CLAIM(X) SAVER (X) TEXT (X, directory) DEADLINE (X)
MUSTER_ASYNC (muster_saver_claim_directory, muster_saver_claim_directory, "muster-claim", gboolean,
              MUSTER_PLAIN, CLAIM)

#define BEGIN(X)                                                                                   \
  SAVER (X)                                                                                        \
  TEXT (X, directory)                                                                              \
  TEXT (X, resumed_prefix)                                                                         \
  X (VALUE, gint64, resumed_step)                                                                  \
  DEADLINE (X)
MUSTER_ASYNC (muster_saver_begin_run, muster_saver_begin_run, "muster-begin", gboolean,
              MUSTER_PLAIN, BEGIN)
