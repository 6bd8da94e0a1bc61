// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/server/served.h"

G_BEGIN_DECLS

/* A step of a positioned job on a thread: it feeds muster/position. */

/* How it is run. */
typedef enum { LASTING_WHOLE, LASTING_CALLABLE, LASTING_PART } LastingWay;

typedef struct {
  MusterSession *session; /* (not owned) */
  LastingWay way;
  gint64 callable;           /* LASTING_CALLABLE: one that was made before; 0: it is made */
  const char *feed;          /* (nullable) NULL: the position */
  const char *fetch;         /* (nullable) NULL: "stuck:0" */
  GCancellable *cancellable; /* (not owned) (nullable) */
  GThread *thread;
  GError *error; /* (owned) (nullable) */
} LastingStep;

void lasting_step_start (LastingStep *self);
void lasting_step_join (LastingStep *self);

/* The handle of a callable that feeds the position; the test has failed where it is 0. */
gint64 lasting_make_callable (MusterSession *session);

/* Waits until a server has so many sessions. */
gboolean lasting_wait_for_sessions (Served *served, int n);

typedef struct {
  MusterSession *session; /* (not owned) */
  GError *error;          /* (owned) (nullable) */
} LastingClose;

/* A thread's function; data is a LastingClose. */
gpointer lasting_close (gpointer data);

G_END_DECLS
