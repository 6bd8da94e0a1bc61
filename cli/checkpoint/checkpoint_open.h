// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/object_graph.h"
#include "cli/common/cli.h"
#include "cli/output/progress.h"

G_BEGIN_DECLS

/* What the subcommands of `muster checkpoint` share. */

/* Where checkpoints are: local files and object stores, which answer until the command's --timeout.
 */
MusterStorage *muster_cli_storage (void);
/* Sets that by the options, and returns when it is. */
gint64 muster_cli_bind_storage (const MusterCliOptions *options, GCancellable *cancellable);
/* Fails once --timeout is over, which doesn't end what a local file takes. */
gboolean muster_cli_checkpoint_check_time (GError **error);
/* For a directory's lock: half a minute, unless the command ends before. */
gint64 muster_cli_lock_deadline (void);

/* Parses a subcommand's arguments, which must contain between least and most words, and binds the
 * storage by its --timeout. Mistakes are printed, and *code is the exit code. */
gboolean muster_cli_checkpoint_parse (int argc, char **argv, const char *usage, const char *summary,
                                      const GOptionEntry *entries, guint least, guint most,
                                      MusterCliOptions *options, char ***words, int *code);

/* The prefix for an argument: a prefix, one of its files, a directory (its latest), or a
 * SavedModel. (transfer full) */
char *muster_cli_checkpoint_find (const char *place, GError **error);

/* TRUE if both are the same checkpoint's prefix, however its directory is written: a state file of
 * TensorFlow's has absolute paths. */
gboolean muster_cli_checkpoint_is_same (const char *prefix, const char *other);

/* DIR/variables/variables if DIR is a SavedModel, or NULL. (transfer full) */
char *muster_cli_saved_model (const char *directory);

/* An open checkpoint, locked against removal. */
typedef struct {
  MusterBundleReader *reader; /* (owned) */
  MusterStorageLock *lease;   /* (owned) (nullable) NULL in a read-only directory */
} MusterCliOpened;

gboolean muster_cli_checkpoint_open (MusterCliOpened *self, const char *prefix, GError **error);
/* The checkpoint for an argument, *prefix (transfer full). For a directory the latest, with a retry
 * if a running saver removes it before it is locked. */
gboolean muster_cli_checkpoint_open_at (MusterCliOpened *self, const char *place, char **prefix,
                                        GError **error);
void muster_cli_opened_clear (MusterCliOpened *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOpened, muster_cli_opened_clear)

/* A tensor's readable name: in an object-based checkpoint its path or, if that is only a number in
 * a list, its variable's name; names is (nullable). Borrowed. */
const char *muster_cli_readable (const MusterObjectNames *names, const MusterBundleEntry *entry);

/* A progress bar on stderr, if that is a terminal and --json isn't set. */
MusterProgress *muster_cli_progress (gboolean json);

G_END_DECLS
