// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/poll_plan_private.h"
#include "ready/readiness_private.h"

G_BEGIN_DECLS

/* One question of the hub's, and what it knows of the answer. */

/* Its first block never changes. What is said to be the thread's is the hub's thread's alone; all
 * else is guarded by the hub's lock. */
typedef struct {
  MusterGraph *graph;     /* (owned) (nullable) */
  MusterSession *session; /* (owned) (nullable) only without a graph to compare */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  char *model;            /* (owned) (nullable) */

  guint index;     /* among the hub's questions */
  GQueue notified; /* (element-type MusterSubscriber) owned; they have heard the present turn */
  GQueue fresh; /* (element-type MusterSubscriber) owned; they haven't, in the order to be told */
  GList link;   /* in the hub's pending */
  gboolean is_pending;
  gboolean is_stale;          /* something changed since the ops were run */
  gboolean has_chief_changed; /* something changed since the registry was read */
  gboolean has_graph_changed; /* the chief's may be another since the graphs were compared */
  gint64 changed_us; /* when the first change came that clients haven't been notified of; 0: none */
  MusterPollPlan polls; /* where the master can't tell of changes */

  gboolean has_ops;        /* the thread's: the two below have been found */
  MusterReadyOp gate;      /* the thread's */
  MusterReadyOp ready;     /* the thread's */
  MusterReadiness ops;     /* the thread's: what the ops said last */
  MusterReadiness current; /* the thread's: the present answer; version 0: none yet */
  gint64 reported_us;      /* the thread's: the instant from which its ages count */
  char *difference;        /* the thread's (owned) (nullable): from the chief's graph */
} MusterWatchKey;

/* A question that nobody has asked yet: what is copied, of which the first block is looked at. */
MusterWatchKey *muster_watch_key_new (const MusterWatchKey *what, gint64 now_us);
void muster_watch_key_free (gpointer self);

/* For a table of them. Two are one question where the graphs are the same bytes; without a graph,
 * where the session is the same. */
guint muster_watch_key_hash (gconstpointer self);
gboolean muster_watch_key_equal (gconstpointer one, gconstpointer other);

G_END_DECLS
