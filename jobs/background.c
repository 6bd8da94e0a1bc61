// SPDX-License-Identifier: Apache-2.0
#include "jobs/background.h"

#include "base/background.h"

#define CLUSTER(X)  X (KEPT, MusterCluster *, cluster, g_object_ref, g_object_unref)
#define DEADLINE(X) X (VALUE, gint64, deadline_us)

#define OPEN(X) X (OBJECT, MusterCluster) X (VALUE, gint64, timeout_us)
MUSTER_ASYNC (muster_cluster_open, muster_cluster_open, "muster-open", gboolean, MUSTER_PLAIN, OPEN)

#define RUN(X)                                                                                     \
  X (OBJECT, MusterCluster)                                                                        \
  X (KEPT, MusterJobGroup *, group, g_object_ref, g_object_unref)                                  \
  DEADLINE (X)
MUSTER_ASYNC (muster_cluster_run, muster_cluster_run, "muster-run", gboolean, MUSTER_PLAIN, RUN)

#define RUN_TASK(X)                                                                                \
  X (OBJECT, MusterCluster)                                                                        \
  X (KEPT, MusterJobTask *, task, g_object_ref, g_object_unref)                                    \
  DEADLINE (X)
MUSTER_ASYNC (muster_cluster_run_task, muster_cluster_run_task, "muster-run", gboolean,
              MUSTER_PLAIN, RUN_TASK)

#define FETCH(X) X (OBJECT, MusterJobOutput) DEADLINE (X)
MUSTER_ASYNC (muster_job_output_fetch, muster_job_output_fetch, "muster-fetch", gboolean,
              MUSTER_PLAIN, FETCH)

#define TRAIN(X)                                                                                   \
  X (OBJECT, MusterJobRunner)                                                                      \
  CLUSTER (X)                                                                                      \
  X (OUT, gint64, last_epoch, MUSTER_PLAIN)                                                        \
  DEADLINE (X)
MUSTER_ASYNC (muster_job_runner_train, muster_job_runner_train, "muster-train", gboolean,
              MUSTER_PLAIN, TRAIN)

#define SAVE(X)                                                                                    \
  X (OBJECT, MusterJobRunner)                                                                      \
  CLUSTER (X)                                                                                      \
  X (VALUE, gint64, epoch)                                                                         \
  X (VALUE, gboolean, finished)                                                                    \
  X (OUT, gboolean, saved, MUSTER_PLAIN)                                                           \
  DEADLINE (X)
MUSTER_ASYNC (muster_job_runner_save, muster_job_runner_save, "muster-save", gboolean, MUSTER_PLAIN,
              SAVE)

#define LOAD(X)                                                                                    \
  X (OBJECT, MusterJobRunner)                                                                      \
  CLUSTER (X)                                                                                      \
  X (KEPT, const char *const *, names, MUSTER_KEEP_STRINGS, MUSTER_FREE_STRINGS)                   \
  X (VALUE, gint64, epoch)                                                                         \
  X (KEPT, const char *, on, g_strdup, MUSTER_FREE_STRING)                                         \
  X (OUT, gboolean, found, MUSTER_PLAIN)                                                           \
  X (OUT, char **, loaded, MUSTER_CLEAR_STRINGS)                                                   \
  DEADLINE (X)
MUSTER_ASYNC (muster_job_runner_load_partial, muster_job_runner_load_partial, "muster-load",
              gboolean, MUSTER_PLAIN, LOAD)
