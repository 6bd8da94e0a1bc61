// SPDX-License-Identifier: Apache-2.0
#include "server/core/known_graphs.h"

#include "base/memory_account_private.h"

#include <string.h>

/* Sending a smaller graph costs no more than asking for it. */
#define LEAST_BYTES (64 << 10)
/* The part of the memory limit that they may occupy. */
#define SHARE 16

typedef struct {
  GBytes *bytes; /* (owned) */
  gboolean has_digest;
  MusterDigest digest;
} Entry;

struct _MusterKnownGraphs {
  GMutex lock;
  GQueue entries;  /* (element-type Entry) the last used first; guarded by lock */
  guint64 n_bytes; /* of all; guarded by lock */
};

MusterKnownGraphs *
muster_known_graphs_new (void)
{
  MusterKnownGraphs *self = g_new0 (MusterKnownGraphs, 1);
  g_mutex_init (&self->lock);
  return self;
}

static void
entry_free (gpointer data)
{
  Entry *entry = data;
  g_bytes_unref (entry->bytes);
  g_free (entry);
}

void
muster_known_graphs_free (MusterKnownGraphs *self)
{
  if (self == NULL)
    return;
  g_queue_clear_full (&self->entries, entry_free);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Returns its bytes (transfer full), which are now the last used. Call with the lock held. */
static GBytes *
use_locked (MusterKnownGraphs *self, GList *link)
{
  g_queue_unlink (&self->entries, link);
  g_queue_push_head_link (&self->entries, link);
  return g_bytes_ref (((Entry *)link->data)->bytes);
}

/* Returns the bytes of a graph alone, which otherwise keep more memory alive. */
static GBytes *
without_rest (GBytes *graph, gsize held_bytes)
{
  const gsize size = g_bytes_get_size (graph);
  if (held_bytes <= size + LEAST_BYTES)
    return g_bytes_ref (graph);
  return g_bytes_new (g_bytes_get_data (graph, NULL), size);
}

/* Returns the limit. The graphs aren't counted, because most are a session's, too. */
static guint64
most_bytes (void)
{
  const guint64 limit = muster_memory_limit ();
  return limit != 0 ? MIN (limit / SHARE, MUSTER_MOST_KNOWN_BYTES) : MUSTER_MOST_KNOWN_BYTES;
}

/* Returns its bytes (transfer full). */
static GBytes *
add_locked (MusterKnownGraphs *self, GBytes *graph, gsize held_bytes)
{
  Entry *entry = g_new0 (Entry, 1);
  GBytes *bytes = without_rest (graph, held_bytes);
  entry->bytes = g_bytes_ref (bytes);
  g_queue_push_head (&self->entries, entry);
  self->n_bytes += g_bytes_get_size (graph);
  while (self->entries.length > MUSTER_MOST_KNOWN_GRAPHS || self->n_bytes > most_bytes ()) {
    Entry *oldest = g_queue_pop_tail (&self->entries);
    self->n_bytes -= g_bytes_get_size (oldest->bytes);
    entry_free (oldest);
  }
  return bytes;
}

GBytes *
muster_known_graphs_share (MusterKnownGraphs *self, GBytes *graph, gsize held_bytes)
{
  const gsize size = g_bytes_get_size (graph);
  if (size < LEAST_BYTES || size > MUSTER_MOST_KNOWN_BYTES)
    return g_bytes_ref (graph);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (GList *link = self->entries.head; link != NULL; link = link->next)
    if (g_bytes_equal (((Entry *)link->data)->bytes, graph))
      return use_locked (self, link);
  return add_locked (self, graph, held_bytes);
}

static gboolean
has_digest (Entry *entry, const guint8 *digest)
{
  if (!entry->has_digest) {
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    muster_rope_append (&rope, entry->bytes);
    entry->digest = muster_digest_of (&rope);
    entry->has_digest = TRUE;
  }
  return memcmp (entry->digest.bytes, digest, MUSTER_DIGEST_BYTES) == 0;
}

GBytes *
muster_known_graphs_find (MusterKnownGraphs *self, const guint8 *digest, guint64 size)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (GList *link = self->entries.head; link != NULL; link = link->next) {
    Entry *entry = link->data;
    if (g_bytes_get_size (entry->bytes) == size && has_digest (entry, digest))
      return use_locked (self, link);
  }
  return NULL;
}

guint
muster_known_graphs_size (MusterKnownGraphs *self, guint64 *n_bytes)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  *n_bytes = self->n_bytes;
  return self->entries.length;
}
