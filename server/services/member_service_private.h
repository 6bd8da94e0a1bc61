// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/proto/muster.pb-c.h"
#include "server/core/alarm.h"
#include "server/core/server_private.h"
#include "server/services/member_service.h"

G_BEGIN_DECLS

struct _MusterMemberService {
  MusterServer *server; /* (not owned) */
  MusterAlarm *alarm;   /* (owned) sends rosters, and removes silent members */

  GMutex lock;
  /* (element-type guint64 MusterMemberStream) owned; the keys are the values'; of each member;
   * guarded by lock */
  GHashTable *streams;
  gboolean stopped; /* guarded by lock */

  GMutex news_lock; /* no other lock is taken while it is held */
  /* (element-type utf8) owned: the models that have changed; guarded by news_lock */
  GHashTable *news;
};

/* --- streams and rosters (member_stream.c) --- */

/* A member's Join, until it is ended. The function that removes it from the table ends it. It
 * counts as a watcher. */
typedef struct {
  MusterLimits *limits; /* (not owned) */
  guint64 id;
  guint slot;
  MusterRpcCall *call; /* (owned) */
  GBytes *told;        /* (owned) (nullable) the last roster sent */
} MusterMemberStream;

/* Also releases its MUSTER_LIMIT_WATCHERS. stream (nullable) */
void muster_member_stream_free (gpointer stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMemberStream, muster_member_stream_free)

/* Removes a stream from the table. (transfer full) (nullable) */
MusterMemberStream *muster_member_stream_take (MusterMemberService *self, guint64 id);
/* The same with the lock held; only that of call, if it isn't NULL. */
MusterMemberStream *muster_member_stream_take_locked (MusterMemberService *self, guint64 id,
                                                      const MusterRpcCall *call);

/* stream (nullable), error (nullable) */
void muster_member_stream_end (MusterMemberStream *stream, const GError *error);

/* The members of a model have changed, or its chief: the alarm's thread sends the roster. */
void muster_member_service_note_change (MusterMemberService *self, const char *model);

/* The alarm's function. Ends the streams of members whose lease ended, and sends rosters. */
gint64 muster_member_service_on_alarm (gpointer service);

G_END_DECLS
