// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_record.h"
#include "cli/output/progress.h"

G_BEGIN_DECLS

/* A checkpoint in a directory. */
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
  char *directory; /* (owned) (nullable) of several: the one that holds it */
  char *refused;   /* (owned) (nullable) of several: why a job doesn't resume from it */
  guint tier;      /* of several: the number of its directory */
  gboolean latest;
  gboolean kept;  /* preserved: retention doesn't remove it */
  gint64 took_us; /* time to read it */
} MusterListed;

void muster_listed_free (MusterListed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterListed, muster_listed_free)

/* Removes damaged ones whose index no longer exists: they were deleted during the check. */
void muster_listed_drop_removed (GPtrArray *listed);

/* Checks one: file lengths and index. record is (nullable), latest (nullable) the latest's prefix.
 */
MusterListed *muster_listed_new (const char *prefix, const MusterCheckpointRecord *record,
                                 const char *latest);
/* All checkpoints in a directory, newest first. A state or side file that can't be read gives a
 * warning. (transfer full) (element-type MusterListed) */
GPtrArray *muster_listed_directory (const char *directory, gboolean with_quarantined,
                                    GError **error);
/* The same for a job's directories, the fastest first and the durable one last: latest is the one
 * that the job resumes from. A directory that can't be read gives a warning, unless none can. */
GPtrArray *muster_listed_tiers (char **directories, GError **error);
/* Reads each one that isn't known to be damaged. */
void muster_listed_verify_all (GPtrArray *listed, gboolean json);

/* "40 s ago", or "-" */
char *muster_cli_ago (gint64 when_us);
/* A message about a file, with its path relative to the directory. text is (nullable). */
char *muster_cli_without_directory (const char *text, const char *directory);
/* Prints a MusterListed as a line of JSON, with one more member (nullable). */
void muster_listed_json (const MusterListed *self, const char *name, const char *value);

G_END_DECLS
