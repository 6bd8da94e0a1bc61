// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/require_private.h"

G_BEGIN_DECLS

/* VERB_async () and VERB_finish () of a verb that blocks: saver/saver_async.c has examples. Each
 * call has a thread of its own: in a pool, some could wait for others that wait for them. A struct
 * of the verb's arguments and results, which begins with MusterBackground, is kept until the call
 * is over. What the verb refuses, NULL included, finish refuses with the verb's error. A call that
 * nobody finishes is freed with its GAsyncResult. The verb's own result counts even if the
 * cancellable was cancelled, so that nothing it made is lost. */

typedef struct _MusterVerb MusterVerb;

typedef struct {
  const MusterVerb *verb; /* (not owned) */
  gpointer source;        /* (nullable) self, only to compare */
  gboolean is_finished;
} MusterBackground;

struct _MusterVerb {
  const char *thread; /* its name; 15 characters at most */
  void (*run) (gpointer call, GCancellable *cancellable, GError **error);
  void (*clear) (gpointer call);
};

/* Runs call (from g_malloc (), transfer full). source (nullable), a GObject, is kept alive. */
void muster_background_start (const MusterVerb *verb, gpointer source, gpointer call,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);

/* The call of a result, which keeps it. NULL with INVALID_ARGUMENT for one of another verb or
 * source, and for one that was finished before. */
gpointer muster_background_call (const MusterVerb *verb, gpointer source, GAsyncResult *result,
                                 GError **error);

/* Finishes it: FALSE with the verb's error. What finish returns is taken from the call. */
gboolean muster_background_finish (gpointer call, GAsyncResult *result, GError **error);

G_END_DECLS
