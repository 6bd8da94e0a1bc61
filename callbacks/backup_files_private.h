// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* training_metadata.json: a JSON object of integers, with a checksum of the others. */

#define MUSTER_METADATA_FILE "training_metadata.json"

typedef struct {
  gint64 epoch;       /* completed epochs */
  gint64 batch;       /* the last batch, with after_batch; else 0 */
  gint64 after_batch; /* 1: saved after a batch */
  gint64 variables;   /* N of latest-N */
  gint64 run;         /* identifies the training */
} MusterBackupMetadata;

char *muster_backup_metadata_print (const MusterBackupMetadata *self);
/* DATA_LOSS names path. */
gboolean muster_backup_metadata_parse (const char *path, GBytes *bytes, MusterBackupMetadata *self,
                                       GError **error);
/* FALSE with a G_FILE_ERROR if it can't be read. */
gboolean muster_backup_metadata_read (MusterStorage *storage, const char *path,
                                      MusterBackupMetadata *self, GError **error);
gboolean muster_backup_metadata_write (MusterStorage *storage, const char *path,
                                       const MusterBackupMetadata *self, GError **error);

/* DIRECTORY/training_metadata.json with suffix "" or ".bkp". */
char *muster_backup_metadata_path (const char *directory, const char *suffix);
/* DIRECTORY/training_metadata.json.N: the metadata of latest-N. */
char *muster_backup_record_path (const char *directory, gint64 number);

/* --- the files of a backup's directory --- */

#define MUSTER_BACKUP_LOCK      ".backup.lock"
#define MUSTER_BACKUP_VARIABLES "latest-" /* and N */

/* DIRECTORY/latest-N */
char *muster_backup_variables_prefix (const char *directory, gint64 number);
/* TRUE also if the directory can't be read; reading the variables then gives the error. */
gboolean muster_backup_has_variables (MusterStorage *storage, const char *directory, gint64 number);
/* The highest N of any file, including metadata; 0: none, or no directory. */
gboolean muster_backup_highest (MusterStorage *storage, const char *directory, gint64 *highest,
                                GError **error);
/* The N of all metadata files, highest first (element-type gint64) (transfer full). Empty without a
 * directory. */
GArray *muster_backup_records (MusterStorage *storage, const char *directory, GError **error);
/* Removes all latest-N except those kept, their metadata, and temporary files. Errors are ignored.
 */
void muster_backup_remove_variables (MusterStorage *storage, const char *directory,
                                     const gint64 *kept, gsize n_kept);
/* Removes a backup's files, in an order that leaves nothing to restore by mistake after a crash.
 * Missing files are no error. */
gboolean muster_backup_delete_files (MusterStorage *storage, const char *directory, GError **error);
/* Removes the directory if it is empty. */
void muster_backup_delete_directory (MusterStorage *storage, const char *directory);

G_END_DECLS
