// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

/* MusterJobSave is a save of a job beside its training: a thread waits until every node's
 * checkpoint is durable, writes the metadata, and reports, in that order. */
typedef struct _MusterJobSave MusterJobSave;

typedef struct {
  MusterJobCheckpoint *checkpoint; /* not used by others until the save has ended */
  gint64 epoch;
  gboolean finished; /* the job has ended there */
  gint64 deadline_us;
  gint64 stage_timeout_us; /* for each of the three; 0: until the deadline */
} MusterJobSaveOptions;

/* The earlier of deadline_us and timeout_us from now; a timeout of 0 is none. */
gint64 muster_job_stage_deadline (gint64 timeout_us, gint64 deadline_us);

/* Waits for the nodes that a stage group has staged, writes the metadata and reports. */
gboolean muster_job_save_complete (const MusterJobSaveOptions *options, GCancellable *cancellable,
                                   GError **error);
/* The same on a thread. */
MusterJobSave *muster_job_save_start (const MusterJobSaveOptions *options);
gint64 muster_job_save_epoch (MusterJobSave *self);
/* Waits until it has ended, and returns its error; takes self. When cancelled, a save has 2 s left.
 */
gboolean muster_job_save_end (MusterJobSave *self, GCancellable *cancellable, GError **error);

G_END_DECLS
