// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/object_graph.h"
#include "checkpoint/state/checkpoint_record.h"
#include "cli/cli.h"
#include "cli/terminal/progress.h"

G_BEGIN_DECLS

/* What the verbs of `muster checkpoint` share. Each gets its own arguments, argv[0] being
 * "checkpoint VERB", and returns an exit code. */

int muster_cli_checkpoint_list (int argc, char **argv);
int muster_cli_checkpoint_show (int argc, char **argv);
int muster_cli_checkpoint_latest (int argc, char **argv);
int muster_cli_checkpoint_verify (int argc, char **argv);
int muster_cli_checkpoint_diff (int argc, char **argv);
int muster_cli_checkpoint_prune (int argc, char **argv);

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

/* One checkpoint of a directory. */
typedef struct {
  char *prefix;      /* (owned) */
  char *name;        /* (owned) its base name */
  const char *state; /* static: "good", "verified" (when it was saved), "whole" (read now),
                        "damaged", "set aside" */
  char *damage;      /* (owned) (nullable) why it is damaged */
  char *reason;      /* (owned) (nullable) why it was set aside */
  gint64 step;       /* -1: none */
  gint64 when_us;    /* since 1970 */
  gint64 bytes;      /* of its files */
  gint shards;
  gint tensors;
  gboolean latest;
  gboolean kept;  /* for good: retention doesn't take it */
  gint64 took_us; /* to read it */
} MusterListed;

void muster_listed_free (MusterListed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterListed, muster_listed_free)

/* Takes out those of which only damage is known and whose index is gone by now: they were removed
 * while they were looked at. */
void muster_listed_drop_removed (GPtrArray *listed);

/* Looks at one: lengths and index. record is (nullable), latest (nullable) the latest's prefix. */
MusterListed *muster_listed_new (const char *prefix, const MusterCheckpointRecord *record,
                                 const char *latest);
/* All of a directory, newest first; a state or side file that can't be read is a warning.
 * (transfer full) (element-type MusterListed) */
GPtrArray *muster_listed_directory (const char *directory, gboolean with_set_aside, GError **error);
/* Reads it whole: its state becomes "whole" or "damaged". */
void muster_listed_verify (MusterListed *self, MusterProgress *progress, guint64 before,
                           guint64 all);
/* Reads each of them that isn't known to be damaged. */
void muster_listed_verify_all (GPtrArray *listed, gboolean json);

/* "40 s ago", or "-" */
char *muster_cli_ago (gint64 when_us);
/* A message about a file, its path as it is seen from the directory. text is (nullable). */
char *muster_cli_without_directory (const char *text, const char *directory);
/* One line of JSON of a MusterListed, with one more member (nullable). */
void muster_listed_json (const MusterListed *self, const char *name, const char *value);

/* A bar on stderr, if that is a terminal and no program reads along. */
MusterProgress *muster_cli_progress (gboolean json);

G_END_DECLS
