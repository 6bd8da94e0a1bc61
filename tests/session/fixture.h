// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"
#include "tests/doubles/fake_master.h"
#include "tests/doubles/small_model.h"

G_BEGIN_DECLS

/* A job on one fake clock and one fake master: the small model with the variables "v" and "w" and
 * the local variable "local". "init" sets v and w, "local_init" sets local; "gate" reports v and w,
 * "ready" all three. */

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterSessionManager *manager; /* with all three ops */
  MusterSessionReport report;    /* of the last verb */
  GError *error;                 /* of the last verb */
} MusterSmallJob;

MusterSmallJob muster_small_job_new (void);
void muster_small_job_clear (MusterSmallJob *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSmallJob, muster_small_job_clear)

/* A manager with these ops (each nullable) and the job's clock. */
MusterSessionManager *muster_small_job_manager (MusterSmallJob *self, const char *local_init,
                                                const char *ready, const char *gate);

/* Gives the job a manager with all three ops for the model "digits", on a master that keeps
 * announcements. options are the rest: what they leave open is filled in. */
void muster_small_job_name_model (MusterSmallJob *self, MusterSessionManagerOptions options);
/* Another process's chief, of epoch 3, as the master tells of it. */
void muster_small_job_set_chief (MusterSmallJob *self, MusterChiefPhase phase, gboolean prepared,
                                 gboolean alive, gint64 step);

/* The verbs, by the job's manager; report and error go to the job. */
MusterSession *muster_small_job_prepare (MusterSmallJob *self, MusterPrepareOptions options);
MusterSession *muster_small_job_recover (MusterSmallJob *self, MusterPrepareOptions options,
                                         gboolean *recovered);
MusterSession *muster_small_job_wait (MusterSmallJob *self, gint64 timeout_us,
                                      GCancellable *cancellable);

/* Writes DIRECTORY/model.ckpt-STEP of the small model and names it the latest. */
char *muster_small_job_write_checkpoint (const char *directory, gint64 step);

gboolean muster_small_job_diary_is (MusterSmallJob *self, const char *diary);

/* Events: somebody's init, and a chief that prepares. */
void muster_small_job_initialise (gpointer job);
void muster_small_job_chief_prepares (gpointer job);
void muster_small_job_restart_master (gpointer job);

G_END_DECLS
