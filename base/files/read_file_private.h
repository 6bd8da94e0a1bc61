// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>
#include <sys/stat.h>

G_BEGIN_DECLS

/* Reads whole files that somebody named: configuration, keys, tokens, graphs. It neither waits for
 * the other end of a pipe nor reads a device, and never takes more memory than the limit. Blocks as
 * long as the disk does. */

/* The largest that protobuf reads. */
#define MUSTER_MAX_PROTO_FILE ((gsize)G_MAXINT32)

typedef struct {
  const char *path;
  const char *what;    /* names it in errors, as "the token file"; (nullable) */
  gsize max_size;      /* bytes */
  gboolean takes_pipe; /* for a command: `<(…)`, which is read to its end; each wait is bounded */
} MusterFile;

/* Opens a file to be read, with what it is. -1 with G_FILE_ERROR, or INVALID_ARGUMENT for anything
 * but a regular file, a pipe that is taken, and /dev/null. */
int muster_file_open (const MusterFile *file, struct stat *is, GError **error);

/* Reads what muster_file_open () opened. text (out) (transfer full) ends with a NUL that size
 * doesn't count; no copy of it is left in memory. Fails with G_FILE_ERROR, INVALID_ARGUMENT for too
 * large a file, RESOURCE_EXHAUSTED, or DEADLINE_EXCEEDED for a pipe that is silent for 30 s. */
gboolean muster_file_read_fd (const MusterFile *file, int fd, const struct stat *is, char **text,
                              gsize *size, GError **error);

/* Both. size is (nullable). */
gboolean muster_file_read (const MusterFile *file, char **text, gsize *size, GError **error);

G_END_DECLS
