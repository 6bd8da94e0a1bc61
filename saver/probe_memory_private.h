// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* MusterProbe is what a saver remembers of its probes (saver/probe.h): the session probed last, the
 * nodes that it was given for that, and the directories that its devices see. Any thread. */
typedef struct _MusterProbe MusterProbe;

/* A device that saves, and the node that reads for it. */
typedef struct {
  char *device;  /* (owned) as the node has it; "": the master's choice */
  char *restore; /* (owned) "muster_probe/1a2b3c4d/0/RestoreV2:0" */
} MusterProbeReader;

/* The nodes that a session was given: counted, and unchanged from then on. */
typedef struct {
  char *filename;  /* (owned) the placeholder */
  GArray *readers; /* (owned) (element-type MusterProbeReader) */
} MusterProbeNodes;

/* An empty array of MusterProbeReader, which it clears. */
GArray *muster_probe_readers_new (void);

/* Takes filename; references readers. */
MusterProbeNodes *muster_probe_nodes_new (char *filename, GArray *readers);
void muster_probe_nodes_unref (MusterProbeNodes *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProbeNodes, muster_probe_nodes_unref)

MusterProbe *muster_probe_new (void);
/* self may be NULL. */
void muster_probe_free (MusterProbe *self);

/* FALSE for another session than the one that was probed last; else its nodes (transfer full),
 * NULL where it can't be asked, and whether its devices see the directory. */
gboolean muster_probe_recall (MusterProbe *self, MusterSession *session, const char *directory,
                              MusterProbeNodes **nodes, gboolean *is_seen);

/* The session is the one probed last from now on; nodes is (nullable). */
void muster_probe_remember_nodes (MusterProbe *self, MusterSession *session,
                                  MusterProbeNodes *nodes);
/* Nothing where another session has been probed meanwhile. */
void muster_probe_remember_directory (MusterProbe *self, MusterSession *session,
                                      const char *directory);

G_END_DECLS
