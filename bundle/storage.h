// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterStorage is where checkpoints live: the few verbs that publishing one needs (decision 9).
 * Local files are the store that ships; another is one file with another interface struct. Paths
 * are the caller's, '/'-separated. Errors are G_IO_ERROR or G_FILE_ERROR with the path in front.
 * Any thread; a file is one thread's. */

#define MUSTER_TYPE_STORAGE (muster_storage_get_type ())
G_DECLARE_INTERFACE (MusterStorage, muster_storage, MUSTER, STORAGE, GObject)

/* A file being written. */
typedef struct _MusterStorageFile MusterStorageFile;

struct _MusterStorageInterface {
  GTypeInterface parent;
  MusterStorageFile *(*create) (MusterStorage *self, const char *path, GError **error);
  gboolean (*append) (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
                      GError **error);
  gboolean (*sync) (MusterStorage *self, MusterStorageFile *file, GError **error);
  gboolean (*close) (MusterStorage *self, MusterStorageFile *file,
                     GError **error); /* frees it in any case */
  GBytes *(*read) (MusterStorage *self, const char *path, GError **error);
  gboolean (*rename) (MusterStorage *self, const char *from, const char *to, GError **error);
  gboolean (*remove) (MusterStorage *self, const char *path, GError **error);
  char **(*list) (MusterStorage *self, const char *directory, GError **error);
  gboolean (*sync_directory) (MusterStorage *self, const char *directory, GError **error);
};

MusterStorage *muster_local_storage (void); /* (transfer none) */

MusterStorageFile *muster_storage_create (MusterStorage *self, const char *path, GError **error);
gboolean muster_storage_append (MusterStorage *self, MusterStorageFile *file, const void *data,
                                gsize size, GError **error);
gboolean muster_storage_sync (MusterStorage *self, MusterStorageFile *file, GError **error);
gboolean muster_storage_close (MusterStorage *self, MusterStorageFile *file, GError **error);

/* A whole file; mapped where the store can, so that a tensor may be a view over it. */
GBytes *muster_storage_read (MusterStorage *self, const char *path, GError **error);
gboolean muster_storage_rename (MusterStorage *self, const char *from, const char *to,
                                GError **error);
gboolean muster_storage_remove (MusterStorage *self, const char *path,
                                GError **error); /* or an empty directory; absent is no error */
/* The names in a directory, sorted; an absent one is G_FILE_ERROR_NOENT. */
char **muster_storage_list (MusterStorage *self, const char *directory, GError **error);
/* Makes the names in a directory durable; given a file that another program wrote, its bytes. */
gboolean muster_storage_sync_directory (MusterStorage *self, const char *directory, GError **error);

/* Writes a small file whole: beside it, synced, renamed, its directory synced. A reader sees the
 * old or the new one. */
gboolean muster_storage_publish (MusterStorage *self, const char *path, const void *data,
                                 gsize size, GError **error);

G_END_DECLS
