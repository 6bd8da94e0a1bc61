// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* MusterProbe caches a saver's probes (saver/probe_private.h): the session probed last, the nodes
 * added to it, and which directories its devices see. Any thread. */
typedef struct _MusterProbe MusterProbe;

/* A device that saves, and the node that reads on it. */
typedef struct {
  char *device;  /* (owned) as in the node; "": chosen by the master */
  char *restore; /* (owned) "muster_probe/1a2b3c4d/0/RestoreV2:0" */
} MusterProbeReader;

/* The nodes added to a session: reference-counted, immutable. */
typedef struct {
  char *filename;  /* (owned) the placeholder */
  GArray *readers; /* (owned) (element-type MusterProbeReader) */
} MusterProbeNodes;

/* An empty array of MusterProbeReader that clears its elements. */
GArray *muster_probe_readers_new (void);

/* Takes filename; references readers. */
MusterProbeNodes *muster_probe_nodes_new (char *filename, GArray *readers);
void muster_probe_nodes_unref (MusterProbeNodes *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProbeNodes, muster_probe_nodes_unref)

MusterProbe *muster_probe_new (void);
/* self may be NULL. */
void muster_probe_free (MusterProbe *self);

/* FALSE if another session was probed last. Otherwise its nodes (transfer full), NULL if it can't
 * be probed, and whether its devices see the directory; or why they don't (transfer full)
 * (nullable). */
gboolean muster_probe_recall (MusterProbe *self, MusterSession *session, const char *directory,
                              MusterProbeNodes **nodes, gboolean *is_seen, char **unseen);

/* Makes session the one probed last; nodes is (nullable). */
void muster_probe_remember_nodes (MusterProbe *self, MusterSession *session,
                                  MusterProbeNodes *nodes);
/* unseen (nullable): why they don't see it. Does nothing if another session was probed in the
 * meantime. */
void muster_probe_remember_directory (MusterProbe *self, MusterSession *session,
                                      const char *directory, const char *unseen);

G_END_DECLS
