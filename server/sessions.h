// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* MusterSessions is a server's table: the handle that a client was given to the session behind it.
 * Looking one up is a reader's lock and a hash; whoever found one holds it by reference, so that
 * closing takes it out of the table at once while its steps still end. Any thread. */

typedef struct _MusterSessions MusterSessions;

/* A session that is served. */
typedef struct {
  gatomicrefcount refs;
  char *handle;           /* (owned) what the client knows it by */
  MusterSession *session; /* (owned) */
  gint64 timeout_us;      /* of a step that brings none of its own; 0: none */
  gint is_closed;         /* atomic: closed by its client, or by a reset */

  GMutex extending;     /* one extension at a time */
  gint64 graph_version; /* guarded by extending: how often it was extended */

  GMutex lock;
  GHashTable *callables; /* (owned) (element-type gint64 MusterServedCallable) guarded by lock */
} MusterServed;

/* What a server keeps of a callable: the rest is the master's. */
typedef struct {
  gsize n_feeds;
  gsize n_fetches;
  gint64 timeout_us; /* 0: the session's */
} MusterServedCallable;

MusterServed *muster_served_ref (MusterServed *self);
void muster_served_unref (MusterServed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServed, muster_served_unref)

void muster_served_add_callable (MusterServed *self, gint64 handle, MusterServedCallable callable);
/* INVALID_ARGUMENT for a handle that isn't there. */
gboolean muster_served_find_callable (MusterServed *self, gint64 handle,
                                      MusterServedCallable *callable, GError **error);
gboolean muster_served_remove_callable (MusterServed *self, gint64 handle, GError **error);

/* The clock is where the chance in the handles comes from. */
MusterSessions *muster_sessions_new (MusterClock *clock);
void muster_sessions_free (MusterSessions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessions, muster_sessions_free)

/* Enters a session under a new handle; (transfer full). */
MusterServed *muster_sessions_add (MusterSessions *self, MusterSession *session, gint64 timeout_us);

/* (transfer full). ABORTED, in TensorFlow's words, for an unknown handle: its clients make another
 * session at that. */
MusterServed *muster_sessions_find (MusterSessions *self, const char *handle, GError **error);

/* As find, and takes it out: it counts as closed. */
MusterServed *muster_sessions_take (MusterSessions *self, const char *handle, GError **error);
/* (transfer full) (element-type MusterServed) all of them, in no order. */
GPtrArray *muster_sessions_take_all (MusterSessions *self);

guint muster_sessions_size (MusterSessions *self);

G_END_DECLS
