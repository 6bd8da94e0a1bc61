// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/membership.h"
#include "master/session.h"
#include "rpc/server_state.h"

G_BEGIN_DECLS

/**
 * MusterMaster:
 *
 * Creates sessions: "grpc://HOST:PORT" ([class@RemoteMaster]) or, in a program that links the
 * engine, "local" (MusterEngine.Master). Variables belong to the master and outlive sessions. Any
 * thread.
 */

#define MUSTER_TYPE_MASTER (muster_master_get_type ())
G_DECLARE_INTERFACE (MusterMaster, muster_master, MUSTER, MASTER, GObject)

/**
 * MusterDevice:
 * @name: "/job:worker/replica:0/task:0/device:CPU:0"
 * @type: "CPU"
 * @memory_limit: its memory in bytes; 0: unknown
 * @incarnation: changes when the master restarts
 *
 * A device of a master.
 */
typedef struct {
  char *name;
  char *type;
  gint64 memory_limit;
  guint64 incarnation;
} MusterDevice;

#define MUSTER_TYPE_DEVICE (muster_device_get_type ())
GType muster_device_get_type (void);

/**
 * muster_device_copy:
 * @self: a device
 *
 * Copies it.
 *
 * Returns: (transfer full): a copy
 */
MusterDevice *muster_device_copy (const MusterDevice *self);

/**
 * muster_device_free: (skip)
 * @self: (nullable): a device
 *
 * Frees it.
 */
void muster_device_free (MusterDevice *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDevice, muster_device_free)

/**
 * MusterReadinessChanged:
 * @user_data: the data of the registration
 *
 * Called when a step or a reset changed which variables have a value, once for each such step, on
 * its thread, after its effects are visible. It must not block or run steps.
 */
typedef void (*MusterReadinessChanged) (gpointer user_data);

/**
 * MusterMasterInterface:
 * @parent: the parent interface
 * @has_graph: a session without a graph uses the master's graph
 * @create_session: see [method@Master.create_session]
 * @list_devices: see [method@Master.list_devices]
 * @reset: see [method@Master.reset]
 * @target: see [method@Master.target]
 * @on_readiness_changed: optional, for masters that know when their variables change: registers a
 *   callback
 * @off_readiness_changed: optional, with the one before: removes it
 * @remote: optional, for masters whose sessions are behind gRPC: see [method@Master.remote]
 * @reach: optional, for masters that may become unreachable: see [method@Master.reach]
 * @join: optional, for masters that keep members: see [method@Master.join]
 * @set_coordinator: optional, for masters behind gRPC: see [method@Master.set_coordinator]
 *
 * What a master implements.
 */
struct _MusterMasterInterface {
  GTypeInterface parent;
  gboolean has_graph;
  MusterSession *(*create_session) (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);
  GPtrArray *(*list_devices) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                              GError **error);
  gboolean (*reset) (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  const char *(*target) (MusterMaster *self);
  gulong (*on_readiness_changed) (MusterMaster *self, MusterReadinessChanged callback,
                                  gpointer user_data);
  void (*off_readiness_changed) (MusterMaster *self, gulong id);
  MusterMaster *(*remote) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                           GError **error);
  MusterServerState (*reach) (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable);
  MusterMembership *(*join) (MusterMaster *self, const MusterJoin *join, gint64 deadline_us,
                             GCancellable *cancellable, GError **error);
  gboolean (*set_coordinator) (MusterMaster *self, MusterMaster *coordinator, GError **error);
};

/**
 * muster_master_target:
 * @self: a master
 *
 * The target it was created from.
 *
 * Returns: "local", "grpc://HOST:PORT"; borrowed
 */
const char *muster_master_target (MusterMaster *self);

/**
 * muster_master_create_session:
 * @self: a master
 * @graph: (nullable): the session's graph; %NULL if the master has its own, otherwise that is
 *   INVALID_ARGUMENT
 * @config: (nullable): a serialised ConfigProto, passed on unchanged
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Creates a session.
 *
 * Returns: (transfer full): the session
 */
