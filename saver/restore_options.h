// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Options of a restore. */

/* Reports the progress in bytes. Called from any thread, one call at a time; should return quickly.
 */
typedef void (*MusterRestoreProgress) (guint64 done, guint64 total, gpointer user_data);

typedef struct {
  /* Set one of the two. */
  const char *prefix;    /* (nullable) restores exactly this checkpoint */
  const char *directory; /* (nullable) restores its newest complete checkpoint */

  /* Which checkpoints are compatible. If these allow more than the graph's own restore op does, the
   * chief reads the tensors and feeds them instead. */
  gboolean allow_missing; /* a global variable that the checkpoint lacks runs its initializer, even
                             if it has a value on the master */
  gboolean refuse_unexpected; /* a tensor that the graph doesn't restore is an error */
  gboolean reshape;           /* shapes need only have the same number of elements */
  GHashTable *names; /* (nullable) name of a variable in the graph -> its name in the checkpoint */

  /* Which checkpoint of the directory is used. */
  gboolean fall_back_off;      /* use only the latest */
  gboolean fall_back_to_files; /* if the state file can't be read, is missing or names only missing
                                  checkpoints, search the directory's files */
  gboolean keep_damaged;       /* skip a damaged one without quarantining it */
  /* (nullable) NULL-terminated names in the checkpoint; the caller's. A checkpoint that is
   * incompatible with the graph and lacks one of these was saved without them: it is skipped, not
   * quarantined. */
  const char *const *needs;
  /* Quarantine the checkpoint if three consecutive runs restored it and died
   * (muster_saver_mark_good ()). */
  gboolean count_deaths;

  MusterRestoreProgress progress; /* (nullable) */
  gpointer user_data;
} MusterRestoreOptions;

/* A copy that owns everything it points to except user_data, for language bindings and for callers
 * that keep options beyond a call. */
#define MUSTER_TYPE_RESTORE_OPTIONS (muster_restore_options_get_type ())
GType muster_restore_options_get_type (void);

/**
 * muster_restore_options_new:
 * @prefix: (nullable): the checkpoint to restore
 * @directory: (nullable): or the directory whose newest complete checkpoint is restored
 *
 * Returns: (transfer full): options
 */
MusterRestoreOptions *muster_restore_options_new (const char *prefix, const char *directory);
MusterRestoreOptions *muster_restore_options_copy (const MusterRestoreOptions *self);
void muster_restore_options_free (MusterRestoreOptions *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRestoreOptions, muster_restore_options_free)

/* What was restored. A plain struct; clear it. */
typedef struct {
  char *prefix; /* (nullable) NULL: there was no checkpoint to restore */
  guint n_tensors;
  guint64 bytes;
  char **initialised; /* (nullable) variables that were initialised because the checkpoint lacks
                         them */
  char *warning;      /* (nullable) warnings about the checkpoint, one per line */
  char *passed_over;  /* (nullable) newer checkpoints that were skipped and why, one per line */
} MusterRestored;

/**
 * muster_restored_clear: (skip)
 */
void muster_restored_clear (MusterRestored *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestored, muster_restored_clear)

G_END_DECLS
