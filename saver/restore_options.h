// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How a restore may differ from the plain one. */

/* How far it is, in bytes; on any thread, on one at a time, and short. */
typedef void (*MusterRestoreProgress) (guint64 done, guint64 total, gpointer user_data);

typedef struct {
  /* What fits. Where any of these asks for more than the graph's own restore op does, the chief
   * reads the tensors and feeds them in its place. */
  gboolean allow_missing;     /* every global variable that the checkpoint gives no value runs its
                                 own initializer, also one that has a value on the master */
  gboolean refuse_unexpected; /* a tensor that the graph doesn't restore is a fault */
  gboolean reshape;           /* the same number of elements is enough */
  GHashTable *names;          /* (nullable) variable's name in the graph -> name in the file */

  /* Which checkpoint, of a directory. */
  gboolean fall_back_off;      /* the latest or none */
  gboolean fall_back_to_files; /* where the state file can't be read, isn't there or names only what
                                  is gone, the directory's files are looked at */
  gboolean keep_damaged;       /* a damaged one is passed over, but not set aside */
  /* (nullable) NULL-terminated names in the file; the caller's. One that doesn't fit the graph and
   * lacks any of them was saved by somebody who doesn't know of them: it is passed over, and not
   * set aside. */
  const char *const *needs;
  /* The checkpoint is set aside that three lives running have begun with and ended without a word
   * (muster_saver_mark_good ()). */
  gboolean count_deaths;

  MusterRestoreProgress progress; /* (nullable) */
  gpointer user_data;
} MusterRestoreOptions;

G_END_DECLS
