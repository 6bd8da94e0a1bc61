// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Makes checkpoints of checkpoints: copies, averages, parts, and copies with other names. Any
 * thread.
 *
 * Every byte that is read is checked against the index's sums, and in a file system what was
 * written is read back before it is published: DATA_LOSS names the tensor and the file. The new
 * checkpoint appears complete or not at all. Memory doesn't grow with the size of a tensor, but
 * with the number of tensors; only a partitioned variable that becomes one .npy file is held as a
 * whole. */

/**
 * MusterCopyLatest:
 * @MUSTER_COPY_LATEST_AUTO: if the directory has no latest checkpoint, or its latest is a copy of
 *   an earlier step
 * @MUSTER_COPY_LATEST_ALWAYS: always; a job that resumes there resumes from the copy
 * @MUSTER_COPY_LATEST_NEVER: never
 *
 * Whether a copy becomes the latest checkpoint of its directory. A checkpoint that a job saved is
 * never replaced as the latest unless that is asked for.
 */
typedef enum {
  MUSTER_COPY_LATEST_AUTO,
  MUSTER_COPY_LATEST_ALWAYS,
  MUSTER_COPY_LATEST_NEVER,
} MusterCopyLatest;

/**
 * MusterEditOptions:
 * @storage: (nullable): where all the paths lead; `NULL`: the default store
 * @clock: (nullable): of the deadline; `NULL`: the machine's
 * @replaces: a checkpoint or file that is there already is replaced; else it is `ALREADY_EXISTS`
 * @reads_back: reads the result also in a store that checks what it is given, where that isn't the
 *   default
 * @latest: for [func@checkpoint_copy]
 *
 * Options of edits. Zeros are the defaults.
 */
typedef struct {
  MusterStorage *storage;
  MusterClock *clock;
  gboolean replaces;
  gboolean reads_back;
  MusterCopyLatest latest;
} MusterEditOptions;

#define MUSTER_TYPE_EDIT_OPTIONS (muster_edit_options_get_type ())
GType muster_edit_options_get_type (void);

/**
 * MusterEditReport:
 * @n_tensors: the number of tensors in the result
 * @n_skipped: of an extraction to NumPy files: the tensors that a `*` or `?` matches and that
 * aren't numbers
 * @bytes: the size of its data
 * @kept_bytes: of a copy: those of @bytes that were there already, from an interrupted one
 * @was_there: of a copy: the same checkpoint existed, intact
 * @is_latest: of a copy: it is its directory's latest
 * @took_us: the time that it took
 *
 * What an edit made.
 */
typedef struct {
  guint64 n_tensors;
  guint64 n_skipped;
  guint64 bytes;
  guint64 kept_bytes;
  gboolean was_there;
  gboolean is_latest;
  gint64 took_us;
} MusterEditReport;

/**
 * muster_checkpoint_copy:
 * @from: a checkpoint
 * @to: the prefix of the copy; its directory is created
 * @options: (nullable): options
 * @report: (out caller-allocates) (optional): what was done
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Copies a checkpoint to another directory or store, with its meta graph, byte for byte.
 *
 * The directory's state file and side file then tell of it as after a save: its step, epoch, time
 * and run, and whether retention keeps it for good, are those of the original. Which becomes the
 * directory's latest is @options' matter.
 *
 * If it fails, or the process dies, complete data files stay under hidden names: the same
 * copy goes on from there, after checking them. If it is cancelled, they are removed. A later saver
 * in that directory removes what nobody finished. The same checkpoint, if it exists and is intact,
 * is not copied again; if it is damaged, it is. Another one with this name is `ALREADY_EXISTS`.
 *
 * Returns: `TRUE` if the copy is durable
 */
gboolean muster_checkpoint_copy (const char *from, const char *to, const MusterEditOptions *options,
                                 MusterEditReport *report, MusterBundleProgress progress,
                                 gpointer user_data, gint64 deadline_us, GCancellable *cancellable,
                                 GError **error);

