// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint show PREFIX TENSOR`: one tensor's statistics and values. */
#include "cli/checkpoint/checkpoint_tensor.h"

#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/common/feed.h"
#include "cli/common/values.h"
#include "cli/output/json.h"
#include "graph/tensor_stats.h"

#include <math.h>
#include <string.h>

#define SHOWN_LIKE  3        /* suggested names that contain an unknown name */
#define JSON_VALUES 1000     /* without --full */
#define MOST_JSON   10000000 /* with --full: a line of JSON is built in memory */

static void
shape_json (JsonBuilder *builder, int n_dims, const gint64 *dims)
{
  json_builder_set_member_name (builder, "shape");
  json_builder_begin_array (builder);
  for (int i = 0; i < n_dims; i++)
    json_builder_add_int_value (builder, dims[i]);
  json_builder_end_array (builder);
}

static void
slices_json (JsonBuilder *builder, MusterBundleReader *reader, const MusterBundleEntry *entry)
{
  const gsize n = muster_bundle_reader_n_slices (reader, entry->name);
  json_builder_set_member_name (builder, "slices");
  json_builder_begin_array (builder);
  for (gsize i = 0; i < n; i++) {
    gint32 shard;
    g_autofree char *slice = muster_bundle_reader_slice (reader, entry->name, i, &shard);
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "slice", slice);
    muster_json_add_step (builder, "shard", shard);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
muster_cli_entry_json (JsonBuilder *builder, MusterBundleReader *reader,
                       const MusterBundleEntry *entry)
{
  muster_json_add_string (builder, "dtype", muster_dtype_name (entry->dtype));
  shape_json (builder, entry->n_dims, entry->dims);
  muster_json_add_boolean (builder, "sliced", entry->is_sliced);
  if (entry->is_sliced) {
    slices_json (builder, reader, entry);
  } else {
    muster_json_add_int (builder, "bytes", entry->size);
    muster_json_add_int (builder, "shard", entry->shard);
  }
}

/* The names that contain an unknown name, as suggestions. */
static char *
names_like (MusterBundleReader *reader, const MusterObjectNames *names, const char *name)
{
  GString *text = g_string_new (NULL);
  guint n = 0;
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader) && n < SHOWN_LIKE; i++) {
    const char *key = muster_bundle_reader_entry (reader, i)->name;
    const MusterObjectName *object = names != NULL ? muster_object_names_find (names, key) : NULL;
    const char *shown = object != NULL ? object->path : key;
    if (strstr (shown, name) == NULL &&
        (object == NULL || object->full_name == NULL || strstr (object->full_name, name) == NULL))
      continue;
    g_string_append_printf (text, "%s'%s'", n++ == 0 ? "; similar: " : ", ", shown);
  }
  return g_string_free (text, FALSE);
}

static const MusterBundleEntry *
find (MusterBundleReader *reader, const MusterObjectNames *names, const char *name, GError **error)
{
  guint n = 0;
  const MusterBundleEntry *entry = muster_bundle_reader_find (reader, name);
  const char *key =
      entry == NULL && names != NULL ? muster_object_names_key_of (names, name, &n) : NULL;
  if (key != NULL)
    entry = muster_bundle_reader_find (reader, key);
  if (entry != NULL)
    return entry;
  g_autofree char *like = names_like (reader, names, name);
  if (n > 1)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "ambiguous name: %u variables of checkpoint '%s' are called '%s'%s", n,
                 muster_bundle_reader_prefix (reader), name, like);
  else
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "checkpoint '%s' has no tensor '%s'%s",
                 muster_bundle_reader_prefix (reader), name, like);
  return NULL;
}

static void
add_number (JsonBuilder *builder, const char *name, double value)
{
  json_builder_set_member_name (builder, name);
  if (isfinite (value))
    json_builder_add_double_value (builder, value);
  else
    json_builder_add_null_value (builder);
}

static void
stats_json (JsonBuilder *builder, MusterDType dtype, const MusterTensorStats *stats)
{
  json_builder_set_member_name (builder, "statistics");
  json_builder_begin_object (builder);
  muster_json_add_int (builder, "elements", stats->n);
  if (dtype == MUSTER_STRING) {
    muster_json_add_int (builder, "shortest", (gint64)stats->shortest);
    muster_json_add_int (builder, "longest", (gint64)stats->longest);
    muster_json_add_int (builder, "total", (gint64)stats->total);
  } else if (dtype == MUSTER_BOOL) {
    muster_json_add_int (builder, "true", stats->n_true);
  } else {
    add_number (builder, "min", stats->min);
    add_number (builder, "max", stats->max);
    add_number (builder, "mean", stats->mean);
    add_number (builder, "std", stats->std);
    muster_json_add_int (builder, "zeros", stats->n_zero);
    muster_json_add_int (builder, "nan", stats->n_nan);
    muster_json_add_int (builder, "inf", stats->n_inf);
  }
  json_builder_end_object (builder);
}

static void
values_json (JsonBuilder *builder, const MusterTensor *tensor, gboolean full)
{
  const gint64 n = muster_tensor_n_elements (tensor);
  json_builder_set_member_name (builder, "values");
  if (!full && n > JSON_VALUES) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_array (builder);
  for (gint64 i = 0; i < n; i++)
    muster_cli_element_json (builder, tensor, i);
  json_builder_end_array (builder);
}

