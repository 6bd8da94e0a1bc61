// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/run_context_private.h"
#include "train/position/position_private.h"

G_BEGIN_DECLS

/* The time limit for reading the tasks' positions from the master. */
#define MUSTER_POSITION_ANSWER_US (60 * MUSTER_SECOND)

#define MUSTER_TYPE_POSITION_HOOK (muster_position_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER, POSITION_HOOK, MusterHook)

/* A step of the train op, a check whether all tasks have finished, or a run the hook doesn't act
 * on. */
typedef enum { OTHER, STEPPING, ENDING } MusterPositionRun;

/* Where a step is made. */
typedef struct {
  guint task;      /* or slot */
  gint64 position; /* steps that were made there before; -1: unknown */
  gint64 deal;     /* if batches are dealt: what is in hand there */
} MusterPositionPlace;

struct _MusterPositionHook {
  MusterHook parent;
  MusterPositionOptions options; /* strings and objects are owned */
  MusterClock *clock;            /* (owned) */
  guint n_tasks;
  gboolean is_dealt;
  char *train_op;          /* (owned) from begin on */
  GCancellable *stopped;   /* (owned) (nullable) the session's coordinator's */
  GCancellable *preempted; /* (owned) (nullable) */
  MusterRunContext *held;  /* (not owned) (nullable) the run before which it waits */
  gint64 settle_us;        /* how long a step of an earlier session may go on */
  gboolean may_find_step;  /* of an earlier process, at the task's own master; FALSE once it has
                            * found its place: its steps are its own then, and have ended when
                            * their session is lost, as the master has answered, or is gone */
  MusterPositionPlace own; /* the task's own */
  gboolean is_held;        /* as of the last step: the next one begins with a look */
  MusterPositionRun run;   /* the kind of the current run */
  guint held_at;           /* STEPPING: the index of hold among the run's fetches */

  /* if batches are dealt */
  MusterTensor *origin; /* (owned) (nullable) from the session on */
  guint dealt_at;       /* STEPPING: the index of what the slot has in hand then */
  guint64 version;      /* of the slots, when they were last looked at */
  gboolean is_looking;  /* for what is left in slots that no task is in */
  guint claimed;        /* a slot that was claimed; n_tasks: none */
  gint64 claimed_us;
  gint64 refused_us; /* how long it has paused as each step was refused; 0: the last one wasn't */
  gint64 refused_at; /* with a master of its own: the last refused step's position; -1: none */
  gboolean may_be_overtaken; /* likewise: by the last step of an earlier process, once */
  guint torn;                /* likewise: over whose step a chief has restored again, */
  gint64 torn_begun;         /* by its counts; -1: none */
  gint64 torn_done;
  MusterPositionPause refused_pause;
  gboolean is_lent; /* the next step is made in the claimed slot: */
  MusterPositionPlace lent;

  /* ENDING */
  guint over_at;       /* the index of over */
  guint done_at;       /* the index of done */
  guint begun_at;      /* the index of begun */
  guint taken_at;      /* if batches are dealt: the index of taken */
  gint64 n_done;       /* what all tasks had finished at the last check; -1: unknown */
  gint64 given_up_us;  /* when to give up unless n_done changes */
  char *awaited;       /* (owned) (nullable) the name of the task that is waited for */
  gint64 awaited_done; /* the batches that task has finished */
  gint64 awaited_us;   /* since when awaited_done hasn't changed */
  gboolean has_ended;  /* all batches are finished */
  gboolean is_idle;    /* the run is in place of a step */
};

/* position_hook.c */

/* Whether the batch in hand is beyond the job's last. */
gboolean muster_position_is_beyond (const MusterPositionHook *self, gint64 deal);
/* Returns TRUE if this task has no batches left. */
gboolean muster_position_is_over (const MusterPositionHook *self);

/* position_settle.c */

/* An unfinished step affects all tasks: all restart from the last checkpoint. */
gboolean muster_position_undo (MusterPositionHook *self, guint task, MusterSession *session,
                               GError **error);
/* Waits until the task's own last step has ended and the chief has released the hold. A stop
 * cancels the wait. Then the task has a position, and something in hand. */
gboolean muster_position_settle (MusterPositionHook *self, MusterSession *session,
                                 gint64 deadline_us, GError **error);

/* Whether a step failed because another process has made the slot's next: nothing of it was
 * written, so it is enough to look where the slot is now. A task that was asleep may have lost its
 * slot, and make one more step there before it knows. FALSE after 10 s in which every step was
 * refused. */
gboolean muster_position_looks_again (MusterPositionHook *self, const GError *failure);

/* position_left.c: what is left in slots that no task is in */

/* Whether a step there is unfinished, or a batch in hand. */
gboolean muster_position_is_left (const MusterPositionHook *self, const gint64 *begun,
                                  const gint64 *done, const gint64 *taken, guint slot);
/* Looks for it if it may be this task's: sets is_lent if the next step is made there. */
gboolean muster_position_look (MusterPositionHook *self, MusterSession *session, GError **error);
/* After a step in the claimed slot, or in place of it. */
void muster_position_give_back (MusterPositionHook *self);

/* position_end.c: a run of a task that has no batch left */

/* The task's name for messages (transfer full): a cluster without a chief starts with worker:0. */
char *muster_position_name_of (const MusterPositionHook *self, guint task);
void muster_position_fetch_end (MusterPositionHook *self, MusterRunContext *context);
gboolean muster_position_check_end (MusterPositionHook *self, MusterRunContext *context,
                                    GError **error);
/* Before a session's first run. */
void muster_position_reset_end (MusterPositionHook *self);
/* For the chief: writes that the job is over. */
void muster_position_tell_end (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                               GCancellable *cancellable);

G_END_DECLS
