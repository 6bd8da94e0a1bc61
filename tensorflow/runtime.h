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

/* Is told in a sentence, without an end mark, that it serves, died or came back; on the keeper's
 * thread, and that it serves before who waits for it goes on. */
typedef void (*MusterRuntimeReport) (const char *text, gpointer user_data);

typedef struct {
  const char *library;        /* TensorFlow's; see muster_runtime_find_library () */
  const char *helper;         /* our program; see muster_runtime_find_helper () */
  MusterClock *clock;         /* (nullable): for the pauses */
  gint64 start_limit_us;      /* how long a start may take; 0: two minutes */
  MusterRuntimeReport report; /* (nullable) */
  gpointer user_data;
} MusterRuntimeOptions;

/* Begins to start it, which takes about a second, more where the library isn't in memory: what
 * comes of it, muster_runtime_await () says. Where the first start fails there is no other. */
MusterRuntime *muster_runtime_new (const MusterRuntimeOptions *options, GError **error);
MusterRuntime *muster_runtime_ref (MusterRuntime *self);
/* With the last one the child ends. */
void muster_runtime_unref (MusterRuntime *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRuntime, muster_runtime_unref)

/* Where it serves, whichever process it is. */
guint16 muster_runtime_port (MusterRuntime *self);

/* Waits until it serves: at once but for its start and the moments after its death. Of a first
 * start that failed: INVALID_ARGUMENT where the library won't do, INTERNAL where it died, or
 * DEADLINE_EXCEEDED. UNAVAILABLE with the reason where it doesn't start again, or not soon. Else
 * DEADLINE_EXCEEDED, G_IO_ERROR_CANCELLED. deadline_us 0 is none. */
gboolean muster_runtime_await (MusterRuntime *self, gint64 deadline_us, GCancellable *cancellable,
                               GError **error);

/* Its first start has failed: it never serves. */
gboolean muster_runtime_is_over (MusterRuntime *self);

/* The present process, 0 while there is none, and how many there have been. */
int muster_runtime_pid (MusterRuntime *self, guint *n_starts);

/* TensorFlow's version, NULL before it serves for the first time; borrowed. */
const char *muster_runtime_version (MusterRuntime *self);
const char *muster_runtime_library (MusterRuntime *self);

G_END_DECLS
