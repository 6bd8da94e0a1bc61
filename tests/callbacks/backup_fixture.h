// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/backup.h"

G_BEGIN_DECLS

/* A training whose weights are one number: the batches that they have seen. Its file is
 * PREFIX.canary, written whole. */

typedef struct {
  MusterStorage *storage; /* (not owned) */
  gint64 canary;          /* the weights */
  gint64 n_trained;       /* batches, by this program alone */
  gboolean is_unbuilt;
  gboolean has_optimizer; /* after build_optimizer */
  GString *diary;         /* what happened: "restore", "begin 0", "end 0 2", "epoch 0", "over" */
  /* interruptions, each once: before this many batches are trained by this program, or as the
   * callback behind the backup's */
  gint64 fails_after;       /* -1: never */
  gint64 fails_epoch_begin; /* -1 */
  gint64 fails_epoch_end;   /* -1 */
} Program;

Program program_new (MusterStorage *storage);
void program_clear (Program *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Program, program_clear)
MusterProgram program_operations (Program *self);

/* Trains with a backup made by options (its program and storage are filled in) to n_epochs of
 * n_batches (0: 3, told only by the end of the data). */
gboolean program_fit (Program *self, MusterBackupOptions options, gint64 n_epochs, gint64 n_batches,
                      GError **error);
/* The same with a backup that is there. */
gboolean program_fit_with (Program *self, MusterBackup *backup, gint64 n_epochs, gint64 n_batches,
                           gint64 batches_per_call, MusterFitPosition start, GError **error);

/* Trains until an interruption after so many batches, whose backup stays; on local files, or in
 * storage. */
void program_train_until (MusterBackupOptions options, gint64 n_epochs, gint64 n_batches,
                          gint64 fails_after);
void program_train_on_until (MusterStorage *storage, MusterBackupOptions options, gint64 n_epochs,
                             gint64 n_batches, gint64 fails_after);

/* A directory for a backup, in the test's own. */
char *backup_directory (void);
/* A file in it: whether it is there, its text (NULL: it isn't), and another text for it. */
gboolean backup_is_there (const char *in, const char *name);
char *backup_get (const char *in, const char *name);
void backup_put (const char *in, const char *name, const char *text);
/* The variables' file there, as "latest-3.canary"; of several the last. */
char *backup_variables (const char *in);

G_END_DECLS
