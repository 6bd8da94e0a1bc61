// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/backup_files_private.h"

G_BEGIN_DECLS

/* A backup, described by its metadata. */
typedef struct {
  char *path; /* (owned) of the metadata */
  MusterBackupMetadata metadata;
  GError *failure;     /* (owned) (nullable) why it can't be restored */
  gboolean is_missing; /* its metadata is whole, but all its variables are missing */
} MusterListedBackup;

/* The backups in a directory (element-type MusterListedBackup), each once, in the order in which
 * they are tried: the selected one, then the others, newest first. failure is what can be detected
 * without reading the variables: damaged metadata, metadata of another backup, missing variables.
 * Empty without metadata; NULL with an error if the directory can't be listed. */
GPtrArray *muster_backup_list (MusterStorage *storage, const char *directory, GError **error);

/* "'latest-4': CAUSE; CAUSE" for all that have a failure (transfer full). A cause without variables
 * names its file. */
char *muster_backup_list_failures (GPtrArray *backups);

G_END_DECLS
