// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/server.h"
#include "train/position/batches.h"
#include "train/position/position.h"
#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* Jobs with positions, of models that count what they see (tests/doubles/seen_model.h). */

/* Nothing here takes so long: a test that hangs fails. */
#define JOB_LIMIT_US (60 * MUSTER_SECOND)

typedef struct {
  MusterMaster *master;
  MusterServer *server; /* (nullable) it serves a master of its own, and master is its client */
  GSocket *held;        /* (nullable) it keeps the server's port for the next one */
  char *directory;
  guint n_tasks; /* slots, if batches are dealt */
  gboolean is_dealt;
  gboolean own_masters; /* as if each task had one: all are the same */
  gint64 n_batches;     /* 0: as many as asked for */
  gint64 save_steps;
  gboolean saves_in_background;
  gint64 quiesce_us;
  gint64 work;
  GMutex lock;
  GString *wrong; /* what is wrong with the checkpoints that were published */
  guint n_saved;
  MusterPreemption *preemption; /* (not owned) (nullable) the chiefs' */
  gboolean preempts_at_save;    /* each save that is durable requests it */
} Job;

Job job_set_up (guint n_tasks);
/* Behind gRPC, with chiefs that claim their model. */
Job job_set_up_served (guint n_tasks);
/* With batches that are dealt, JOB_SLOTS slots, in a directory of that name. */
#define JOB_SLOTS 8
Job job_set_up_dealt (gboolean is_served, const char *name);
/* In place of "run" and "served". */
void job_name_directory (Job *job, const char *name);
void job_tear_down (Job *job);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_tear_down)

/* Slots by functions, all of which get the data. */
typedef struct {
  guint64 (*version) (gpointer data);
  gboolean (*has_task) (guint slot, gpointer data);
  gboolean (*claim) (guint slot, gpointer data, GError **error);
  void (*release) (guint slot, gpointer data);
} SlotFuncs;

MusterPositionSlots *slots_new (const SlotFuncs *funcs, gpointer data);

/* Who is in which slot of a job whose batches are dealt. */
typedef struct {
  GMutex lock;
  gboolean has_task[64];
  guint64 version;
  guint n_claims;  /* that were granted */
  guint n_refused; /* claims */
} Board;

void board_enter (Board *board, guint slot);
void board_leave (Board *board, guint slot);
MusterPositionSlots *board_slots (Board *board);

/* A model with positions, initialised on a master of this process, and a batch of rows for it. */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSession *session;
  MusterTensor *rows;
} Prepared;

/* Takes the meta graph. */
Prepared prepared_set_up (MusterMetaGraph *extended);
void prepared_tear_down (Prepared *prepared);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Prepared, prepared_tear_down)

/* One life of a task. */
typedef struct {
  Job *job;
  guint task;
  gboolean is_worker;         /* also if it is task 0 */
  MusterPositionSlots *slots; /* (not owned) (nullable) */
  MusterScaffold *scaffold;
  MusterBatches *batches;
  MusterHook *hook;
  MusterMonitoredSession *session; /* NULL: it couldn't be made */
  GError *error;
  guint n_recoveries;
  MusterClock *clock; /* (not owned) (nullable) the hook's */
  gint64 hold_us;
  gint64 settle_us; /* with masters of their own */
  gboolean always_restores;
  gint64 work;        /* in place of the job's: another graph; 0: the job's */
  gboolean continued; /* with the model on the master */
} Life;

MusterHook *life_hook (Life *life);
void life_begin (Life *life);
/* One turn of muster_position_run (). */
gboolean life_step (Life *life);
/* A crash, unless it has ended. */
void life_end (Life *life);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Life, life_end)
/* A thread's function: a whole life. data is a Life. */
gpointer life_live (gpointer data);

/* As many tasks, in the first slots, until the end of a job whose batches are dealt. */
void job_run_dealt (Job *job, guint n_tasks);
/* What is wrong with the latest checkpoint, or with how much went into it (transfer full). */
char *job_check_latest (Job *job, gint64 n_batches);
/* The rest of a life, after which so many batches are in the checkpoint. */
void life_run_to_end (Life *life, gint64 n_batches);

/* What the slot has in hand. */
gint64 life_in_hand (Life *life, guint slot);
/* A step of that kind (MUSTER_POSITION_TRAIN), with that batch, as the task of the slot, which
 * nobody knows to be there. */
void life_step_apart (Life *life, const char *kind, gint64 slot, gint64 position, gint64 deal);

void life_set_hold (Life *life, gint64 hold);

/* As `muster save`: by the meta graph that was exported, which has no positions. */
gboolean job_save_from_beside (Job *job, gboolean finds_positions, gint64 number, GError **error);

/* A task that dies in mid-step: what it has begun is counted, and nothing else. */
void job_cut_off_a_step (Job *job, MusterScaffold *scaffold, gint64 task);

G_END_DECLS
