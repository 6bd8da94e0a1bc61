// SPDX-License-Identifier: Apache-2.0
#include "engine/run/registry.h"

#include <string.h>

static GRWLock lock;
static GHashTable *by_name; /* (owned) name to MusterOpEntry; guarded by lock */
static GPtrArray *entries;  /* (owned) every entry, the replaced ones too; guarded by lock */

/* Entries are never freed: plans point at them. */
static void
add_table (const MusterOp *table, gboolean replaces)
{
  g_rw_lock_writer_lock (&lock);
  if (by_name == NULL) {
    by_name = g_hash_table_new (g_str_hash, g_str_equal);
    entries = g_ptr_array_new ();
  }
  for (const MusterOp *op = table; op->name != NULL; op++) {
    if (!replaces && g_hash_table_contains (by_name, op->name))
      continue;
    MusterOpEntry *entry = g_new (MusterOpEntry, 1);
    entry->op = op;
    entry->signature = muster_signature_new (op);
    g_hash_table_insert (by_name, (gpointer)op->name, entry);
    g_ptr_array_add (entries, entry);
  }
  g_rw_lock_writer_unlock (&lock);
}

const MusterOpEntry *
muster_op_find_entry (const char *name)
{
  g_rw_lock_reader_lock (&lock);
  const MusterOpEntry *entry = by_name != NULL ? g_hash_table_lookup (by_name, name) : NULL;
  g_rw_lock_reader_unlock (&lock);
  return entry;
}

void
muster_op_register (const MusterOp *table)
{
  add_table (table, TRUE);
}

void
muster_op_register_default (const MusterOp *table)
{
  add_table (table, FALSE);
}

static void
add_name (gpointer key, gpointer value G_GNUC_UNUSED, gpointer names)
{
  g_ptr_array_add (names, key);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *
muster_op_names (void)
{
  GPtrArray *names = g_ptr_array_new ();
  g_rw_lock_reader_lock (&lock);
  if (by_name != NULL)
    g_hash_table_foreach (by_name, add_name, names);
  g_rw_lock_reader_unlock (&lock);
  g_ptr_array_sort (names, compare_names);
  return names;
}

/* Each session has them, and sends them: a graph of as many names as nodes is no reason to. */
#define LONGEST_LACKING 8192

char **
muster_op_lacking (MusterGraph *graph)
{
  g_autoptr (GHashTable) unknown = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  const MusterNodeKind *last = NULL;
  gsize left = LONGEST_LACKING;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNodeKind *kind = muster_graph_node (graph, i)->kind;
    if (kind != last && muster_op_find_entry (kind->op) == NULL && strlen (kind->op) < left &&
        g_hash_table_add (unknown, (gpointer)kind->op)) {
      g_strv_builder_add (names, kind->op);
      left -= strlen (kind->op) + 1;
    }
    last = kind;
  }
  return g_strv_builder_end (names);
}
