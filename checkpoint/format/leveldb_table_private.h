// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Reads and writes LevelDB's table format, the format of PREFIX.index, in memory
 * (docs/decisions/0003). Malformed bytes are DATA_LOSS. Blocks are written uncompressed, as
 * TensorFlow writes them; those that are compressed with Snappy are read, too. Another method is
 * UNIMPLEMENTED. */

/* Receives one entry, whose bytes are valid during the call. FALSE with an error stops the
 * iteration. */
typedef gboolean (*MusterTableFunc) (const guint8 *key, gsize key_size, const guint8 *value,
                                     gsize value_size, gpointer user_data, GError **error);

#define MUSTER_TABLE_MAX G_MAXINT32 /* bytes: other readers add lengths as 32-bit numbers */

/* The magic number that a table ends with. */
extern const guint8 muster_table_magic[8];

/* Calls func for each entry of a table, in order, after checking the checksums. *flaw (nullable,
 * static) describes other damage, in bytes that readers don't use. */
gboolean muster_table_foreach (GBytes *table, MusterTableFunc func, gpointer user_data,
                               const char **flaw, GError **error);

/* Builds a table. Keys must be added in ascending order of their bytes, without duplicates. */
typedef struct _MusterTableBuilder MusterTableBuilder;

MusterTableBuilder *muster_table_builder_new (void);
void muster_table_builder_add (MusterTableBuilder *self, const guint8 *key, gsize key_size,
                               const guint8 *value, gsize value_size);
/* The table's bytes. Nothing may be added afterwards. */
GBytes *muster_table_builder_finish (MusterTableBuilder *self, GError **error);
void muster_table_builder_free (MusterTableBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTableBuilder, muster_table_builder_free)

G_END_DECLS
