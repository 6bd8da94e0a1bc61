// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "session/cluster/cluster_spec.h"

G_BEGIN_DECLS

/* MusterRuntime is TensorFlow's runtime as a child process that serves on 127.0.0.1, or as a
 * cluster's task for the machines of that cluster, and the thread that supervises it. When the
 * child dies it is restarted on the same port, at once the first time, then after pauses that grow
 * to half a minute. Its sessions and variables are then lost: clients get UNAVAILABLE, then
 * ABORTED, and create another session. It always ends with this process. Reference-counted; any
 * thread. */

typedef struct _MusterRuntime MusterRuntime;

/* Receives a sentence, without a full stop, when the child serves, dies or is restarted; on the
 * supervising thread. That it serves is reported before waiting calls return. */
typedef void (*MusterRuntimeReport) (const char *text, gpointer user_data);

typedef struct {
  const char *library; /* TensorFlow's; see muster_runtime_find_library () */
  const char *helper;  /* our program; see muster_runtime_find_helper () */
  /* (nullable) (array zero-terminated=1) the child may open files only in these, and read those of
   * the system; INVALID_ARGUMENT if that can't be done */
  const char *const *directories;
  /* (nullable) whose own task it is, on the port of its address; NULL: it is alone, on a free port
   */
  const MusterClusterSpec *cluster;
  MusterClock *clock;         /* (nullable) for the pauses */
  gint64 start_limit_us;      /* timeout of a start; 0: two minutes */
  MusterRuntimeReport report; /* (nullable) */
  gpointer user_data;
} MusterRuntimeOptions;

/* Starts the child in the background, which takes about a second, longer if the library isn't in
 * memory. muster_runtime_await () returns the result. If the first start fails there is no other.
 */
MusterRuntime *muster_runtime_new (const MusterRuntimeOptions *options, GError **error);
MusterRuntime *muster_runtime_ref (MusterRuntime *self);
/* The last reference ends the child. */
void muster_runtime_unref (MusterRuntime *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRuntime, muster_runtime_unref)

/* Its port, the same after restarts. */
guint16 muster_runtime_port (MusterRuntime *self);

/* Waits until it serves: returns at once except during a start. After a failed first start:
 * INVALID_ARGUMENT if the library is unsuitable, INTERNAL if the child died, or DEADLINE_EXCEEDED;
 * a GIOError if a task's port is still in use after five seconds.
 * UNAVAILABLE with the cause if it can't be restarted, or not soon. Otherwise DEADLINE_EXCEEDED or
 * G_IO_ERROR_CANCELLED. deadline_us 0 is none. */
gboolean muster_runtime_await (MusterRuntime *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/* TRUE if the first start has failed: it never serves. */
gboolean muster_runtime_is_over (MusterRuntime *self);

/* The current process, 0 if there is none, and the number of starts. */
int muster_runtime_pid (MusterRuntime *self, guint *n_starts);

/* TensorFlow's version, NULL before it first serves; borrowed. */
const char *muster_runtime_version (MusterRuntime *self);
const char *muster_runtime_library (MusterRuntime *self);

G_END_DECLS
