// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/positioned_step_private.h"
#include "train/position/position.h"

G_BEGIN_DECLS

/* The names of the added nodes and tensors. */
#define MUSTER_POSITION_TASK "muster/task:0" /* int64 scalar, fed */
#define MUSTER_POSITION_POSITION                                                                   \
  MUSTER_POSITION_PLACEHOLDER ":0" /* int64 scalar, fed: batches before this one */
#define MUSTER_POSITION_HELD                                                                       \
  "muster/step/held:0" /* runs a task's whole step; the value of hold after it */
/* What the error of a step begins with that the master refuses, before it has changed anything.
 * TensorFlow would write an apostrophe with a backslash. */
#define MUSTER_POSITION_REFUSED "This step is not the next of task"

/* If batches are dealt, a step is one of three, and ends with one of these prefixes: "/held:0" is
 * the value of hold after it, "/dealt:0" what the slot has in hand then. */
#define MUSTER_POSITION_NOTHING        (-1)          /* in hand */
#define MUSTER_POSITION_TRAIN          "muster/step" /* trains what is in hand, and draws the next */
#define MUSTER_POSITION_LAST           "muster/last" /* trains, and draws nothing */
#define MUSTER_POSITION_DRAW           "muster/draw" /* draws, with nothing in hand */
#define MUSTER_POSITION_BEGUN_NOW      MUSTER_POSITION_BEGUN "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_SLOT_BEGUN_NOW MUSTER_POSITION_SLOT_BEGUN "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_SLOT_DONE_NOW  MUSTER_POSITION_SLOT_DONE "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_TAKEN_NOW      MUSTER_POSITION_TAKEN "/settled:0" /* after begun and done */
#define MUSTER_POSITION_DONE_NOW       MUSTER_POSITION_DONE "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_HOLD_NOW       MUSTER_POSITION_HOLD "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_SET_HOLD       "muster/hold/set"
#define MUSTER_POSITION_NEW_HOLD       "muster/hold/value:0" /* int64 scalar, fed to muster/hold/set */
/* The number of the job's batches once the chief has written that it is over; 0 before. */
#define MUSTER_POSITION_OVER_NOW MUSTER_POSITION_OVER "/Read/ReadVariableOp:0"
#define MUSTER_POSITION_SET_OVER "muster/over/set"
#define MUSTER_POSITION_NEW_OVER "muster/over/value:0" /* int64 scalar, fed to muster/over/set */

/* Of a model whose tasks have a master each (position_fence.c): ops that add to all of begun, and
 * that count the step of the task fed as MUSTER_POSITION_TASK as done. */
#define MUSTER_POSITION_RAISE_FENCE "muster/begun/fence"
#define MUSTER_POSITION_FORGET      "muster/done/forget"
#define MUSTER_POSITION_FENCED      ((gint64)1 << 48) /* above each count */

/* MUSTER_POSITION_RESTORING has a value from before a chief restores the model until it has: no
 * step begins. No saver knows it, so that a restore, in whatever order it assigns, leaves it alone.
 */
#define MUSTER_POSITION_IS_RESTORING    "muster/restoring/is_set:0"
#define MUSTER_POSITION_SET_RESTORING   "muster/restoring/set"
#define MUSTER_POSITION_CLEAR_RESTORING "muster/restoring/clear"

/* MUSTER_POSITION_MARK is of each task's own master, and has a value from the task's first session
 * there on: if it has none, that master was started since, and runs no step of an earlier session.
 */
#define MUSTER_POSITION_IS_MARKED "muster/mark/is_set:0"
#define MUSTER_POSITION_SET_MARK  "muster/mark/set"

#define MUSTER_POSITION_MOST_TASKS 65536

/* The device of the variables: the global step's, or else the first variable's; borrowed from the
 * meta graph. */
const char *muster_position_device (MusterMetaGraph *meta_graph);

