// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* MusterDataDirs opens paths within some directories only. The kernel resolves each path below its
 * directory (openat2), so that neither "..", nor a symbolic link, nor a directory that is moved
 * meanwhile leads out. A symbolic link may lead from one of the directories to another. ".." is
 * removed from a path before links are followed. Any thread. */

typedef struct _MusterDataDirs MusterDataDirs;

/* INVALID_ARGUMENT if one isn't a directory that can be opened; UNIMPLEMENTED before Linux 5.6. */
MusterDataDirs *muster_data_dirs_new (const char *const *directories, GError **error);
void muster_data_dirs_free (MusterDataDirs *self);

/* As open (); -1 with errno, which is EXDEV for a path outside. */
int muster_data_dirs_open (const MusterDataDirs *self, const char *path, int flags, mode_t mode);

/* Opens the directory that contains path as O_PATH; *name (transfer full) is the name there, which
 * has no '/'. The directories themselves count as outside. */
int muster_data_dirs_open_parent (const MusterDataDirs *self, const char *path, char **name);

/* "'/a', '/b'", for errors. (transfer full) */
char *muster_data_dirs_describe (const MusterDataDirs *self);

G_END_DECLS
