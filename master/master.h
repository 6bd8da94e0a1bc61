// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "rpc/server_state.h"

G_BEGIN_DECLS

/* MusterMaster is where sessions live: "grpc://HOST:PORT" (master/remote/remote_master.h) or, in a
 * program that links the engine, "local" (engine/session/local_master.h). Variables belong to the
 * master and outlive sessions. Any thread. */

#define MUSTER_TYPE_MASTER (muster_master_get_type ())
G_DECLARE_INTERFACE (MusterMaster, muster_master, MUSTER, MASTER, GObject)

typedef struct {
  char *name; /* "/job:worker/replica:0/task:0/device:CPU:0" */
  char *type; /* "CPU" */
  gint64 memory_limit;
  guint64 incarnation; /* another one: the master has restarted */
} MusterDevice;

/**
 * muster_device_free: (skip)
 */
void muster_device_free (MusterDevice *self);

/* Called whenever a step (or a reset) changed which variables have a value: once for each such
 * step, on that step's thread, after its effects are visible. It must not block or run steps. */
typedef void (*MusterReadinessChanged) (gpointer user_data);

struct _MusterMasterInterface {
  GTypeInterface parent;
  gboolean has_graph; /* a session without a graph has the master's own */
  MusterSession *(*create_session) (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);
  GPtrArray *(*list_devices) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                              GError **error);
  gboolean (*reset) (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  const char *(*target) (MusterMaster *self);
  /* optional: only a master that sees its variables change can */
  gulong (*on_readiness_changed) (MusterMaster *self, MusterReadinessChanged callback,
                                  gpointer user_data);
  void (*off_readiness_changed) (MusterMaster *self, gulong id);
  /* optional: for a master whose sessions live behind gRPC; see muster_master_remote () */
  MusterMaster *(*remote) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                           GError **error);
  /* optional: for a master to which the connection may be lost */
  MusterServerState (*reach) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable);
};

/* What it was made from: "local", "grpc://HOST:PORT"; borrowed. */
const char *muster_master_target (MusterMaster *self);

/**
 * muster_master_create_session:
 * @config: (nullable)
 *
 * A session over graph. config (nullable) is a serialised ConfigProto, passed on as it is.
 * graph (nullable where the master has one of its own): else NULL is INVALID_ARGUMENT.
 *
 * Returns: (transfer full)
 */
MusterSession *muster_master_create_session (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                             gint64 deadline_us, GCancellable *cancellable,
                                             GError **error);

/**
 * muster_master_list_devices: (skip)
 *
 * (transfer full) (element-type MusterDevice)
 */
GPtrArray *muster_master_list_devices (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/**
 * muster_master_reset:
 * @containers: (array zero-terminated=1) (nullable)
 *
 * Drops the variables of the named containers, or of all (NULL or empty); sessions from before are
 * gone (ABORTED).
 */
gboolean muster_master_reset (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                              GCancellable *cancellable, GError **error);

/**
 * muster_master_on_readiness_changed: (skip)
 *
 * 0 where the master can't tell; else an id for off.
 */
gulong muster_master_on_readiness_changed (MusterMaster *self, MusterReadinessChanged callback,
                                           gpointer user_data);

/**
 * muster_master_off_readiness_changed: (skip)
 */
void muster_master_off_readiness_changed (MusterMaster *self, gulong id);

/**
 * muster_master_is_remote: (skip)
 *
 * Whether its sessions live behind gRPC, so that muster_master_remote () has an answer.
 */
gboolean muster_master_is_remote (MusterMaster *self);

/**
 * muster_master_remote: (skip)
 *
 * The remote master (transfer full) (master/remote/remote_master.h) at which its sessions are made
 * now: itself, or one that it has started, for which it may wait. UNIMPLEMENTED where there is
 * none.
 */
MusterMaster *muster_master_remote (MusterMaster *self, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/**
 * muster_master_can_reach: (skip)
 *
 * Whether muster_master_reach () can find something out.
 */
gboolean muster_master_can_reach (MusterMaster *self);

/**
 * muster_master_reach: (skip)
 *
 * Whether a call could reach the master now; for who pauses before the next one (ready/pause.h).
 * Where it is down this tries to reach it, until deadline_us and for one second at most.
 */
MusterServerState muster_master_reach (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable);

G_END_DECLS
