// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

#include <sys/types.h>
#include <time.h>

G_BEGIN_DECLS

/* Text read from a file, wiped when it is cleared. */
typedef struct {
  char *text; /* (owned) (nullable) NUL-terminated */
  gsize size;
} MusterSecret;

void muster_secret_clear (MusterSecret *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSecret, muster_secret_clear)

gboolean muster_secret_equal (const MusterSecret *self, const MusterSecret *other);

/* A file to read; `what` names it in errors, as "the token file". */
typedef struct {
  const char *path;
  const char *what;
  gsize max_size;
  gboolean is_private; /* refuse a file that other users can read or write, as PostgreSQL does */
} MusterSecretFile;

gboolean muster_secret_read (MusterSecret *self, const MusterSecretFile *file, GError **error);

/* Tells one version of a file from the next, through symbolic links. All 0 for a file that isn't
 * there, and for what can't be read twice, such as a pipe. */
typedef struct {
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec modified, changed;
} MusterFileMark;

/* path (nullable) */
MusterFileMark muster_file_mark (const char *path);
gboolean muster_file_mark_equal (const MusterFileMark *self, const MusterFileMark *other);

G_END_DECLS