/* The names of the added variables, until NULL. */
const char *const *muster_position_variables (gboolean is_dealt, gsize *n);
/* Those that only a model whose batches are dealt has, until NULL. */
const char *const *muster_position_dealt_variables (void);

/* The values on the master. Clear it. */
typedef struct {
  gboolean is_dealt;     /* set before reading: batches are dealt, and counts are those of slots */
  gboolean is_raised;    /* the fence is: no step begins until the chief has restored the model */
  gboolean is_restoring; /* MUSTER_POSITION_RESTORING has a value, likewise: the chief does that */
  MusterTensor *begun;   /* (owned) int64 [n_tasks] */
  MusterTensor *done;    /* (owned) likewise */
  MusterTensor *taken;   /* (owned) (nullable) if they are dealt: int64 [n_tasks] */
  MusterTensor *origin;  /* (owned) (nullable) likewise: int64 [any] */
  gint64 hold;
} MusterPositionState;

static inline gboolean
muster_position_is_fenced (const MusterPositionState *self)
{
  return self->is_raised || self->is_restoring;
}
void muster_position_state_clear (MusterPositionState *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterPositionState, muster_position_state_clear)

/* DATA_LOSS if the variables have a wrong type, shape or value. A graph for one master, or that an
 * older muster extended, knows no MUSTER_POSITION_RESTORING. */
gboolean muster_position_read (MusterSession *session, guint n_tasks, MusterPositionState *state,
                               gint64 deadline_us, GCancellable *cancellable, GError **error);
/* DATA_LOSS unless it is int64 [n_tasks] with counts that can be multiplied by n_tasks. */
gboolean muster_position_check_counts (const MusterTensor *tensor, guint n_tasks, GError **error);
/* DATA_LOSS unless it is int64 [n_slots] with numbers of draws. */
gboolean muster_position_check_taken (const MusterTensor *tensor, guint n_slots, GError **error);
/* Of an op that answers a question. */
gboolean muster_position_is_true (const MusterTensor *tensor);
/* What a slot has in hand. */
gint64 muster_position_taken (const MusterPositionState *self, guint slot);
gint64 muster_position_begun (const MusterPositionState *self, guint task);
gint64 muster_position_done (const MusterPositionState *self, guint task);
gboolean muster_position_is_unended (const MusterPositionState *self, guint task);
/* The first task with a step that hasn't ended, except the task but; n_tasks: none. */
guint muster_position_busy (const MusterPositionState *self, guint n_tasks, guint but);
/* Values of hold. TensorFlow's variables have no compare-and-set, so hold must contain nothing that
 * is lost when one writer overwrites another: see muster_position_set_over (). */
