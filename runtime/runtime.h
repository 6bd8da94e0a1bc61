// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* TensorFlow's runtime as a child process that serves on 127.0.0.1, and the thread that keeps it:
 * when it dies it is started again on the same port, at once the first time, then after pauses that
 * grow to half a minute. Its sessions and variables are gone then: who has one hears UNAVAILABLE,
 * then ABORTED, and makes another. It ends with this process, whatever happens to that. Counted;
 * any thread. */

typedef struct _MusterRuntime MusterRuntime;

/* Is told in a sentence, without an end mark, that it died or came back; on the keeper's thread. */
typedef void (*MusterRuntimeTold) (const char *text, gpointer user_data);

typedef struct {
  const char *library;    /* TensorFlow's; see muster_runtime_find_library () */
  const char *helper;     /* our program; see muster_runtime_find_helper () */
  MusterClock *clock;     /* (nullable): for the pauses */
  gint64 start_limit_us;  /* how long a start may take; 0: two minutes */
  MusterRuntimeTold told; /* (nullable) */
  gpointer user_data;
} MusterRuntimeOptions;

/* Starts it and comes back when it serves; about a second, more where the library isn't in memory.
 * INVALID_ARGUMENT where the library won't do, UNAVAILABLE where it dies, DEADLINE_EXCEEDED. */
MusterRuntime *muster_runtime_new (const MusterRuntimeOptions *options, GError **error);
MusterRuntime *muster_runtime_ref (MusterRuntime *self);
/* With the last one the child ends. */
void muster_runtime_unref (MusterRuntime *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRuntime, muster_runtime_unref)

/* Where it serves, whichever process it is. */
guint16 muster_runtime_port (MusterRuntime *self);

/* Waits until it serves: at once but for the moments after its death. UNAVAILABLE with the reason
 * where it doesn't start again, or not soon; DEADLINE_EXCEEDED, G_IO_ERROR_CANCELLED. deadline_us 0
 * is none. */
gboolean muster_runtime_await (MusterRuntime *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/* The present process, 0 while there is none, and how many there have been. */
int muster_runtime_pid (MusterRuntime *self, guint *n_starts);

/* TensorFlow's version; borrowed. */
const char *muster_runtime_version (MusterRuntime *self);
const char *muster_runtime_library (MusterRuntime *self);

G_END_DECLS
