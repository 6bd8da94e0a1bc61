// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/compatibility_private.h"

G_BEGIN_DECLS

/* restore_assign.c: assigns an open, compared checkpoint to a session's variables. */
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
  gboolean is_verified;      /* the chief has read and checked all of it */
  /* What a failure at this point means. */
  gboolean is_masters; /* the checkpoint is complete and compatible, and the master failed */
  gboolean is_torn;    /* some variables may already have values from the checkpoint */
} MusterRestoreRun;

void muster_restore_run_clear (MusterRestoreRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestoreRun, muster_restore_run_clear)

/* Determines the variables to assign and to initialise, after the comparison. Fails if a variable
 * would remain without a value. */
gboolean muster_restore_run_plan (MusterRestoreRun *self, GError **error);

/* Reads the tensors, assigns them and then runs the initialisers. */
gboolean muster_restore_run_assign (MusterRestoreRun *self, GError **error);

G_END_DECLS
