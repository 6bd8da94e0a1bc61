// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_reader.h"
#include "bundle/checkpoint_state.h"
#include "cli/cli.h"

#include <string.h>
#include <sys/stat.h>

static const char summary[] =
    "Looks at checkpoints, muster's and TensorFlow's:\n"
    "  list DIR      each checkpoint of a directory: its step, age, size and state\n"
    "  show PREFIX   the tensors of one: names, dtypes, shapes, sizes\n"
    "  latest DIR    the prefix of the latest one";

/* What list prints of one checkpoint. */
typedef struct {
  char *prefix;
  gint64 step;
  gint64 when_us; /* wall clock */
  gint64 size;
  int shards;
  gboolean is_latest;
  char *damage; /* (nullable) */
} Listed;

static void
listed_free (gpointer data)
{
  Listed *self = data;
  g_free (self->prefix);
  g_free (self->damage);
  g_free (self);
}

static Listed *
look_at (const char *prefix, const char *latest)
{
  Listed *self = g_new0 (Listed, 1);
  g_autofree char *index = g_strconcat (prefix, ".index", NULL);
  struct stat info;
  self->prefix = g_strdup (prefix);
  self->step = muster_checkpoint_step (prefix);
  self->is_latest = g_strcmp0 (prefix, latest) == 0;
  if (stat (index, &info) == 0) {
    self->when_us = info.st_mtime * MUSTER_SECOND;
    self->size = info.st_size;
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader != NULL) {
    self->shards = muster_bundle_reader_n_shards (reader);
    for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++)
      self->size += muster_bundle_reader_entry (reader, i)->size;
    (void)muster_bundle_reader_verify (reader, NULL, NULL, NULL, &error); /* its error is the damage shown */
  }
  if (error != NULL)
    self->damage = g_strdup (error->message);
  return self;
}

static int
by_step (gconstpointer a, gconstpointer b)
{
  const Listed *x = *(Listed *const *)a, *y = *(Listed *const *)b;
  return x->step != y->step ? (x->step < y->step ? 1 : -1) : strcmp (x->prefix, y->prefix);
}

static void
print_listed (const Listed *self, gboolean json)
{
  if (!json) {
    g_autofree char *step =
        self->step < 0 ? g_strdup ("-") : g_strdup_printf ("%" G_GINT64_FORMAT, self->step);
    g_autofree char *age = muster_format_duration (
        MAX (0, muster_clock_wall_us (muster_system_clock ()) - self->when_us));
    g_autofree char *ago = g_strconcat (age, " ago", NULL);
    g_autofree char *size = muster_format_size ((guint64)self->size);
    printf ("%-8s %-14s %-9s %-7d %s%s%s\n", step, ago, size, self->shards,
            self->is_latest ? "latest, " : "", self->damage != NULL ? "damaged: " : "whole",
            self->damage != NULL ? self->damage : "");
    return;
  }
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Listed, prefix, STRING, "prefix"),
      MUSTER_JSON_FIELD (Listed, step, INT64, "step"),
      MUSTER_JSON_FIELD (Listed, size, INT64, "bytes"),
      MUSTER_JSON_FIELD (Listed, shards, INT, "shards"),
      MUSTER_JSON_FIELD (Listed, is_latest, BOOLEAN, "latest"),
      MUSTER_JSON_FIELD (Listed, damage, STRING, "damage"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), self);
  muster_json_print_line (builder);
}

static int
list (const char *directory, gboolean json)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, &error);
  if (names == NULL)
    return muster_cli_fail (error);
  g_autofree char *latest = muster_latest_checkpoint (NULL, directory, &error);
  if (error != NULL) {
    fprintf (stderr, "muster: warning: %s\n", error->message);
    g_clear_error (&error);
  }
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (listed_free);
  for (char **name = names; *name != NULL; name++) {
    if (!g_str_has_suffix (*name, ".index"))
      continue;
    g_autofree char *path = g_build_filename (directory, *name, NULL);
    path[strlen (path) - strlen (".index")] = '\0';
    g_ptr_array_add (found, look_at (path, latest));
  }
  g_ptr_array_sort (found, by_step);
  if (!json)
    printf (found->len == 0 ? "no checkpoints in %s\n"
                            : "step     when           size      shards  state\n",
            directory);
  for (guint i = 0; i < found->len; i++)
    print_listed (g_ptr_array_index (found, i), json);
  return MUSTER_EXIT_DONE;
}

