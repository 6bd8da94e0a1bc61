// SPDX-License-Identifier: Apache-2.0
#include "saver/probe_memory_private.h"

struct _MusterProbe {
  GMutex lock;
  /* guarded by lock */
  GWeakRef session;        /* the session that was probed last; the rest belongs to it */
  MusterProbeNodes *nodes; /* (owned) (nullable) NULL: the session can't be probed */
  GHashTable *directories; /* (owned) a directory to why the session's devices don't see it; "":
                              they do */
};

/* --- nodes --- */

static void
reader_clear (gpointer data)
{
  g_free (((MusterProbeReader *)data)->device);
  g_free (((MusterProbeReader *)data)->restore);
}

GArray *
muster_probe_readers_new (void)
{
  GArray *readers = g_array_new (FALSE, TRUE, sizeof (MusterProbeReader));
  g_array_set_clear_func (readers, reader_clear);
  return readers;
}

MusterProbeNodes *
muster_probe_nodes_new (char *filename, GArray *readers)
{
  MusterProbeNodes *self = g_atomic_rc_box_new0 (MusterProbeNodes);
  self->filename = filename;
  self->readers = g_array_ref (readers);
  return self;
}

static void
nodes_clear (gpointer data)
{
  MusterProbeNodes *self = data;
  g_free (self->filename);
  g_array_unref (self->readers);
}

void
muster_probe_nodes_unref (MusterProbeNodes *self)
{
  g_atomic_rc_box_release_full (self, nodes_clear);
}

/* --- the memory --- */

MusterProbe *
muster_probe_new (void)
{
  MusterProbe *self = g_new0 (MusterProbe, 1);
  g_mutex_init (&self->lock);
  g_weak_ref_init (&self->session, NULL);
  self->directories = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return self;
}

void
muster_probe_free (MusterProbe *self)
{
  if (self == NULL)
    return;
  g_mutex_clear (&self->lock);
  g_weak_ref_clear (&self->session);
  g_clear_pointer (&self->nodes, muster_probe_nodes_unref);
  g_hash_table_unref (self->directories);
  g_free (self);
}

gboolean
muster_probe_recall (MusterProbe *self, MusterSession *session, const char *directory,
                     MusterProbeNodes **nodes, gboolean *is_seen, char **unseen)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterSession) known = g_weak_ref_get (&self->session);
  gboolean is_known = known == session;
  if (is_known) {
    *nodes = self->nodes != NULL ? g_atomic_rc_box_acquire (self->nodes) : NULL;
    const char *known_why = g_hash_table_lookup (self->directories, directory);
    *is_seen = known_why != NULL && !*known_why;
    *unseen = known_why != NULL && *known_why ? g_strdup (known_why) : NULL;
  }
  g_mutex_unlock (&self->lock);
  return is_known;
}

void
muster_probe_remember_nodes (MusterProbe *self, MusterSession *session, MusterProbeNodes *nodes)
{
  g_mutex_lock (&self->lock);
  g_weak_ref_set (&self->session, session);
  g_clear_pointer (&self->nodes, muster_probe_nodes_unref);
  self->nodes = nodes != NULL ? g_atomic_rc_box_acquire (nodes) : NULL;
  g_hash_table_remove_all (self->directories);
  g_mutex_unlock (&self->lock);
}

void
muster_probe_remember_directory (MusterProbe *self, MusterSession *session, const char *directory,
                                 const char *unseen)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterSession) known = g_weak_ref_get (&self->session);
  if (known == session)
    g_hash_table_replace (self->directories, g_strdup (directory),
                          g_strdup (unseen != NULL ? unseen : ""));
  g_mutex_unlock (&self->lock);
}
