// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "rpc/server_state.h"

G_BEGIN_DECLS

/* MusterMaster creates sessions: "grpc://HOST:PORT" (master/remote/remote_master.h) or, in a
 * program that links the engine, "local" (engine/session/local_master.h). Variables belong to the
 * master and outlive sessions. Any thread. */

#define MUSTER_TYPE_MASTER (muster_master_get_type ())
G_DECLARE_INTERFACE (MusterMaster, muster_master, MUSTER, MASTER, GObject)

typedef struct {
  char *name; /* "/job:worker/replica:0/task:0/device:CPU:0" */
  char *type; /* "CPU" */
  gint64 memory_limit;
  guint64 incarnation; /* changes when the master restarts */
} MusterDevice;

/**
 * muster_device_free: (skip)
 */
void muster_device_free (MusterDevice *self);

/* Called when a step or a reset changed which variables have a value, once for each such step, on
 * its thread, after its effects are visible. It must not block or run steps. */
typedef void (*MusterReadinessChanged) (gpointer user_data);

struct _MusterMasterInterface {
  GTypeInterface parent;
  gboolean has_graph; /* a session without a graph uses the master's graph */
  MusterSession *(*create_session) (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);
  GPtrArray *(*list_devices) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                              GError **error);
  gboolean (*reset) (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  const char *(*target) (MusterMaster *self);
  /* optional: for masters that know when their variables change */
  gulong (*on_readiness_changed) (MusterMaster *self, MusterReadinessChanged callback,
                                  gpointer user_data);
  void (*off_readiness_changed) (MusterMaster *self, gulong id);
  /* optional: for masters whose sessions are behind gRPC; see muster_master_remote () */
  MusterMaster *(*remote) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                           GError **error);
  /* optional: for masters that may become unreachable */
  MusterServerState (*reach) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable);
};

/* The target it was created from: "local", "grpc://HOST:PORT"; borrowed. */
const char *muster_master_target (MusterMaster *self);

/**
 * muster_master_create_session:
 * @config: (nullable)
 *
 * Creates a session with graph. config (nullable) is a serialised ConfigProto, passed on unchanged.
 * graph (nullable if the master has its own): otherwise NULL is INVALID_ARGUMENT.
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
 * Removes the variables of the named containers, or of all (NULL or empty). All existing sessions
 * are lost (ABORTED).
 */
gboolean muster_master_reset (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                              GCancellable *cancellable, GError **error);

/**
 * muster_master_on_readiness_changed: (skip)
 *
 * Returns an id for muster_master_off_readiness_changed (), or 0 if the master doesn't support it.
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
 * TRUE if its sessions are behind gRPC, so that muster_master_remote () is supported.
 */
gboolean muster_master_is_remote (MusterMaster *self);

/**
 * muster_master_remote: (skip)
 *
 * The remote master (transfer full) (master/remote/remote_master.h) that creates its sessions:
 * itself, or one that it has started, for which it may wait. UNIMPLEMENTED for other masters.
 */
MusterMaster *muster_master_remote (MusterMaster *self, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/**
 * muster_master_can_reach: (skip)
 *
 * TRUE if muster_master_reach () is supported.
 */
gboolean muster_master_can_reach (MusterMaster *self);

/**
 * muster_master_reach: (skip)
 *
 * Returns whether a call could reach the master now, for code that pauses between calls
 * (ready/pause.h). If the master is down, this tries to reach it, until deadline_us and for at most
 * one second.
 */
MusterServerState muster_master_reach (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable);

G_END_DECLS