static void
entry_json (const MusterBundleEntry *entry)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "name", entry->name);
  muster_json_add_string (builder, "dtype", muster_dtype_name (entry->dtype));
  json_builder_set_member_name (builder, "shape");
  json_builder_begin_array (builder);
  for (int i = 0; i < entry->n_dims; i++)
    json_builder_add_int_value (builder, entry->dims[i]);
  json_builder_end_array (builder);
  muster_json_add_int (builder, "bytes", entry->size);
  muster_json_add_int (builder, "shard", entry->shard);
  muster_json_add_boolean (builder, "sliced", entry->is_sliced);
  muster_json_print_line (builder);
}

static void
print_entries (MusterBundleReader *reader)
{
  gsize n = muster_bundle_reader_n_entries (reader);
  int width = 4;
  guint64 total = 0;
  for (gsize i = 0; i < n; i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    width = MAX (width, (int)MIN (strlen (entry->name), 60));
    total += (guint64)entry->size;
  }
  g_autofree char *all = muster_format_size (total);
  printf ("%" G_GSIZE_FORMAT " tensors, %s, %d shard%s\n", n, all,
          muster_bundle_reader_n_shards (reader),
          muster_bundle_reader_n_shards (reader) == 1 ? "" : "s");
  printf ("%-*s  %-9s  %-14s  %-9s  %s\n", width, "name", "dtype", "shape", "size", "shard");
  for (gsize i = 0; i < n; i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    g_autofree char *shape = muster_shape_to_string (entry->n_dims, entry->dims);
    g_autofree char *size =
        entry->is_sliced ? g_strdup ("in slices") : muster_format_size ((guint64)entry->size);
    printf ("%-*s  %-9s  %-14s  %-9s  %d\n", width, entry->name, muster_dtype_name (entry->dtype),
            shape, size, entry->shard);
  }
}

static int
show (const char *prefix, gboolean json)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader == NULL)
    return muster_cli_fail (error);
  if (!json)
    print_entries (reader);
  for (gsize i = 0; json && i < muster_bundle_reader_n_entries (reader); i++)
    entry_json (muster_bundle_reader_entry (reader, i));
  return MUSTER_EXIT_DONE;
}

static int
latest (const char *directory, gboolean json)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = muster_latest_checkpoint (NULL, directory, &error);
  if (error == NULL && prefix == NULL)
    g_set_error (&error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                 "'%s' has no checkpoint yet (no file 'checkpoint' in it)", directory);
  if (error != NULL)
    return muster_cli_fail (error);
  if (!json) {
    printf ("%s\n", prefix);
    return MUSTER_EXIT_DONE;
  }
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "latest", prefix);
  muster_json_add_int (builder, "step", muster_checkpoint_step (prefix));
  muster_json_print_line (builder);
  return MUSTER_EXIT_DONE;
}

int
muster_cli_checkpoint (int argc, char **argv)
{
  static const struct {
    const char *verb;
    int (*run) (const char *place, gboolean json);
  } verbs[] = {{"list", list}, {"show", show}, {"latest", latest}};

  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  if (!muster_cli_parse (argc, argv, "list DIR | show PREFIX | latest DIR", summary, NULL,
                         MUSTER_CLI_JSON, &options, &words, &error))
    return muster_cli_fail (error);
  for (gsize i = 0; g_strv_length (words) == 2 && i < G_N_ELEMENTS (verbs); i++)
    if (strcmp (words[0], verbs[i].verb) == 0)
      return verbs[i].run (words[1], options.json);
  fprintf (stderr, "muster: checkpoint needs list DIR, show PREFIX or latest DIR\n");
  return MUSTER_EXIT_BAD_INPUT;
}
