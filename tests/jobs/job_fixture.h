// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_runner.h"

G_BEGIN_DECLS

/* Jobs on masters of the engine, one for each node. A node's model reads the numbers 0 to 9, one
 * each time "read" runs, and adds them to "total", which begins at 100: "finished" is true when all
 * are read. "download" copies total to "copied". "late" is a variable that "init" leaves without a
 * value, and "late/Assign" makes 7. "count" counts "counter" up to 5, and is then out of range. All
 * are int64 scalars. */

typedef struct {
  GPtrArray *masters; /* (element-type MusterMaster) in the order of the nodes */
  MusterCluster *cluster;
  MusterJob *job;
  char *directory;
  GString *diary;       /* what note tasks and the fake metadata have noted, behind commas */
  GMutex lock;          /* of the diary */
  const char *fails_at; /* (nullable) these words, between bars, fail when they are to be noted */
  MusterJobMetadata *metadata;
} JobFixture;

/* What went wrong, also where nothing did. */
#define SAID(error) ((error) != NULL ? (error)->message : "no error")

MusterMetaGraph *job_model_new (void);

/* A cluster of these nodes (NULL-terminated), open, and a job that reads three numbers an epoch on
 * each of them and stops when the first node's are read. */
void job_set_up (JobFixture *self, const char *const *nodes);
/* The masters keep their checkpoints in a store (NULL: the default one). */
void job_set_up_on (JobFixture *self, const char *const *nodes, MusterStorage *storage);
void job_tear_down (JobFixture *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (JobFixture, job_tear_down)

/* The cluster and the job once more, as another process would make them: on masters that are new,
 * or the same. */
void job_begin_again (JobFixture *self, const char *const *nodes, gboolean same_masters);

/* A task of ops (NULL-terminated). */
MusterJobTask *job_ops_task (const char *name, const char *node, guint64 repeat,
                             ...) G_GNUC_NULL_TERMINATED;
/* A task that notes a word. */
MusterJobTask *job_note_task (JobFixture *self, const char *node, const char *word);
MusterJobStep job_note_step (JobFixture *self, const char *word);
void job_add (MusterJobGroup *group, MusterJobTask *task); /* (transfer full) task */
/* Appends a word; FALSE with an error if it is the one that fails. */
gboolean job_note (JobFixture *self, const char *word, GError **error);

/* A metadata handler that notes each verb with what it was asked: "params", "resume", "resume 2"
 * where the user chose an epoch, "accessible", "accessible 3" where it was asked about one,
 * "write 3 finished", "report checkpoint_save". */
typedef struct {
  gint64 last_epoch; /* MUSTER_NO_EPOCH: the user's */
  gboolean finished;
  gboolean inaccessible;
  const char *waits_at;  /* (nullable) this verb waits for its deadline or a cancel */
  GCancellable *cancels; /* (not owned) (nullable) cancelled once it waits */
  char *params;          /* the last ones, as text */
  GPtrArray *stats;
} FakeMetadata;
FakeMetadata *job_fake_metadata (JobFixture *self); /* made, and kept by the fixture */

gint64 job_value (JobFixture *self, const char *node, const char *variable);
gboolean job_has_file (JobFixture *self, const char *name);

G_END_DECLS