/**
 * muster_checkpoint_merge:
 * @from: (array zero-terminated=1): checkpoints
 * @to: the prefix of the result; its directory is created
 * @options: (nullable): options
 * @report: (out caller-allocates) (optional): what was done
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Averages checkpoints of one model: floating point and complex numbers are added up in double, in
 * the order given, divided and rounded once. Integers, booleans and strings, and types that muster
 * doesn't compute with, are the last one's. All must have the same tensors with the same types,
 * shapes and slices: `INVALID_ARGUMENT` names the first difference. No state file names the result.
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_merge (const char *const *from, const char *to,
                                  const MusterEditOptions *options, MusterEditReport *report,
                                  MusterBundleProgress progress, gpointer user_data,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_extract:
 * @from: a checkpoint
 * @patterns: (array zero-terminated=1): names, with `*` for any characters and `?` for one
 * @to: the prefix of the result; its directory is created
 * @options: (nullable): options
 * @report: (out caller-allocates) (optional): what was done
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Makes a checkpoint of the variables that match a pattern, unchanged and with their slices. A
 * pattern without a match is `NOT_FOUND`. In an object-based checkpoint a variable's path and its
 * full name match as well as its key; the result has the same keys, and is object-based only if a
 * pattern matches [const@OBJECT_GRAPH_KEY]. No state file names the result.
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_extract (const char *from, const char *const *patterns, const char *to,
                                    const MusterEditOptions *options, MusterEditReport *report,
                                    MusterBundleProgress progress, gpointer user_data,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_extract_npy:
 * @from: a checkpoint
 * @patterns: (array zero-terminated=1): as for [func@checkpoint_extract]
 * @to: a directory, which is created; or, for one variable, a name that ends in `.npy`
 * @options: (nullable): options
 * @report: (out caller-allocates) (optional): what was done
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Writes the variables that match a pattern as NumPy files: `dense/kernel` as
 * `DIRECTORY/dense/kernel.npy`; in an object-based checkpoint after its path. bfloat16, which NumPy
 * lacks, becomes float. What isn't numbers is skipped if only a pattern with `*` or `?` matches it,
 * and else `UNIMPLEMENTED`. All files appear when all are written. A name
 * that isn't that of a file below the directory (`../x`) is `INVALID_ARGUMENT`.
 *
 * Returns: `TRUE` if all files are durable
 */
gboolean muster_checkpoint_extract_npy (const char *from, const char *const *patterns,
                                        const char *to, const MusterEditOptions *options,
                                        MusterEditReport *report, MusterBundleProgress progress,
                                        gpointer user_data, gint64 deadline_us,
                                        GCancellable *cancellable, GError **error);

/**
 * muster_checkpoint_rename:
 * @from: a checkpoint
 * @names: (array zero-terminated=1): old and new names in turn; with a `*` at the end of both, all
 *   names with that beginning
 * @to: the prefix of the result; its directory is created
 * @options: (nullable): options
 * @report: (out caller-allocates) (optional): what was done
 * @progress: (nullable) (scope call) (closure user_data): called during the work
 * @user_data: for @progress
 * @deadline_us: when it ends at the latest
 * @cancellable: (nullable): ends it
 * @error: return location for an error
 *
 * Copies a checkpoint with other names for its variables; partitioned ones keep their slices. The
 * first pair that fits a name counts, so two names can be exchanged. An old name that isn't there
 * is `NOT_FOUND`, and two variables that would get one name are `ALREADY_EXISTS`. The names in an
 * object-based checkpoint are those of a program's objects: `UNIMPLEMENTED`. No state file names
 * the result.
 *
 * Returns: `TRUE` if the result is durable
 */
gboolean muster_checkpoint_rename (const char *from, const char *const *names, const char *to,
                                   const MusterEditOptions *options, MusterEditReport *report,
                                   MusterBundleProgress progress, gpointer user_data,
                                   gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
