// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/doubles/crash_storage.h"

G_BEGIN_DECLS

/* A file, whatever its names are. */
typedef struct {
  grefcount refs;
  guint number;     /* in order of birth */
  GByteArray *live; /* (owned) what a reader sees */
  GBytes *durable;  /* (owned) as it was last synced */
  gboolean is_new;  /* live isn't durable with something appended: it was begun afresh */
  int n_locks;      /* how many share its lock; -1: one has it alone */
} MusterCrashInode;

/* A change of names that isn't durable: a file made (to), removed (from) or renamed (both). */
typedef struct {
  char *from;              /* (owned) (nullable) */
  char *to;                /* (owned) (nullable) */
  MusterCrashInode *inode; /* (owned) (nullable) what to names */
} MusterCrashChange;

struct _MusterCrashStorage {
  GObject parent;
  GMutex lock;
  /* guarded by lock */
  GHashTable *live;        /* (owned) path -> MusterCrashInode */
  GHashTable *durable;     /* (owned) path -> MusterCrashInode */
  GHashTable *directories; /* (owned) a set of paths */
  GPtrArray *changes;      /* (owned) (element-type MusterCrashChange) oldest first */
  guint n_inodes;
  guint calls_left; /* 0: no end */
  gboolean has_stopped;
  guint calls_to_failure; /* 0: none */
  gboolean has_failed;
  gboolean ignores_files;
  gboolean ignores_directories;
  const char *lazy; /* (nullable) in a path: its writer's syncs do nothing */
};

/* crash_disk.c: what is durable, and what a crash leaves. */
MusterCrashInode *muster_crash_inode_new (guint number, const void *data, gsize size);
MusterCrashInode *muster_crash_inode_ref (MusterCrashInode *self);
void muster_crash_inode_unref (gpointer data);
void muster_crash_inode_sync (MusterCrashInode *self);
void muster_crash_change_free (gpointer data);

/* The storage's lock is held by who calls these. */
void muster_crash_storage_change (MusterCrashStorage *self, const char *from, const char *to,
                                  MusterCrashInode *inode);
void muster_crash_storage_sync_names (MusterCrashStorage *self, const char *directory);
void muster_crash_storage_add_directory (MusterCrashStorage *self, const char *directory);

/* A table's keys in order (transfer container); a set of strings; a map of paths to inodes. */
GPtrArray *muster_crash_sorted_keys (GHashTable *table);
GHashTable *muster_crash_set_new (void);
GHashTable *muster_crash_names_new (void);

G_END_DECLS
