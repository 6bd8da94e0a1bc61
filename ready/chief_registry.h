// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "master/lease.h"

G_BEGIN_DECLS

/* MusterChiefRegistry is where chiefs announce what they prepare: for each model who its chief is,
 * in which phase, under which epoch, and whether its lease is held. The rules of claiming stand
 * here and nowhere else:
 *
 *   - a living chief keeps its model against all who don't bring a higher epoch;
 *   - who brings an epoch below the highest ever seen is refused, whether anybody lives or not;
 *   - epoch 0 asks for the one after the highest, where no living chief stands in the way;
 *   - a job that is over isn't claimed again;
 *   - take_over: neither a living chief nor the end of the job stands in the way; an epoch below
 *     the highest is refused even so, since by its epoch a chief that was ousted is known.
 *
 * A chief whose lease ran out, or who let go, may come back under its epoch: the same process
 * finds its phase as it left it.
 *
 * Names come from the network: a model's has 1 to 256 bytes of printable UTF-8, and so have a task
 * and a process (which may be empty); a detail and a checkpoint's name have at most 4,096. At most
 * 10,000 models are kept.
 *
 * It reads time only from its clock and starts no thread: a lease that has run out counts as lost
 * at the next look; those who listen hear of it from muster_chief_registry_expire (). Any thread.
 */

typedef struct _MusterChiefRegistry MusterChiefRegistry;

/* What has changed of a model, so that only those hear of it who need it. */
typedef enum {
  MUSTER_MODEL_CLAIMED,    /* it has a new chief, whose graph may be another */
  MUSTER_MODEL_CHANGED,    /* what a waiter is told (muster_chief_changed ()) */
  MUSTER_MODEL_READY,      /* only whether its ready op says yes */
  MUSTER_MODEL_PROGRESSED, /* only how far its chief has trained and saved */
} MusterModelChange;

/* Called after each change of a model, without the registry's lock held, on the thread that changed
 * it. */
typedef void (*MusterModelChanged) (const char *model, MusterModelChange change,
                                    gpointer user_data);

MusterChiefRegistry *muster_chief_registry_new (MusterClock *clock, gint64 lease_us);
/* Before the first claim, and once. */
void muster_chief_registry_set_listener (MusterChiefRegistry *self, MusterModelChanged changed,
                                         gpointer user_data);
void muster_chief_registry_free (MusterChiefRegistry *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterChiefRegistry, muster_chief_registry_free)

gint64 muster_chief_registry_lease_us (MusterChiefRegistry *self);

/* TRUE for a text of 1 to 256 printable bytes; INVALID_ARGUMENT that says what it is of. */
gboolean muster_chief_registry_check_name (const char *what, const char *name, GError **error);

/* Claims; returns the epoch, or 0 with FAILED_PRECONDITION, OUT_OF_RANGE, INVALID_ARGUMENT or
 * RESOURCE_EXHAUSTED. The chief is STARTING until it announces a phase, and the model unprepared.
 * graph (nullable) is the chief's. *before (nullable out, transfer full) as in
 * muster_session_claim (). */
gint64 muster_chief_registry_claim (MusterChiefRegistry *self, const MusterClaim *claim,
                                    const char *who, MusterGraph *graph,
                                    MusterAnnouncement **before, GError **error);

/* Takes an announcement in and renews the lease; FAILED_PRECONDITION names the chief that has it
 * now. Who announces is known by the epoch, and by "who" where it is given. Phase UNKNOWN leaves
 * the phase as it is, a step of -1 the step. Once the job is over no other phase is taken. */
gboolean muster_chief_registry_announce (MusterChiefRegistry *self,
                                         const MusterAnnouncement *announcement, GError **error);

/* The chief of that epoch is gone: its process has ended, or it let go. */
void muster_chief_registry_release (MusterChiefRegistry *self, const char *model, gint64 epoch);

/* The model's ready op says yes or no now; of no effect unless the chief of that epoch has
 * prepared it. */
void muster_chief_registry_set_ready (MusterChiefRegistry *self, const char *model, gint64 epoch,
                                      gboolean is_ready);

/* All variables are gone: nothing is prepared any more, and nobody knows which phase it is; a chief
 * that goes on repeating that it is prepared, or trains, isn't believed until it has prepared
 * again. A chief that claimed while the master was being reset stays: n_claims is
 * muster_chief_registry_n_claims () as it was before. */
void muster_chief_registry_reset (MusterChiefRegistry *self, guint64 n_claims);
/* How many claims it has granted. */
guint64 muster_chief_registry_n_claims (MusterChiefRegistry *self);

/* What is announced of a model; NULL: no chief has ever registered. (transfer full) */
MusterAnnouncement *muster_chief_registry_find (MusterChiefRegistry *self, const char *model);
/* The graph of its last chief, (transfer full) (nullable). */
MusterGraph *muster_chief_registry_graph (MusterChiefRegistry *self, const char *model);
/* (transfer full) (element-type MusterAnnouncement) */
GPtrArray *muster_chief_registry_list (MusterChiefRegistry *self);

/* Takes note of leases that have run out, and returns when the next may: MUSTER_WAIT_FOREVER where
 * none is held. */
gint64 muster_chief_registry_expire (MusterChiefRegistry *self);

G_END_DECLS