MusterSession *muster_master_create_session (MusterMaster *self, MusterGraph *graph, GBytes *config,
                                             gint64 deadline_us, GCancellable *cancellable,
                                             GError **error);

/**
 * muster_master_list_devices:
 * @self: a master
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Lists the devices of all of the master's tasks.
 *
 * Returns: (transfer container) (element-type MusterDevice): the devices
 */
GPtrArray *muster_master_list_devices (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/**
 * muster_master_reset:
 * @self: a master
 * @containers: (array zero-terminated=1) (nullable): names of containers; %NULL or empty: all
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Removes the variables of the named containers. All existing sessions are lost (ABORTED).
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_master_reset (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                              GCancellable *cancellable, GError **error);

/**
 * muster_master_on_readiness_changed: (skip)
 * @self: a master
 * @callback: called for each change
 * @user_data: passed to it; it must live until the callback is removed
 *
 * Registers a callback for changes of which variables have a value. Other languages watch a session
 * ([method@Session.watch]).
 *
 * Returns: an id for muster_master_off_readiness_changed (), or 0 if the master doesn't support it
 */
gulong muster_master_on_readiness_changed (MusterMaster *self, MusterReadinessChanged callback,
                                           gpointer user_data);

/**
 * muster_master_off_readiness_changed: (skip)
 * @self: a master
 * @id: what muster_master_on_readiness_changed () returned
 *
 * Removes a callback.
 */
void muster_master_off_readiness_changed (MusterMaster *self, gulong id);

/**
 * muster_master_is_remote:
 * @self: a master
 *
 * Tests whether its sessions are behind gRPC, so that [method@Master.remote] is supported.
 *
 * Returns: %TRUE if so
 */
gboolean muster_master_is_remote (MusterMaster *self);

/**
 * muster_master_remote:
 * @self: a master
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * The remote master that creates its sessions: itself, or one that it has started, for which it may
 * wait. UNIMPLEMENTED for other masters.
 *
 * Returns: (transfer full): the remote master
 */
MusterMaster *muster_master_remote (MusterMaster *self, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

/**
 * muster_master_join:
 * @self: a master
 * @join: what is asked for
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Makes a task a member of a job. FAILED_PRECONDITION: the slot that is wanted has a living member;
 * RESOURCE_EXHAUSTED: all slots have one; UNIMPLEMENTED: this master keeps no members.
 *
 * Returns: (transfer full): the membership, which has heard a roster
 */
MusterMembership *muster_master_join (MusterMaster *self, const MusterJoin *join,
                                      gint64 deadline_us, GCancellable *cancellable,
                                      GError **error);

/**
 * muster_master_set_coordinator:
 * @self: a master behind gRPC, before its first session
 * @coordinator: a [class@RemoteMaster]: one of muster's servers, which needn't be the job's master
 *
 * Lets the job be coordinated elsewhere than where its steps run: chiefs claim their model, tasks
 * join and wait for the chief at @coordinator, whichever master each of them uses. While it is
 * away, tasks continue to train. UNIMPLEMENTED: the master isn't behind gRPC. INVALID_ARGUMENT:
 * the coordinator isn't.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_master_set_coordinator (MusterMaster *self, MusterMaster *coordinator,
                                        GError **error);

/**
 * muster_master_can_reach:
 * @self: a master
 *
 * Tests whether [method@Master.reach] is supported.
 *
 * Returns: %TRUE if so
 */
gboolean muster_master_can_reach (MusterMaster *self);

/**
 * muster_master_reach:
 * @self: a master
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Finds out whether a call could reach the master now, for code that pauses between calls. If the
 * master is down, this tries to reach it, until @deadline_us and for at most one second.
 *
 * Returns: what is known
 */
MusterServerState muster_master_reach (MusterMaster *self, gint64 deadline_us,
                                       GCancellable *cancellable);

G_END_DECLS
