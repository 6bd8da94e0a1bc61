// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bundle/bundle_reader.h"
#include "saver/probe_private.h"
#include "saver/saveable_private.h"
#include "saver/saver.h"

G_BEGIN_DECLS

typedef struct {
  char *prefix; /* (owned) */
  double time;  /* seconds since 1970 */
} MusterKept;

struct _MusterSaver {
  GObject parent;
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterSaverInfo info;        /* its strings are the meta graph's */
  int max_to_keep;             /* 0: all */
  char *base_name;             /* (owned) */
  gboolean with_meta_graph;
  MusterStorage *storage;     /* (owned) */
  MusterClock *clock;         /* (owned) */
  MusterSaveables *saveables; /* (owned) any thread */
  MusterProbe *probe;         /* (owned) any thread */
  gboolean no_probe;
  GMutex saving;              /* held by the save whose turn it is */
  GMutex lock;
  /* guarded by lock */
  char *life_directory; /* (owned) (nullable) where the life is noted that this saver began */
  char *life;           /* (owned) (nullable) the base name of its checkpoint */
  MusterLease *lease; /* (owned) (nullable) */
  GPtrArray *kept;    /* (owned) (element-type MusterKept) oldest first */
  GPtrArray *doomed;  /* (owned) (element-type utf8) prefixes that could not be removed yet */
};

/* One save that isn't the SaverDef's plain one: a snapshot's, or one under a name of the caller's.
 * A zeroed struct is the plain one. All of it is the caller's, until the save has ended. */
typedef struct {
  const char *save_tensor;         /* (nullable) runs in place of the SaverDef's; it takes the same
                                      filename tensor */
  gboolean unlisted;               /* no state file, no list, nothing announced */
  const GPtrArray *tensors;        /* (nullable) (element-type MusterNamedTensor) from outside the
                                      graph: they go into the same checkpoint */
  void (*written) (gpointer data); /* (nullable) the master has written all; not published yet */
  gpointer written_data;
} MusterSaveHow;

/* muster_saver_save (), in that way. */
gboolean muster_saver_save_how (MusterSaver *self, MusterSession *session, const char *prefix,
                                gint64 step, const MusterSaveHow *how, gint64 deadline_us,
                                GCancellable *cancellable, GError **error);
/* The prefix that a save of that step has (transfer full): INVALID_ARGUMENT for one that collides
 * with the state file. */
char *muster_saver_prefix_for (MusterSaver *self, const char *directory, gint64 step,
                               GError **error);

/* A path as the master is to be told of it: another process has another working directory. */
char *muster_saver_path_for_master (MusterSaver *self, const char *path);

/* publish.c: turns what the master wrote at temporary into the checkpoint prefix, durably. */
gboolean muster_saver_publish (MusterSaver *self, const char *temporary, const char *prefix,
                               GError **error);
/* Takes away what is left of a save that failed. */
void muster_saver_discard_quietly (MusterSaver *self, const char *temporary);

/* retention.c: makes prefix the latest, in the state file and in the list, and then removes what
 * leaves the list. */
gboolean muster_saver_record (MusterSaver *self, const char *directory, const char *prefix,
                              GError **error);

G_END_DECLS
