// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint show`: a checkpoint's tensors, with type, shape, size and place. */
#include "cli/checkpoint/checkpoint.h"

#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "cli/checkpoint/checkpoint_list.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/checkpoint/checkpoint_tensor.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "cli/output/table.h"

#include <string.h>

static const char summary[] =
    "Lists the tensors of a checkpoint. PREFIX is its prefix, one of its files, a directory (its\n"
    "latest checkpoint) or a SavedModel.\n"
    "Tensors of an object-based checkpoint (TensorFlow 2) are listed under their readable names.\n"
    "With TENSOR, a name from that list or a variable's name, prints its statistics and values:\n"
    "all of a few, the first and last of many.";

/* A line of the list. */
typedef struct {
  const MusterBundleEntry *entry;
  const char *name;               /* for display */
  const MusterObjectName *object; /* (nullable) */
  gsize n_slices;
  gint64 bytes; /* -1: in slices of unknown length */
} Row;

static Row
row_of (MusterBundleReader *reader, const MusterObjectNames *names, gsize i)
{
  const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
  const MusterObjectName *object =
      names != NULL ? muster_object_names_find (names, entry->name) : NULL;
  Row row = {.entry = entry,
             .name = muster_cli_readable (names, entry),
             .object = object,
             .bytes = entry->size};
  if (!entry->is_sliced)
    return row;
  const gint64 n = muster_shape_n_elements (entry->n_dims, entry->dims);
  const gsize size = muster_dtype_size (entry->dtype);
  row.n_slices = muster_bundle_reader_n_slices (reader, entry->name);
  row.bytes = size > 0 && n >= 0 && n <= G_MAXINT64 / 16 ? n * (gint64)size : -1;
  return row;
}

static gboolean
is_hidden (const Row *row, const MusterObjectNames *names)
{
  return names != NULL && strcmp (row->entry->name, MUSTER_OBJECT_GRAPH_KEY) == 0;
}

static void
row_json (MusterBundleReader *reader, const Row *row)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "name", row->name);
  if (row->object != NULL) {
    muster_json_add_string (builder, "key", row->object->key);
    muster_json_add_string (builder, "path", row->object->path);
    muster_json_add_string (builder, "full_name", row->object->full_name);
  }
  muster_cli_entry_json (builder, reader, row->entry);
  muster_json_print_line (builder);
}

static void
add_row (MusterTable *table, const Row *row)
{
  const MusterBundleEntry *entry = row->entry;
  g_autofree char *shape = muster_shape_to_string (entry->n_dims, entry->dims);
  g_autofree char *size =
      row->bytes < 0 ? g_strdup ("-") : muster_format_size ((guint64)row->bytes);
  /* only if the path doesn't contain it */
  const char *full_name = row->object != NULL ? row->object->full_name : NULL;
  const gboolean has_other = full_name != NULL && !g_str_has_suffix (row->name, full_name);
  g_autoptr (GString) shard = g_string_new (NULL);
  if (row->n_slices > 0)
    g_string_append_printf (shard, "%" G_GSIZE_FORMAT " slices", row->n_slices);
  else
    g_string_append_printf (shard, "%d", entry->shard);
  if (has_other)
    g_string_append_printf (shard, "  %s", full_name);
  muster_table_add (table, row->name, muster_dtype_name (entry->dtype), shape, size, shard->str,
                    NULL);
}

/* "15 tensors, 4.2 KB, 1 shard, step 5, 40 s ago, saved by muster" */
static void
print_head (const char *prefix, MusterBundleReader *reader, const MusterObjectNames *names)
{
  MusterCheckpointOverview overview;
  g_autoptr (GError) damage = NULL;
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_cli_storage (), directory, NULL);
  const gboolean is_whole =
      muster_checkpoint_inspect (muster_cli_storage (), prefix, &overview, &damage);
  const gsize n = names != NULL ? muster_object_names_n (names) : overview.n_tensors;
  const gint64 step = muster_checkpoint_step (prefix);
  const gint32 n_shards = muster_bundle_reader_n_shards (reader);
  g_autofree char *size = muster_format_size (overview.bytes);
  g_autofree char *ago = muster_cli_ago (overview.when_us);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "%" G_GSIZE_FORMAT " tensor%s, %s, %d shard%s", n,
                          n == 1 ? "" : "s", size, n_shards, n_shards == 1 ? "" : "s");
  if (step >= 0)
    g_string_append_printf (text, ", step %" G_GINT64_FORMAT, step);
  g_string_append_printf (text, ", %s", ago);
  if (names != NULL)
    g_string_append (text, ", saved by TensorFlow as objects");
  else if (record != NULL && muster_checkpoint_record_find (record, prefix) != NULL)
    g_string_append (text, ", saved by muster");
  muster_cli_say (stdout, "%s: %s\n", prefix, text->str);
  if (!is_whole)
    muster_cli_say (stdout, "damaged: %s\n", damage->message);
}

static void
show_all (const char *prefix, MusterBundleReader *reader, const MusterObjectNames *names)
{
  g_autoptr (MusterTable) table = muster_table_new (5);
  print_head (prefix, reader, names);
  muster_table_add (table, "name", "dtype", "shape", "size", "shard", NULL);
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const Row row = row_of (reader, names, i);
    if (!is_hidden (&row, names))
      add_row (table, &row);
  }
  muster_table_print (table, stdout);
}

static void
show_json (MusterBundleReader *reader, const MusterObjectNames *names)
{
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const Row row = row_of (reader, names, i);
    row_json (reader, &row);
  }
}

int
muster_cli_checkpoint_show (int argc, char **argv)
{
  MusterCliShow what = {0};
  g_autofree char *slice = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"full", 0, 0, G_OPTION_ARG_NONE, &what.full, "print all values of TENSOR", NULL},
      {"slice", 0, 0, G_OPTION_ARG_STRING, &slice,
       "part of TENSOR: start,length or - for each dimension, such as 0,4:- (default: all)",
       "SLICE"},
      {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "PREFIX [TENSOR]", summary, entries, 1, 2, &options,
                                    &words, &code))
    return code;
  what.json = options.json;
  what.slice = slice;
  g_autofree char *prefix = NULL;
  g_auto (MusterCliOpened) opened = {0};
  if (!muster_cli_checkpoint_open_at (&opened, words[0], &prefix, &error))
    return muster_cli_fail (error);
  g_autoptr (MusterObjectNames) names = muster_object_names_read (opened.reader, &error);
  if (error != NULL)
    muster_cli_say (stderr, "muster: warning: %s\n", error->message);
  g_clear_error (&error);
  if (words[1] != NULL)
    return muster_cli_show_tensor (opened.reader, names, words[1], &what);
  if (options.json)
    show_json (opened.reader, names);
  else
    show_all (prefix, opened.reader, names);
  return MUSTER_EXIT_DONE;
}
