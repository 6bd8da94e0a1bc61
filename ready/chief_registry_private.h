// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "master/lease.h"

G_BEGIN_DECLS

/* MusterChiefRegistry records for each model who its chief is, its phase and epoch, and whether its
 * lease is held. It implements the rules for claims:
 *
 *   - a living chief keeps its model unless the claim has a higher epoch;
 *   - an epoch below the highest ever seen is refused, whether a chief is alive or not;
 *   - epoch 0 requests the one after the highest, and is refused if a chief is alive;
 *   - a job that is over can't be claimed again;
 *   - take_over ignores a living chief (with spares_living only the same process's) and the end of
 *     the job, but an epoch below the highest is still refused, since it identifies a replaced
 *     chief;
 *   - a model that shares a variable with another one, whose chief lives, is refused, but for
 *     take_over without spares_living: preparing it would overwrite that one's values.
 *
 * A chief whose lease ran out or was released may return with its epoch: the same process continues
 * in its phase.
 *
 * Names come from the network. A model's name has 1 to 256 bytes of printable UTF-8, as have task
 * and process names, which may be empty; details and checkpoint names have at most 4,096.
 *
 * At most 10,000 models are kept. For another one, the model is forgotten whose chief was lost
 * first, of those that aren't prepared; jobs that are over are the last. From then on, a name that
 * isn't known may be a forgotten one: an epoch below the highest of theirs is refused, and the next
 * is above it.
 *
 * Time is read only from its clock, and it has no thread: an expired lease counts as lost at the
 * next call; listeners are notified by muster_chief_registry_expire (). Any thread. */

typedef struct _MusterChiefRegistry MusterChiefRegistry;

/* What has changed about a model. */
typedef enum {
  MUSTER_MODEL_CLAIMED,    /* it has a new chief, possibly with another graph */
  MUSTER_MODEL_CHANGED,    /* what waiters are notified of (muster_chief_changed ()) */
  MUSTER_MODEL_READY,      /* only whether its ready op passes */
  MUSTER_MODEL_PROGRESSED, /* only its chief's step or durable step */
} MusterModelChange;

/* Called after each change of a model, without the registry's lock, on the thread that made the
 * change. */
typedef void (*MusterModelChanged) (const char *model, MusterModelChange change,
                                    gpointer user_data);

MusterChiefRegistry *muster_chief_registry_new (MusterClock *clock, gint64 lease_us);
/* changed (nullable). Not while another thread uses the registry. */
void muster_chief_registry_set_listener (MusterChiefRegistry *self, MusterModelChanged changed,
                                         gpointer user_data);
void muster_chief_registry_free (MusterChiefRegistry *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterChiefRegistry, muster_chief_registry_free)

gint64 muster_chief_registry_lease_us (MusterChiefRegistry *self);

/* TRUE for 1 to 256 printable bytes; otherwise INVALID_ARGUMENT, which begins with what. */
gboolean muster_chief_registry_check_name (const char *what, const char *name, GError **error);
/* The same for a longer text that may be empty, such as the name of an op: up to 4096 bytes. */
gboolean muster_chief_registry_check_text (const char *what, const char *text, GError **error);

/* Claims a model. Returns the epoch, or 0 with FAILED_PRECONDITION, OUT_OF_RANGE, INVALID_ARGUMENT,
 * ALREADY_EXISTS or RESOURCE_EXHAUSTED. The chief is STARTING until it announces a phase, and the
 * model not prepared. graph (nullable) is the chief's, and is compared with the previous chief's.
 * *before (nullable out, transfer full) as in muster_session_claim (). */
gint64 muster_chief_registry_claim (MusterChiefRegistry *self, const MusterClaim *claim,
                                    const char *who, MusterGraph *graph,
                                    MusterAnnouncement **before, GError **error);

/* Records an announcement and renews the lease. FAILED_PRECONDITION names the chief that holds it.
 * The sender is identified by the epoch and, if set, by "who". Phase UNKNOWN keeps the phase, step
 * -1 the step. When the job is over, no other phase is accepted. */
gboolean muster_chief_registry_announce (MusterChiefRegistry *self,
                                         const MusterAnnouncement *announcement, GError **error);

/* Releases the lease of the chief with that epoch: its process has ended, or it has released it. */
void muster_chief_registry_release (MusterChiefRegistry *self, const char *model, gint64 epoch);

/* Sets whether the model's ready op passes. Ignored unless the chief with that epoch has prepared
 * the model. */
void muster_chief_registry_set_ready (MusterChiefRegistry *self, const char *model, gint64 epoch,
                                      gboolean is_ready);

/* Whether the model's variables are elsewhere, so that resets and stops don't concern it. */
gboolean muster_chief_registry_is_elsewhere (MusterChiefRegistry *self, const char *model);
void muster_chief_registry_set_elsewhere (MusterChiefRegistry *self, const char *model,
                                          gboolean is_elsewhere);

/* Handles the loss of all variables in these containers ((nullable): in all): no model that had one
 * is prepared, and its phase is unknown. Announcements that such a model is prepared or trained are
 * ignored until its chief has prepared it again. Chiefs that claimed during the reset are kept:
 * n_claims is muster_chief_registry_n_claims () before the reset. */
void muster_chief_registry_reset (MusterChiefRegistry *self, guint64 n_claims,
                                  const char *const *containers);
/* The number of claims granted. */
guint64 muster_chief_registry_n_claims (MusterChiefRegistry *self);

/* The number of models that are kept, and whether this is one of them. */
guint muster_chief_registry_n_models (MusterChiefRegistry *self);
gboolean muster_chief_registry_knows (MusterChiefRegistry *self, const char *model);

/* A model's announcement; NULL if no chief has ever registered. (transfer full) */
MusterAnnouncement *muster_chief_registry_find (MusterChiefRegistry *self, const char *model);
/* The graph of its last chief, (transfer full) (nullable): while that one may come back or its
 * model be continued. */
MusterGraph *muster_chief_registry_graph (MusterChiefRegistry *self, const char *model);
/* (transfer full) (element-type MusterAnnouncement) */
GPtrArray *muster_chief_registry_list (MusterChiefRegistry *self);

/* Looks at all leases, and handles those that have expired. Returns when to look again, or
 * MUSTER_WAIT_FOREVER if none is held. */
gint64 muster_chief_registry_expire (MusterChiefRegistry *self);

G_END_DECLS
