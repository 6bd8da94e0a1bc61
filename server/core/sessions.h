// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "server/core/limits.h"

G_BEGIN_DECLS

/* MusterSessions is a server's table: the handle that a client was given to the session behind it.
 * Looking one up is a reader's lock and a hash; whoever found one holds it by reference, so that
 * closing takes it out of the table at once while its steps still end.
 *
 * A session may be under a lease: once it has been neither renewed nor used for so long, it may be
 * taken out as expired (server/core/session_reaper.h does). Any thread. */

typedef struct _MusterSessions MusterSessions;

/* A session that is served. */
typedef struct {
  gatomicrefcount refs;
  char *handle;           /* (owned) what the client knows it by */
  MusterSession *session; /* (owned) */
  gint64 timeout_us;      /* of a step that brings none of its own; 0: none */
  gint64 lease_us;        /* 0: it is kept until it is closed */
  gint64 last_us;         /* atomic: when it was last renewed, or a use of it ended */
  gint n_uses;            /* atomic: calls that are at it */
  gint is_closed;         /* atomic: closed by its client, by a reset, or expired */
  gint was_reset;         /* atomic: by a reset; told before is_closed */

  GMutex extending;     /* one extension at a time */
  gint64 graph_version; /* guarded by extending: how often it was extended */
  guint64 graph_bytes;  /* guarded by extending */

  GMutex lock;
  GHashTable *callables; /* (owned) (element-type gint64 MusterServedCallable) guarded by lock */
  gint64 last_callable;  /* the highest that was entered; guarded by lock */
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
/* INVALID_ARGUMENT for a handle that isn't there, or isn't any more. */
gboolean muster_served_find_callable (MusterServed *self, gint64 handle,
                                      MusterServedCallable *callable, GError **error);
/* FALSE where there was none. */
gboolean muster_served_remove_callable (MusterServed *self, gint64 handle);

/* The clock is where the chance in the handles comes from. limits are borrowed: each session that
 * leaves the table releases its place there. */
MusterSessions *muster_sessions_new (MusterClock *clock, MusterLimits *limits);
void muster_sessions_free (MusterSessions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessions, muster_sessions_free)

/* Enters a session under a new handle; (transfer full). Its place was taken from the limits. */
MusterServed *muster_sessions_add (MusterSessions *self, MusterSession *session,
                                   guint64 graph_bytes, gint64 timeout_us, gint64 lease_us);

/* The same under the handle that its master gave it, (transfer full). INTERNAL where that is
 * another session's. */
MusterServed *muster_sessions_enter (MusterSessions *self, const char *handle,
                                     MusterSession *session, guint64 graph_bytes, gint64 lease_us,
                                     GError **error);

/* (transfer full). ABORTED, in TensorFlow's words, for an unknown handle: its clients make another
 * session at that. */
MusterServed *muster_sessions_find (MusterSessions *self, const char *handle, GError **error);

/* As find, for a call that uses the session: until end_use it doesn't expire. */
MusterServed *muster_sessions_begin_call (MusterSessions *self, const char *handle, GError **error);
void muster_served_end_call (MusterServed *self, gint64 now_us);

/* The client lives. FALSE for an unknown handle. */
gboolean muster_sessions_renew (MusterSessions *self, const char *handle, gint64 now_us);

/* As find, and takes it out: it counts as closed. */
MusterServed *muster_sessions_take (MusterSessions *self, const char *handle, GError **error);
/* The same of one that a reset has ended elsewhere, without an error; whoever asks for it next
 * hears of the reset. */
MusterServed *muster_sessions_take_reset (MusterSessions *self, const char *handle);
/* (transfer full) (element-type MusterServed) all of them, in no order, for a reset: whoever asks
 * for one of these next hears that, until after the next reset but one. */
GPtrArray *muster_sessions_take_all (MusterSessions *self);
/* That reset has failed: none of them (element-type MusterServed) was ended by one. */
void muster_sessions_unsay_reset (MusterSessions *self, GPtrArray *taken);
/* The same of those whose lease has run out. Returns when the next may run out;
 * MUSTER_WAIT_FOREVER where none is under a lease. */
gint64 muster_sessions_take_expired (MusterSessions *self, gint64 now_us, GPtrArray *expired);

/* Gives the memory that the allocator has kept back to the system, if nobody is there and many have
 * come and gone; for who has just ended a session. */
void muster_sessions_trim (MusterSessions *self);

guint muster_sessions_size (MusterSessions *self);

G_END_DECLS