enum { MUSTER_POSITION_GO, MUSTER_POSITION_WAIT };
gboolean muster_position_set_hold (MusterSession *session, gint64 hold, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);
/* For the chief: a job of n_batches is over. */
gboolean muster_position_set_over (MusterSession *session, gint64 n_batches, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

/* The number, among all of the job's batches, of a batch by the number of its draw: draws take the
 * batches in order that a job with a fixed number of tasks, which had done origin, hasn't done. -1
 * for MUSTER_POSITION_NOTHING. */
gint64 muster_position_dealt (gint64 deal, const MusterTensor *origin);

/* A wait for other tasks that takes longer is mentioned. */
#define MUSTER_POSITION_TELL_US (5 * MUSTER_SECOND)
/* How long to wait for steps that a restore comes after: limit_us, but at most half of what is left
 * until the deadline. */
gint64 muster_position_share (gint64 limit_us, gint64 deadline_us, MusterClock *clock);

/* The instant in timeout_us, on the system's clock. */
gint64 muster_position_in_us (gint64 timeout_us);

/* Before a reset: sets hold and waits, at most five seconds, until no step is running. TensorFlow's
 * server frees reference variables while steps write to them, and crashes; steps on resource
 * variables fail in ways that don't show the reset. */
typedef struct {
  guint n_tasks;
  guint but;          /* a task whose step was aborted, which isn't waited for; n_tasks: none */
  MusterClock *clock; /* (not owned) */
  gint64 deadline_us; /* for its calls, and therefore on the system's clock */
  gboolean is_dealt;
} MusterPositionQuiesce;
void muster_position_quiesce (MusterSession *session, const MusterPositionQuiesce *quiesce,
                              GCancellable *cancellable);

/* The same before a restore, for tasks with a master each: fences the model, and waits until each
 * step that had begun is done, limit_us at most, and its share of the time. FALSE if it isn't known
 * that no step begins until muster_position_open (). */
gboolean muster_position_rest (MusterSession *session, const MusterPositionQuiesce *quiesce,
                               gint64 limit_us, GCancellable *cancellable, GError **error);
/* The chief has restored the model. */
gboolean muster_position_open (MusterSession *session, gint64 deadline_us,
                               GCancellable *cancellable, GError **error);
/* How long a step may take that goes on though the process that began it is gone. */
#define MUSTER_POSITION_STEP_US (60 * MUSTER_SECOND)
/* Whether this task's master may run a step of an earlier process: not if it was started since the
 * task's last session (muster_position_mark ()). FAILED_PRECONDITION if the graph has no fence. */
gboolean muster_position_is_marked (MusterSession *session, gboolean *is_marked, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);
gboolean muster_position_mark (MusterSession *session, gint64 deadline_us,
                               GCancellable *cancellable, GError **error);

/* For a task without positions: FAILED_PRECONDITION if the model has some, in which nothing would
 * stop its steps. */
gboolean muster_position_refuse (MusterMaster *master, MusterMetaGraph *meta_graph,
                                 GBytes *config /* nullable */, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);

/* Takes the fence off begun, as it was read. */
void muster_position_read_fence (MusterPositionState *state);
gboolean muster_position_fence (MusterSession *session, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);
/* Counts a task's step that was cut off as done, in a model that is fenced: it isn't waited for. */
gboolean muster_position_forget (MusterSession *session, guint task, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);
/* ABORTED */
gboolean muster_position_refuse_fenced (GError **error);

/* Whether a model that a chief has left is whole: each step that was running when this began has
 * ended, so that its task's begun equals its done, or the task has begun another. A task begins one
 * only after the one before. Waits until then, until_us at most, without holding any task. FALSE
 * with FAILED_PRECONDITION, and *torn, if a step of that task doesn't end. */
typedef struct {
  guint n_tasks;
  MusterClock *clock; /* (not owned) */
  gint64 until_us;    /* on it */
  gint64 deadline_us; /* for its calls, and therefore on the system's clock */
  gboolean is_dealt;
  guint ended;           /* a task whose step is known to have ended; n_tasks: none */
  gint64 ended_until_us; /* it may not be counted yet: how long that is waited for */
} MusterPositionAwait;
gboolean muster_position_await_whole (MusterSession *session, const MusterPositionAwait *await,
                                      guint *torn, GCancellable *cancellable, GError **error);

/* Pauses between polls, from 1 ms growing to 50 ms, until until_us at most. */
typedef struct {
  MusterClock *clock; /* (not owned) */
  gint64 pause_us;
} MusterPositionPause;
gboolean muster_position_pause (MusterPositionPause *self, gint64 until_us,
                                GCancellable *cancellable, GError **error);

/* A worker ends a wait without another step when that (nullable) is cancelled. */
void muster_position_hook_set_preempted (MusterHook *hook, GCancellable *preempted);

/* TRUE between two steps of this task's own: it has a batch left, and holds nobody else's slot. */
gboolean muster_position_may_pause (MusterHook *hook);
/* In place of a step: a run without one. */
gboolean muster_position_run_idle (MusterHook *hook, MusterMonitoredSession *session,
                                   GError **error);

G_END_DECLS
