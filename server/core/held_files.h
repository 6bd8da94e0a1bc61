// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Files in this process's memory, for other machines (rpc/proto/files.proto). Their bytes and
 * names, and those of uploads, are bounded together. Any thread. */
typedef struct _MusterHeldFiles MusterHeldFiles;

/* n_bytes: at most; 0: none, each call is PERMISSION_DENIED. */
MusterHeldFiles *muster_held_files_new (guint64 n_bytes);
void muster_held_files_free (MusterHeldFiles *self);

/* A block as it came, and its checksum. */
typedef struct {
  GBytes *bytes; /* (owned) */
  guint32 crc32c;
} MusterHeldBlock;

#define MUSTER_HELD_BLOCK ((gsize)4 << 20)

typedef struct {
  guint64 size, version;
  gint64 time_us; /* when it appeared, since 1970 */
} MusterHeldInfo;

/* Returns the upload's number; 0 with an error. who began it is abandoned by nobody else's sweep.
 */
guint64 muster_held_files_create (MusterHeldFiles *self, const char *path, const char *who,
                                  GError **error);
/* Takes block, whose checksum is compared. A block that is there already, at that offset, isn't
 * appended again. */
gboolean muster_held_files_append (MusterHeldFiles *self, guint64 upload, guint64 offset,
                                   const MusterHeldBlock *block, GError **error);
gboolean muster_held_files_close (MusterHeldFiles *self, guint64 upload, GError **error);
void muster_held_files_abandon (MusterHeldFiles *self, guint64 upload);
/* content may be more than a block. version (nullable): the one to be replaced, 0: none. Returns
 * the new one's; 0 with an error. */
guint64 muster_held_files_replace (MusterHeldFiles *self, const char *path,
                                   const MusterHeldBlock *content, const guint64 *version,
                                   GError **error);
gboolean muster_held_files_stat (MusterHeldFiles *self, const char *path, MusterHeldInfo *info,
                                 GError **error);
/* Sets block (its bytes are (transfer full)). */
gboolean muster_held_files_read (MusterHeldFiles *self, const char *path, guint64 version,
                                 guint64 offset, MusterHeldBlock *block, GError **error);
/* Sorted (transfer full). */
char **muster_held_files_list (MusterHeldFiles *self, const char *directory, GError **error);
gboolean muster_held_files_remove (MusterHeldFiles *self, const char *path, GError **error);
gboolean muster_held_files_copy (MusterHeldFiles *self, const char *from, const char *to,
                                 GError **error);
gboolean muster_held_files_sweep (MusterHeldFiles *self, const char *directory, const char *who,
                                  gint64 before_us, GError **error);
/* Gives the path to a process until token lets it go; then end is called with token. The same
 * process may take it again, by another token. FAILED_PRECONDITION if another one has it. */
gboolean muster_held_files_hold (MusterHeldFiles *self, const char *path, const char *who,
                                 gpointer token, GDestroyNotify end, GError **error);
void muster_held_files_let_go (MusterHeldFiles *self, const char *path, gconstpointer token);
/* All of them. */
void muster_held_files_end_holds (MusterHeldFiles *self);
gboolean muster_held_files_space (MusterHeldFiles *self, guint64 *n_bytes, GError **error);

G_END_DECLS
