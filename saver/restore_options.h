// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Options of a restore. */

/* Reports the progress in bytes. Called from any thread, one call at a time; should return quickly.
 */
typedef void (*MusterRestoreProgress) (guint64 done, guint64 total, gpointer user_data);

typedef struct {
  /* One of the two. */
  const char *prefix;    /* (nullable) this very checkpoint */
  const char *directory; /* (nullable) its newest checkpoint that is whole */

  /* What fits. Where any of these asks for more than the graph's own restore op does, the chief
   * reads the tensors and feeds them in its place. */
  gboolean allow_missing;     /* every global variable that the checkpoint gives no value runs its
                                 own initializer, also one that has a value on the master */
  gboolean refuse_unexpected; /* a tensor that the graph doesn't restore is a fault */
  gboolean reshape;           /* the same number of elements suffices */
  GHashTable *names; /* (nullable) variable's name in the graph -> name in the checkpoint */

  /* Which checkpoint of a directory. */
  gboolean fall_back_off;      /* use only the latest */
  gboolean fall_back_to_files; /* if the state file can't be read, is missing or names only missing
                                  checkpoints, search the directory's files */
  gboolean keep_damaged;       /* skip a damaged one without quarantining it */
  /* (nullable) NULL-terminated names in the checkpoint; the caller's. A checkpoint that doesn't fit
   * the graph and lacks one of these was saved without them: it is skipped, not quarantined. */
  const char *const *needs;
  /* Quarantine the checkpoint if three consecutive runs restored it and died
   * (muster_saver_mark_good ()). */
  gboolean count_deaths;

  MusterRestoreProgress progress; /* (nullable) */
  gpointer user_data;
} MusterRestoreOptions;

/* For languages that can't set the names in a struct, and for who keeps options beyond a call:
 * options that own what they point to, but for user_data. */
#define MUSTER_TYPE_RESTORE_OPTIONS (muster_restore_options_get_type ())
GType muster_restore_options_get_type (void);

/**
 * muster_restore_options_new:
 * @prefix: (nullable): this very checkpoint
 * @directory: (nullable): or the newest of this directory
 *
 * Returns: (transfer full): options
 */
MusterRestoreOptions *muster_restore_options_new (const char *prefix, const char *directory);
MusterRestoreOptions *muster_restore_options_copy (const MusterRestoreOptions *self);
void muster_restore_options_free (MusterRestoreOptions *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRestoreOptions, muster_restore_options_free)

/* What was restored. A plain struct; clear it. */
typedef struct {
  char *prefix; /* (nullable) NULL: there was nothing to restore */
  guint n_tensors;
  guint64 bytes;
  char **initialised; /* (nullable) variables that the checkpoint lacks */
  char *warning;      /* (nullable) what is unusual about it: lines */
  char *passed_over;  /* (nullable) newer checkpoints that weren't whole, and why: lines */
} MusterRestored;

/**
 * muster_restored_clear: (skip)
 */
void muster_restored_clear (MusterRestored *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestored, muster_restored_clear)

G_END_DECLS
