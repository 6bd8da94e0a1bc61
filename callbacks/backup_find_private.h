// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "callbacks/backup_files_private.h"

G_BEGIN_DECLS

/* One backup, as its metadata tell of it. */
typedef struct {
  char *path; /* (owned) of the metadata */
  MusterBackupMetadata metadata;
  GError *failure;  /* (owned) (nullable) why it can't be restored */
  gboolean is_gone; /* that is: its metadata are whole, and none of its variables are there */
} MusterListedBackup;

/* The backups of a directory (element-type MusterListedBackup), each once, in the order in which
 * they are to be tried: the one that counts, then the others, newest first. What shows without the
 * variables being read is their failure: metadata that are damaged or another backup's, variables
 * that are gone. Empty where there are no metadata at all. */
GPtrArray *muster_backup_list (MusterStorage *storage, const char *directory);

/* "'latest-4': CAUSE; CAUSE", of all that have a failure (transfer full): a cause without variables
 * names its file. */
char *muster_backup_list_failures (GPtrArray *backups);

G_END_DECLS
