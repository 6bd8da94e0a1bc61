// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/session/local_master.h"
#include "graph/meta_graph/ready_op.h"
#include "session/manager.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* A model's job on the engine, with the real clock. */
typedef struct {
  MusterMetaGraph *meta_graph;
  MusterGraph *graph; /* with a ready op */
  char *ready_op;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSessionManager *manager;
  MusterSessionReport report;
  GError *error;
} EngineJob;

/* meta_graph is (transfer full). */
static inline EngineJob
engine_job_new (MusterMetaGraph *meta_graph)
{
  EngineJob job = {.meta_graph = meta_graph, .master = muster_local_master_new ()};

  job.graph = muster_graph_with_ready_op (meta_graph, TRUE, &job.ready_op, &job.error);
  MUSTER_EXPECT_NO_ERROR (job.error);
  job.saver = muster_saver_new (meta_graph, NULL, NULL);
  MusterSessionManagerOptions options = {.ready_op = job.ready_op};
  job.manager = muster_session_manager_new (job.graph, &options, NULL);
  return job;
}

static inline void
engine_job_clear (EngineJob *self)
{
  g_clear_error (&self->error);
  muster_session_report_clear (&self->report);
  g_clear_object (&self->manager);
  g_clear_object (&self->master);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->ready_op, g_free);
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (EngineJob, engine_job_clear)

/* Prepares a session from the test's folder or by "init". */
static inline MusterSession *
engine_job_prepare (EngineJob *self)
{
  const MusterPrepareOptions options = {.init_op = "init",
                                        .saver = self->saver,
                                        .checkpoint_dir = muster_test_tmpdir (),
                                        .timeout_us = 300 * MUSTER_SECOND};

  g_clear_error (&self->error);
  muster_session_report_clear (&self->report);
  return muster_session_manager_prepare_session (self->manager, self->master, &options,
                                                 &self->report, NULL, &self->error);
}
