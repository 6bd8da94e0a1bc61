// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "jobs/job.h"

G_BEGIN_DECLS

/* Finds the newest epoch below `below` (MUSTER_NO_EPOCH: of all) for which every node has an index
 * "NODE.EPOCH.index" in a directory. *epoch is MUSTER_NO_EPOCH if there is none, or no directory.
 * nodes is NULL-terminated and may be empty. */
gboolean muster_job_newest_epoch (MusterStorage *storage, const char *directory,
                                  const char *const *nodes, gint64 below, gint64 *epoch,
                                  GError **error);

G_END_DECLS
