// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic.h"

G_BEGIN_DECLS

struct _MusterElastic {
  MusterElasticOptions options;
  MusterPositionSlots *slots;   /* (owned) */
  MusterMembership *membership; /* (owned) (nullable) while it is a member */
  MusterMembership *lent;       /* (owned) (nullable) in another's slot */
  MusterElasticRole role;
  guint n_rounds;
  guint n_refusals; /* of claims, in a row */
  gint64 n_batches;
  gboolean has_answered; /* the master, at the last try to join */
  char *said;            /* (owned) (nullable) what it waits for before the round, as last said */
  gint64 paused_us;      /* since when it waits for tasks between two steps; 0: it doesn't */
  GError *gave_up;       /* (owned) (nullable) why it waits no longer */
  GCancellable *cancellable; /* (owned) (nullable) of the round */
  GCancellable *callers;     /* (owned) (nullable) what cancels it, too */
  gulong callers_id;

  GMutex lock;            /* guards what follows */
  MusterRoster *roster;   /* (owned) (nullable) the last one heard */
  gboolean is_lost;       /* the membership */
  gint64 no_chief_us;     /* since when there is none; 0: there is one */
  gint64 not_before_us;   /* when this task may claim the model again */
  gboolean is_leaderless; /* this task works on, since it can't be the chief now */
  gboolean is_in_round;
  gboolean is_changing;           /* the round ends for another role */
  MusterCoordinator *coordinator; /* (owned) (nullable) the round's, while it has a session */
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

/* What a task asks for: any slot. */
MusterJoin muster_elastic_any_slot (const MusterElastic *self);

/* Joins if it isn't a member, as soon as there is a place. */
gboolean muster_elastic_ensure_member (MusterElastic *self, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* Whoever leaves without an answer is missed by the server soon. */
void muster_elastic_leave (MusterMembership **membership);

/* Returns the last roster heard (transfer full). */
MusterRoster *muster_elastic_copy_roster (MusterElastic *self);

/* Says it once, until something else is said or a round begins. */
void muster_elastic_say_waiting (MusterElastic *self, const char *message);

/* DEADLINE_EXCEEDED, with what was said. */
gboolean muster_elastic_time_out (const MusterElastic *self, GError **error);

/* --- the slots (elastic_slots.c) --- */

/* elastic must outlive its use. */
MusterPositionSlots *muster_elastic_slots_new (MusterElastic *elastic);

/* --- the role (elastic_role.c) --- */

/* How many members are in lower slots. With the lock held. */
guint muster_elastic_rank (const MusterElastic *self);

/* Whether the round of a worker ends, for its membership or its role. While it waits for the model
 * no chief prepares it: the wait has no other end. With the lock held. */
gboolean muster_elastic_should_change (const MusterElastic *self);

/* Of a task that couldn't be the chief: whether it could now, if it is time to try again. The round
 * goes on if not. */
void muster_elastic_try_again (MusterElastic *self);

/* A claim was refused, or the role was lost to another's. */
void muster_elastic_note_fenced (MusterElastic *self, const GError *failure);

/* --- the pause (elastic_pause.c) --- */

/* How many tasks the job needs. */
guint muster_elastic_n_needed (const MusterElastic *self, const MusterRoster *roster);
/* TRUE if the job isn't over and has fewer tasks than it needs. */
gboolean muster_elastic_has_few (const MusterElastic *self, const MusterRoster *roster);
/* "waiting for tasks: 1 of at least 3" (transfer full) */
char *muster_elastic_few_text (const MusterElastic *self, const MusterRoster *roster);

/* --- the round (elastic.c) --- */

void muster_elastic_begin_round (MusterElastic *self, MusterElasticRole role,
                                 GCancellable *cancellable);

/* Ends the round if its time has come: between two steps, or in a wait for the model. */
void muster_elastic_end_round_if_due (MusterElastic *self);

G_END_DECLS
