// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/chief_gate_private.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/core/alarm.h"
#include "server/core/server_private.h"
#include "server/services/announce_service.h"
#include "server/services/readiness_tracker.h"

G_BEGIN_DECLS

struct _MusterAnnounceService {
  MusterServer *server; /* (not owned) */
  MusterReadinessTracking tracking;
  MusterAlarm *alarm; /* (owned) ends expired leases */

  GMutex lock;
  /* (element-type utf8 MusterChiefLease) owned: the last lease granted for each model of the
   * registry, even if its stream has ended; guarded by lock */
  GHashTable *leases;
  gboolean stopped; /* guarded by lock */
};

/* --- leases (chief_lease.c) --- */

/* A granted Claim, until either side ends its stream. */
typedef struct {
  gatomicrefcount refs;            /* the table's, the cancellable's, and the handler's */
  MusterAnnounceService *service;  /* (not owned) */
  char *model;                     /* (owned) */
  char *session_handle;            /* (owned) "" if the steps aren't the server's */
  char *caller;                    /* (owned) whose claim it is */
  char *proof;                     /* (owned) the claim's secret; or "" */
  gboolean has_ousted;             /* set by the grant: another caller's living chief */
  char *ready_op;                  /* (owned) (nullable) */
  gint64 epoch;                    /* set by the grant */
  guint64 claim;                   /* set by the grant: the number of the claim in the registry */
  MusterReadinessTracker *tracker; /* (owned) (nullable) guarded by the service's lock */
  gint64 turn;                     /* of its last announcement; guarded by the service's lock */

  GMutex lock;
  MusterRpcCall *call; /* (owned) (nullable) NULL once it has been ended; guarded by lock */
  gboolean is_told;    /* the grant was sent; guarded by lock */
  gint64 hold_us;      /* the chief is asked to save and hold until then; set with both locks */
} MusterChiefLease;

MusterChiefLease *muster_chief_lease_new (MusterAnnounceService *service, MusterRpcCall *call,
                                          const Muster__ClaimRequest *request);
MusterChiefLease *muster_chief_lease_ref (MusterChiefLease *self);
/* lease (nullable) */
void muster_chief_lease_unref (gpointer lease);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterChiefLease, muster_chief_lease_unref)

/* Returns TRUE if nobody has the lease, or who has it knows the secret. self (nullable) */
gboolean muster_chief_lease_is_of (const MusterChiefLease *self, const char *proof);

/* Sends the grant on the stream, unless the stream has ended because another chief has claimed.
 * before (nullable): the chief before it. */
void muster_chief_lease_send_grant (MusterChiefLease *self, const MusterAnnouncement *before);

/* Tells the chief that the server is draining, or its job until hold_us; after its grant, which
 * says so itself. Call with the service's lock held. */
void muster_chief_lease_tell_drain (MusterChiefLease *self, gint64 hold_us);

/* How long the chief is yet to hold; not positive: no longer. */
gint64 muster_chief_lease_drain_left_us (MusterChiefLease *self);

/* Ends the stream; only the first call has an effect. error (nullable) */
void muster_chief_lease_end (MusterChiefLease *self, const GError *error);

/* --- claims (claim_service.c) --- */

void muster_claim_service_enter (MusterAnnounceService *self);

/* --- for claims (announce_service.c) --- */

/* Sets the alarm after a lease was granted or renewed. */
void muster_announce_service_attend (MusterAnnounceService *self);

/* Tracks the model while the registry says that it is being prepared. Of a job whose steps the
 * server doesn't see, its chief's word is all there is. */
void muster_announce_service_follow (MusterAnnounceService *self, const char *model);

G_END_DECLS
