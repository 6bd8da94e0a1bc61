// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* A store in memory that loses what a power cut may lose. What is appended is volatile until its
 * file is synced; files made, renamed and removed are so until their directory is synced. The
 * last changes are lost, or one in the middle with those of its names, or all but one directory's.
 * A rename from one directory into another is never lost to both: once the old name is gone for
 * good, so is the new one there. Directories themselves are durable at once. Any thread. */

#define MUSTER_TYPE_CRASH_STORAGE (muster_crash_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterCrashStorage, muster_crash_storage, MUSTER, CRASH_STORAGE, GObject)

MusterCrashStorage *muster_crash_storage_new (void);
/* Another one with the same files (transfer full), all of them durable. */
MusterCrashStorage *muster_crash_storage_copy (MusterCrashStorage *self);

/* Counting from now, the n-th call that would change something fails, and so does every call after
 * it: the machine is off. 0: never. */
void muster_crash_storage_stop_at (MusterCrashStorage *self, guint n);
gboolean muster_crash_storage_has_stopped (MusterCrashStorage *self);
/* Only the n-th of those calls fails, for want of room; removals, which need none, don't count. */
void muster_crash_storage_fail_at (MusterCrashStorage *self, guint n);
gboolean muster_crash_storage_has_failed (MusterCrashStorage *self);

/* From now on a sync does nothing and says that it did: a test that sees no harm in that is
 * blind. */
void muster_crash_storage_ignore_syncs (MusterCrashStorage *self, gboolean of_files,
                                        gboolean of_directories);

/* A sync by its writer does nothing to a file that is made under a path with this in it (borrowed):
 * TensorFlow's masters don't sync what they write. Who syncs it by its path does. */
void muster_crash_storage_set_lazy (MusterCrashStorage *self, const char *in_path);

/* What a crash now may leave: so many outcomes, some of them alike. */
guint muster_crash_storage_n_outcomes (MusterCrashStorage *self);
/* One of them, as a store of its own (transfer full) that holds no lock. *what (nullable) (transfer
 * full) says which. */
MusterCrashStorage *muster_crash_storage_outcome (MusterCrashStorage *self, guint outcome,
                                                  char **what);

/* Whether a test tries the nth outcome that it has seen: each with MUSTER_LONG, otherwise every
 * third, and every eleventh with MUSTER_SHORT. */
gboolean muster_crash_storage_is_tried (guint nth);

/* The same for stores that hold the same files (transfer full). */
char *muster_crash_storage_fingerprint (MusterCrashStorage *self);

G_END_DECLS