/* "3 zeros" */
static void
append_count (GString *text, const char *before, gint64 n, const char *one, const char *many)
{
  if (n == 0)
    g_string_append_printf (text, "%sno %s", before, many);
  else
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT " %s", before, n, n == 1 ? one : many);
}

static void
append_numbers (GString *text, const MusterTensor *tensor, const MusterTensorStats *stats)
{
  const MusterDType dtype = muster_tensor_dtype (tensor);
  const gboolean is_complex = dtype == MUSTER_COMPLEX64 || dtype == MUSTER_COMPLEX128;
  g_string_append (text, "min ");
  if (stats->min_at < 0) {
    g_string_append (text, "-, max -, mean -, std -");
  } else if (is_complex) {
    g_string_append_printf (text, "%.6g, max %.6g", stats->min, stats->max);
  } else {
    muster_tensor_append_element (text, tensor, stats->min_at, G_MAXSIZE);
    g_string_append (text, ", max ");
    muster_tensor_append_element (text, tensor, stats->max_at, G_MAXSIZE);
  }
  if (stats->min_at >= 0)
    g_string_append_printf (text, ", mean %.6g, std %.6g", stats->mean, stats->std);
  if (is_complex)
    g_string_append (text, " (magnitudes)");
  append_count (text, "; ", stats->n_zero, "zero", "zeros");
  append_count (text, ", ", stats->n_nan, "NaN", "NaN");
  append_count (text, ", ", stats->n_inf, "Inf", "Inf");
}

static void
print_stats (const MusterTensor *tensor, const MusterTensorStats *stats)
{
  g_autoptr (GString) text = g_string_new (NULL);
  const MusterDType dtype = muster_tensor_dtype (tensor);
  if (dtype == MUSTER_STRING) {
    g_autofree char *total = muster_format_size (stats->total);
    g_string_append_printf (text, "%" G_GINT64_FORMAT " string%s of ", stats->n,
                            stats->n == 1 ? "" : "s");
    if (stats->shortest < stats->longest)
      g_string_append_printf (text, "%" G_GUINT64_FORMAT " to ", stats->shortest);
    g_string_append_printf (text, "%" G_GUINT64_FORMAT " byte%s, %s in all", stats->longest,
                            stats->longest == 1 ? "" : "s", total);
  } else if (dtype == MUSTER_BOOL) {
    g_string_append_printf (text, "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " are true",
                            stats->n_true, stats->n);
  } else {
    append_numbers (text, tensor, stats);
  }
  muster_cli_say (stdout, "  %s\n", text->str);
}

/* "dense_1/kernel  float [64,256], 64 KB, shard 0" */
static void
print_place (const MusterBundleEntry *entry, const char *name, const MusterTensor *tensor,
             const char *slice)
{
  g_autofree char *shape = muster_shape_to_string (entry->n_dims, entry->dims);
  g_autofree char *part =
      muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
  g_autofree char *size = muster_format_size ((guint64)entry->size);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "%s  %s %s", name, muster_dtype_name (entry->dtype), shape);
  if (entry->is_sliced)
    g_string_append (text, ", in slices");
  else
    g_string_append_printf (text, ", %s, shard %d", size, entry->shard);
  if (slice != NULL)
    g_string_append_printf (text, "; slice %s, which is %s", slice, part);
  muster_cli_say (stdout, "%s\n", text->str);
}

static void
print_json (MusterBundleReader *reader, const MusterBundleEntry *entry, const char *name,
            const MusterTensor *tensor, const MusterTensorStats *stats, const MusterCliShow *what)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "name", name);
  if (strcmp (name, entry->name) != 0)
    muster_json_add_string (builder, "key", entry->name);
  muster_cli_entry_json (builder, reader, entry);
  if (what->slice != NULL)
    muster_json_add_string (builder, "slice", what->slice);
  stats_json (builder, entry->dtype, stats);
  values_json (builder, tensor, what->full);
  muster_json_print_line (builder);
}

int
muster_cli_show_tensor (MusterBundleReader *reader, const MusterObjectNames *names,
                        const char *name, const MusterCliShow *what)
{
  g_autoptr (GError) error = NULL;
  MusterTensorStats stats;
  const MusterBundleEntry *entry = find (reader, names, name, &error);
  if (entry == NULL)
    return muster_cli_fail (error);
  const char *shown = muster_cli_readable (names, entry);
  g_autoptr (MusterTensor) tensor =
      muster_bundle_reader_read_slice (reader, entry->name, what->slice, &error);
  if (tensor != NULL && what->json && what->full && muster_tensor_n_elements (tensor) > MOST_JSON)
    muster_fail (&error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "'%s' has %" G_GINT64_FORMAT
                 " elements, over the limit of %d for JSON; use --slice",
                 shown, muster_tensor_n_elements (tensor), MOST_JSON);
  if (error != NULL)
    return muster_cli_fail (error);
  muster_tensor_stats (tensor, &stats);
  if (what->json) {
    print_json (reader, entry, shown, tensor, &stats, what);
    return MUSTER_EXIT_DONE;
  }
  print_place (entry, shown, tensor, what->slice);
  if (stats.n != 1 || entry->dtype == MUSTER_STRING)
    print_stats (tensor, &stats);
  muster_values_print (stdout, tensor, what->full, 2);
  return MUSTER_EXIT_DONE;
}
