// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/compatibility_private.h"

G_BEGIN_DECLS

/* restore_assign.c: from a checkpoint that is open and compared into a session's variables. */
typedef struct {
  MusterSaver *saver;
  MusterSession *session;
  gboolean is_here; /* the session's master is this process */
  const char *prefix;
  const MusterRestoreOptions *options;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  MusterMatch match;         /* (owned) */
  GArray *runnable;          /* (owned) (element-type guint) assignments that have a value */
  GPtrArray *initialisers;   /* (owned) (element-type utf8) ops; borrowed from the meta graph */
  GPtrArray *initialised;    /* (owned) (element-type utf8) variables; borrowed likewise */
  guint64 done;              /* bytes read and fed */
  /* What a failure now would mean: */
  gboolean is_masters; /* the checkpoint is whole and fits, and what failed is the master's */
  gboolean is_torn;    /* some variables may have got their values from it */
} MusterRestoreRun;

void muster_restore_run_clear (MusterRestoreRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestoreRun, muster_restore_run_clear)

/* Finds what is to be assigned and what initialised, once the two are compared. Says no where
 * something would stay without a value. */
gboolean muster_restore_run_plan (MusterRestoreRun *self, GError **error);

/* Reads all of it, assigns, and then initialises. */
gboolean muster_restore_run_assign (MusterRestoreRun *self, GError **error);

G_END_DECLS
