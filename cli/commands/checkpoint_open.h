// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/object_graph.h"
#include "cli/common/cli.h"
#include "cli/output/progress.h"

G_BEGIN_DECLS

/* What the verbs of `muster checkpoint` share. */

/* Parses a verb's line, which takes between least and most words: what is wrong is printed, and
 * *code says how to exit. */
gboolean muster_cli_checkpoint_parse (int argc, char **argv, const char *usage, const char *summary,
                                      const GOptionEntry *entries, guint least, guint most,
                                      MusterCliOptions *options, char ***words, int *code);

/* The prefix that a person means: a prefix, one of its files, a directory (its latest), or a
 * SavedModel. (transfer full) */
char *muster_cli_checkpoint_find (const char *place, GError **error);

/* DIR/variables/variables where DIR is a SavedModel, or NULL. (transfer full) */
char *muster_cli_saved_model (const char *directory);

/* Opens it and holds it against being removed while it is read. */
typedef struct {
  MusterBundleReader *reader; /* (owned) */
  MusterStorageLock *lease;   /* (owned) (nullable) a directory that can't be written grants none */
} MusterCliOpened;

gboolean muster_cli_checkpoint_open (MusterCliOpened *self, const char *prefix, GError **error);
/* The one that a person means, *prefix (transfer full); of a directory the latest, also where a
 * saver at work removes that before it is held. */
gboolean muster_cli_checkpoint_open_at (MusterCliOpened *self, const char *place, char **prefix,
                                        GError **error);
void muster_cli_opened_clear (MusterCliOpened *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOpened, muster_cli_opened_clear)

/* What a person calls a tensor: in a checkpoint of objects its path, or where that is but a number
 * in a list, what its variable was called; names is (nullable). Borrowed. */
const char *muster_cli_readable (const MusterObjectNames *names, const MusterBundleEntry *entry);

/* A bar on stderr, if that is a terminal and no program reads along. */
MusterProgress *muster_cli_progress (gboolean json);

G_END_DECLS
