// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/background_private.h"
#include "rpc/client/rpc_client.h"

G_BEGIN_DECLS

/* MusterRenewal tells muster's server, behind the scenes, that the client of these sessions lives,
 * and finds out by it when a session is gone or the server has fallen silent: then the watches that
 * hang on it end. A server that keeps no sessions alive (TensorFlow's) is asked once. Any thread.
 */

typedef struct _MusterRenewal MusterRenewal;

typedef struct {
  gint64 renew_us;    /* between two renewals */
  gint64 answer_us;   /* how long one may be unanswered */
  guint n_unanswered; /* in a row, and the server is silent */
} MusterRenewalPace;

/* pace NULL: 20 s, 10 s, 2. */
MusterRenewal *muster_renewal_new (MusterRpcClient *client, MusterUpkeep *upkeep,
                                   const MusterRenewalPace *pace);
MusterRenewal *muster_renewal_ref (MusterRenewal *self);
void muster_renewal_unref (MusterRenewal *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRenewal, muster_renewal_unref)

/* An open session, from now until it is dropped; session only tells one from another. */
void muster_renewal_keep (MusterRenewal *self, gconstpointer session, const char *handle);
void muster_renewal_drop (MusterRenewal *self, gconstpointer session);

/* A stream that hangs on a session, not owned, until it is left. It is ended with ABORTED where the
 * server no longer knows the session, with UNAVAILABLE where it is silent. */
void muster_renewal_mind (MusterRenewal *self, MusterRpcStream *stream, const char *handle);
void muster_renewal_leave (MusterRenewal *self, MusterRpcStream *stream);

G_END_DECLS
