// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/membership.h"
#include "session/manager.h"
#include "train/monitored/coordinator.h"
#include "train/monitored/hook.h"
#include "train/position/position.h"

G_BEGIN_DECLS

/* A task's part in a job whose tasks are equal: its membership at the master, and the role that it
 * has. A task trains in rounds (train/task.c): in each it is the chief or a worker, and a round
 * ends when the role changes. When the model has no chief, the member in the lowest slot claims it
 * at once; each further one waits a little longer, since those before it may be silent. The first
 * claim of the model wins; the others are refused.
 *
 * All of this is for the thread that trains. */
typedef struct _MusterElastic MusterElastic;

/* Strings and objects are borrowed for its life. */
typedef struct {
  MusterMaster *master;
  const char *model;
  const char *task; /* (nullable) for messages */
  guint n_slots;
  gint slot; /* -1: any that is free; else this task's, for which it waits */
  gboolean never_leads;
  gboolean is_apart; /* the model isn't where the members are: it outlives a restart there */
  guint min_tasks;   /* no task starts before there are this many, or trains with fewer; 0: 1 */
  guint max_tasks;   /* a task waits while there are this many others; 0: n_slots */
  gint64 timeout_us; /* how long a task that has started waits for others */
  MusterSessionProgress waiting; /* (nullable) */
  gpointer waiting_data;
} MusterElasticOptions;

typedef enum {
  MUSTER_ELASTIC_CHIEF,
  MUSTER_ELASTIC_WORKER,
  MUSTER_ELASTIC_OVER, /* the job ended after this task had taken part */
  MUSTER_ELASTIC_LOST, /* the task isn't a member any more, and joins again */
} MusterElasticRole;

MusterElastic *muster_elastic_new (const MusterElasticOptions *options);
/* Leaves the job. */
void muster_elastic_free (MusterElastic *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterElastic, muster_elastic_free)

/* Joins if it isn't a member. Retries while no slot is free, the job has max_tasks tasks, or the
 * master is unavailable. DEADLINE_EXCEEDED says what it waited for. */
gboolean muster_elastic_join (MusterElastic *self, gint64 deadline_us, GCancellable *cancellable,
                              GError **error);

/* Then: waits for enough tasks, if it hasn't had a round, and for a role. DEADLINE_EXCEEDED
 * likewise. */
gboolean muster_elastic_find_role (MusterElastic *self, gint64 deadline_us,
                                   GCancellable *cancellable, MusterElasticRole *role,
                                   GError **error);

/* This task, whose turn it is, could be the chief: then failure is NULL. Otherwise it trains
 * without a chief until it is asked again. */
void muster_elastic_note_may_lead (MusterElastic *self, const GError *failure);
/* TRUE if it is time to ask again, and if so, to claim the model. */
gboolean muster_elastic_is_leader_due (MusterElastic *self);

void muster_elastic_begin_round (MusterElastic *self, MusterElasticRole role,
                                 GCancellable *cancellable);

/* After a failure of join or find_role: why, as of a session that isn't ready; NULL if the master
 * didn't answer. (transfer full) (nullable) (element-type MusterReason) */
GPtrArray *muster_elastic_reasons (MusterElastic *self);

/* In a round: this task's slot, the other tasks' slots, and the cancellable that ends a wait for
 * the model when the role changes or the caller's cancellable is cancelled. Borrowed. */
guint muster_elastic_slot (MusterElastic *self);
MusterPositionSlots *muster_elastic_slots (MusterElastic *self);
GCancellable *muster_elastic_cancellable (MusterElastic *self);
/* TRUE if the model had a chief before this round, at this server. */
gboolean muster_elastic_is_takeover (MusterElastic *self);
/* TRUE if this task had another round before. */
gboolean muster_elastic_has_worked (MusterElastic *self);
/* The timeout of this round's wait for the model: timeout_us (0: no limit) or less. */
gint64 muster_elastic_timeout (MusterElastic *self, gint64 timeout_us);

/* The round has a session in which it can step (its coordinator): from now on the round ends
 * between two steps. Until then (NULL) it waits for the model, or to be let step, and a change ends
 * the wait: nobody else may be there to end it. */
void muster_elastic_set_session (MusterElastic *self, MusterCoordinator *coordinator);
/* Until when this task tries to get a session back with which it leads the job. A chief whose own
 * master is away trains nothing, and holds the lease. */
gint64 muster_elastic_leads_until (MusterElastic *self);
/* Then: the round ends, and another follows. */
void muster_elastic_give_way (MusterElastic *self);
/* Before a step: FALSE with CANCELLED if the slot isn't this task's any more. */
gboolean muster_elastic_check (MusterElastic *self, GError **error);

/* After a step, or a run without one: FALSE if the round ends here. */
gboolean muster_elastic_may_step (MusterElastic *self, gboolean has_trained);

/* Between two steps: "waiting for tasks: 1 of at least 3" if the next one has to wait, since the
 * job has fewer tasks than it needs; else NULL. A job has as many as the server says, and needs as
 * many as the task that asks for the most. The roster's version goes to *version. (transfer full)
 */
char *muster_elastic_why_paused (MusterElastic *self, guint64 *version);
/* Then: waits until the roster is later than that version, the session is to stop (coordinator), or
 * a run without a step is due. After timeout_us in a row the training ends. */
void muster_elastic_pause (MusterElastic *self, guint64 version, MusterCoordinator *coordinator);
/* After a round that ended without a failure: FALSE with DEADLINE_EXCEEDED if that was the reason.
 */
gboolean muster_elastic_check_pause (MusterElastic *self, GError **error);

/* After a round: TRUE if it ended because the role has changed or the membership was lost: another
 * round follows. is_fenced: it was refused as chief, or lost that role, with failure (nullable).
 * FALSE: the round's result is the training's. */
gboolean muster_elastic_goes_on (MusterElastic *self, gboolean is_fenced, const GError *failure);

/* The hook of a round, before those that act on a step: makes no step in a slot that was lost.
 * elastic must outlive it. */
MusterHook *muster_elastic_hook_new (MusterElastic *elastic);

G_END_DECLS
