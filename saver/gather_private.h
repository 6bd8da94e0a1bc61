// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* A save op's tensors in a session, read through it and written by this process: for masters that
 * don't see the directory. Its nodes are added to the session once. One thread at a time. */
typedef struct _MusterGather MusterGather;

void muster_gather_free (MusterGather *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGather, muster_gather_free)

/* What a saver's save reads. */
typedef struct {
  MusterSession *session;
  MusterGraph *graph;      /* (nullable) that has save_tensor; NULL: the saver's */
  const char *save_tensor; /* (nullable) NULL: the saver's */
  const char *why;         /* why the master doesn't write, for the log */
  const char *directory;   /* likewise */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} MusterGathering;

/* Writes a checkpoint of what the save op saves, with its names and slices, as one data file,
 * durably. Memory holds MUSTER_GATHER_BYTES of it, and the strings. The first time for a session,
 * the log says so. By the holder of the lock on saves. */
gboolean muster_saver_gather (MusterSaver *self, const MusterGathering *what,
                              MusterStorage *storage, const char *prefix, GError **error);

/* Bytes of numbers that are read in one step, at most. */
#define MUSTER_GATHER_BYTES ((guint64)64 << 20)

G_END_DECLS
