// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* An object store in memory: no rename and no locks, a file is there once it is closed, and a small
 * one is replaced only where its version is the one that was read. Files that are being written are
 * its uploads, which nobody sees.
 *
 * Each object is a process with a store; object_storage_process () makes another one with the same
 * store, object_storage_copy () one with a store of its own that holds the same. Any thread. */
#define MUSTER_TYPE_OBJECT_STORAGE (muster_object_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterObjectStorage, muster_object_storage, MUSTER, OBJECT_STORAGE, GObject)

MusterObjectStorage *object_storage_new (void);
MusterObjectStorage *object_storage_process (MusterObjectStorage *self);
MusterObjectStorage *object_storage_copy (MusterObjectStorage *self);

/* The process ends at the n-th call that changes something, counted from 1: that one and all that
 * follow fail. With has_effect that one is done nonetheless, and only its answer is lost. */
void object_storage_stop_at (MusterObjectStorage *self, guint n, gboolean has_effect);
gboolean object_storage_has_stopped (MusterObjectStorage *self);

/* The n-th call that changes something fails; the next ones don't. 0: none does. */
void object_storage_fail_at (MusterObjectStorage *self, guint n);
gboolean object_storage_has_failed (MusterObjectStorage *self);
/* The same; that call is done, and only its answer is lost. */
void object_storage_lose_at (MusterObjectStorage *self, guint n);
/* The n-th call from now on, of those that only read, too, finds no store: UNAVAILABLE. */
void object_storage_miss_at (MusterObjectStorage *self, guint n);

/* From the n-th call on, counted from 1 with those that only read, the store doesn't answer this
 * process: a call ends at its deadline, which comes at once here. 0: never. */
void object_storage_stall_at (MusterObjectStorage *self, guint n, gint64 latest_us);
/* What a stalled call has waited for in vain (transfer full) (nullable), the first one: it had no
 * deadline or one after latest_us, or one in more than a minute and no cancellable. */
char *object_storage_unbound (MusterObjectStorage *self);
/* How many calls this process has made. */
guint object_storage_n_calls (MusterObjectStorage *self);

/* Runs act once, just before the next replacement of a file with that base name: another writer
 * comes in between. */
void object_storage_before_replace (MusterObjectStorage *self, const char *name,
                                    void (*act) (gpointer data), gpointer data);

/* How many uploads are neither closed nor abandoned, of all processes. */
guint object_storage_n_uploads (MusterObjectStorage *self);
/* The number of files below a directory, and their names for a message (transfer full). */
guint object_storage_n_files (MusterObjectStorage *self);
/* How many bytes have been copied from file to file, and how many sent. */
guint64 object_storage_copied (MusterObjectStorage *self);
guint64 object_storage_sent (MusterObjectStorage *self);
/* The store's clock goes on. */
void object_storage_pass (MusterObjectStorage *self, gint64 time_us);

G_END_DECLS
