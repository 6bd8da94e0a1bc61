// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic_private.h"

G_BEGIN_DECLS

struct _MusterElastic {
  MusterElasticOptions options;
  MusterPositionSlots *slots;   /* (owned) */
  MusterMembership *membership; /* (owned) (nullable) NULL: it isn't a member */
  MusterMembership *lent;       /* (owned) (nullable) in the slot that it has taken over */
  MusterElasticRole role;
  guint n_rounds;
  char *refusal;     /* (owned) (nullable) why the last one was refused */
  gboolean is_brief; /* the round began without a chief: little time to get its session */
  guint n_refusals;  /* of its claims, since it has had a session */
  gint64 n_batches;
  gboolean has_answered; /* the master answered the last request to join */
  char *said;            /* (owned) (nullable) the last message to options.waiting since a round */
  gint64 paused_us;      /* when the pause for more tasks began; 0: it isn't paused */
  GError *gave_up;       /* (owned) (nullable) of a pause that timed out */
  GCancellable *cancellable; /* (owned) (nullable) of the round */
  GCancellable *callers;     /* (owned) (nullable) the caller's, which cancels the round's */
  gulong callers_id;

  GMutex lock;            /* guards what follows */
  MusterRoster *roster;   /* (owned) (nullable) the latest */
  gboolean is_lost;       /* the membership was lost */
  gint64 no_chief_us;     /* since when the model has no chief; 0: it has one */
  gint64 known_epoch;     /* of the last chief that the server has told of */
  gint64 not_before_us;   /* the earliest time of this task's next claim */
  gboolean is_leaderless; /* this task trains without a chief, and can't be it now */
  gboolean is_in_round;
  gboolean is_changing;           /* the round ends: another role, or a lost membership */
  MusterCoordinator *coordinator; /* (owned) (nullable) the round's, while it can step */
};

static inline gint64
muster_elastic_now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static inline gint64
muster_elastic_in_us (gint64 timeout_us)
{
  return muster_deadline_after (muster_elastic_now_us (), timeout_us);
}

/* --- the membership (elastic_member.c) --- */

/* This task's request for a slot. */
MusterJoin muster_elastic_request (const MusterElastic *self);

/* Leaves, and clears *membership (nullable). If the call fails, the server removes the member when
 * its stream breaks or its lease ends. */
void muster_elastic_leave (MusterMembership **membership);

/* Returns the latest roster (transfer full). */
MusterRoster *muster_elastic_copy_roster (MusterElastic *self);

/* Reports to options.waiting what this task waits for. Skips a message that is equal to the last
 * one, unless a round began since. */
void muster_elastic_say_waiting (MusterElastic *self, const char *message);

/* FALSE with DEADLINE_EXCEEDED and the last message to options.waiting. */
gboolean muster_elastic_time_out (const MusterElastic *self, GError **error);

/* --- the slots (elastic_slots.c) --- */

/* elastic must outlive the object's use. */
MusterPositionSlots *muster_elastic_slots_new (MusterElastic *elastic);

/* --- the role (elastic_role.c) --- */

/* How many members are in lower slots. With the lock held. */
guint muster_elastic_rank (const MusterElastic *self);

/* TRUE if the round should end: the membership was lost, or this task is a worker without a chief
 * and it is time for its claim. If it still waits for the model, the round ends before that: no
 * chief prepares the model. With the lock held. */
gboolean muster_elastic_should_change (const MusterElastic *self);

/* This task's claim was refused, or another task replaced it as the chief. Logs that, and delays
 * the next claim. */
void muster_elastic_note_fenced (MusterElastic *self, const GError *failure);

/* --- the pause (elastic_pause.c) --- */

/* How many tasks the job needs. */
guint muster_elastic_n_needed (const MusterElastic *self, const MusterRoster *roster);
/* TRUE if the job isn't over and has fewer tasks than it needs. */
gboolean muster_elastic_has_few (const MusterElastic *self, const MusterRoster *roster);
/* "waiting for tasks: 1 of at least 3" (transfer full) */
char *muster_elastic_few_text (const MusterElastic *self, const MusterRoster *roster);

/* --- the round (elastic.c) --- */

/* Ends the round if it should end: after the present step, or by cancelling the wait for the model.
 */
void muster_elastic_end_round_if_due (MusterElastic *self);

G_END_DECLS
