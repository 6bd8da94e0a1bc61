// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* LevelDB's Table, which is what PREFIX.index is, over memory (docs/decisions/0003); malformed
 * bytes are DATA_LOSS. Tables of blocks without compression, as TensorFlow writes them; a
 * compressed block is UNIMPLEMENTED. */

/* One entry; what it points to is the caller's for the call. FALSE with an error ends the walk. */
typedef gboolean (*MusterTableFunc) (const guint8 *key, gsize key_size, const guint8 *value,
                                     gsize value_size, gpointer user_data, GError **error);

#define MUSTER_TABLE_MAX G_MAXINT32 /* bytes: other readers add lengths in 32 bits */

/* Calls func for each entry of a table, in the table's order, checksums checked. *flaw (nullable,
 * static) is what else is wrong with the table's bytes: damage that changes no entry, in parts that
 * nobody reads. */
gboolean muster_table_foreach (GBytes *table, MusterTableFunc func, gpointer user_data,
                               const char **flaw, GError **error);

/* A checksum that is right makes no length so: this walks all blocks first, sums them, and refuses
 * what would lead outside the table. */
gboolean muster_table_check (const guint8 *data, gsize size, const char **flaw, GError **error);

/* Builds a table. Keys come in ascending order of their bytes, each once. */
typedef struct _MusterTableBuilder MusterTableBuilder;

MusterTableBuilder *muster_table_builder_new (void);
void muster_table_builder_add (MusterTableBuilder *self, const guint8 *key, gsize key_size,
                               const guint8 *value, gsize value_size);
/* The table's bytes; nothing may be added after it. */
GBytes *muster_table_builder_finish (MusterTableBuilder *self, GError **error);
void muster_table_builder_free (MusterTableBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTableBuilder, muster_table_builder_free)

G_END_DECLS
