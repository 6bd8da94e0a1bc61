// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "cli/checkpoint/checkpoint_listed.h"
#include "cli/output/progress.h"

G_BEGIN_DECLS

/* Removes damaged ones whose index no longer exists: they were deleted during the check. */
void muster_listed_drop_removed (GPtrArray *listed);

/* All checkpoints in a directory, newest first. A state or side file that can't be read gives a
 * warning. (transfer full) (element-type MusterListed) */
GPtrArray *muster_listed_directory (const char *directory, gboolean with_quarantined,
                                    GError **error);
/* Reads all of it but the meta graph, which a restore doesn't read; the state becomes "intact",
 * "damaged" or "unread", or stays if the cancellable (nullable) stopped it. progress is (nullable).
 */
void muster_listed_verify (MusterListed *self, MusterBundleProgress progress, gpointer data,
                           GCancellable *cancellable);
/* Reads each one that isn't known to be damaged, and its meta graph. */
void muster_listed_verify_all (GPtrArray *listed, gboolean json);

/* "40 s ago", or "-" */
char *muster_cli_ago (gint64 when_us);
/* A message about a file, with its path relative to the directory. text is (nullable). */
char *muster_cli_without_directory (const char *text, const char *directory);
/* Prints a MusterListed as a line of JSON, with one more member (nullable). */
void muster_listed_json (const MusterListed *self, const char *name, const char *value);

G_END_DECLS
