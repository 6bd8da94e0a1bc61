// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint diff`: matches the tensors of two checkpoints by name, and compares types,
 * shapes, checksums and then values. */
#include "cli/checkpoint/checkpoint.h"

#include "checkpoint/format/bundle_reader_private.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "cli/output/table.h"
#include "graph/tensor_stats.h"

#include <math.h>
#include <string.h>

static const char summary[] =
    "Compares checkpoints A and B (prefixes, directories or SavedModels): tensors that were\n"
    "added or removed or have another type or shape, and values: how many elements differ, bit\n"
    "for bit, and the largest difference.\n"
    "Exits with 0 if the two are equal, and with 1 if they differ.";

typedef enum {
  ADDED,
  REMOVED,
  RETYPED, /* another dtype or shape */
  CHANGED,
  EQUAL,
} Kind;

static const struct {
  const char *word, *sign, *colour;
} kinds[] = {
    [ADDED] = {"added", "+", "\033[32m"},
    [REMOVED] = {"removed", "-", "\033[31m"},
    [RETYPED] = {"retyped", "!", "\033[33m"},
    [CHANGED] = {"changed", "~", "\033[33m"},
    [EQUAL] = {"equal", "=", ""},
};

static const char *const value_names[] = {"elements", "differ", "max_abs", "nan"};

/* A name in A, B or both. */
typedef struct {
  Kind kind;
  const char *name; /* readable; borrowed */
  const MusterBundleEntry *a, *b;
  MusterTensorDifference values; /* of CHANGED */
  char *text;                    /* (owned) (nullable) "5 → 6", of one element */
} Change;

typedef struct {
  MusterCliOpened a, b;
  char *prefix_a, *prefix_b;            /* (owned) */
  MusterObjectNames *names_a, *names_b; /* (owned) (nullable) */
  GArray *changes;                      /* (owned) (element-type Change) by name */
  guint n[G_N_ELEMENTS (kinds)];
} Diff;

static void
clear_change (gpointer data)
{
  g_free (((Change *)data)->text);
}

static void
diff_clear (Diff *self)
{
  g_clear_pointer (&self->names_a, muster_object_names_free);
  g_clear_pointer (&self->names_b, muster_object_names_free);
  muster_cli_opened_clear (&self->a);
  muster_cli_opened_clear (&self->b);
  g_free (self->prefix_a);
  g_free (self->prefix_b);
  g_clear_pointer (&self->changes, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Diff, diff_clear)

static gboolean
open_one (const char *place, MusterCliOpened *opened, char **prefix, MusterObjectNames **names,
          GError **error)
{
  g_autoptr (GError) damage = NULL;
  if (!muster_cli_checkpoint_open_at (opened, place, prefix, error))
    return FALSE;
  *names = muster_object_names_read (opened->reader, &damage);
  if (damage != NULL)
    muster_cli_say (stderr, "muster: warning: %s\n", damage->message);
  return TRUE;
}

static gboolean
is_alike (const MusterBundleEntry *a, const MusterBundleEntry *b)
{
  return a->dtype == b->dtype && a->n_dims == b->n_dims &&
         (a->n_dims == 0 || memcmp (a->dims, b->dims, (gsize)a->n_dims * sizeof *a->dims) == 0);
}

/* Matches the names of both lists, which are sorted. */
static void
match_names (Diff *self)
{
  const gsize n_a = muster_bundle_reader_n_entries (self->a.reader),
              n_b = muster_bundle_reader_n_entries (self->b.reader);
  self->changes = g_array_new (FALSE, TRUE, sizeof (Change));
  g_array_set_clear_func (self->changes, clear_change);
  for (gsize i = 0, j = 0; i < n_a || j < n_b;) {
    const MusterBundleEntry *a = i < n_a ? muster_bundle_reader_entry (self->a.reader, i) : NULL,
                            *b = j < n_b ? muster_bundle_reader_entry (self->b.reader, j) : NULL;
    const int order = a == NULL ? 1 : b == NULL ? -1 : strcmp (a->name, b->name);
    Change change = {.a = order <= 0 ? a : NULL, .b = order >= 0 ? b : NULL};
    change.kind = order < 0 ? REMOVED : order > 0 ? ADDED : is_alike (a, b) ? EQUAL : RETYPED;
    change.name = change.a != NULL ? muster_cli_readable (self->names_a, a)
                                   : muster_cli_readable (self->names_b, b);
    g_array_append_val (self->changes, change);
    i += order <= 0;
    j += order >= 0;
  }
}

/* "5 → 6" */
static char *
one_to_other (const MusterTensor *a, const MusterTensor *b)
{
  GString *text = g_string_new (NULL);
  muster_tensor_append_element (text, a, 0, 20);
  g_string_append (text, " → ");
  muster_tensor_append_element (text, b, 0, 20);
  return g_string_free (text, FALSE);
}

/* Compares a tensor that muster can't read (a variant) by its checksums in the index. */
static void
compare_checksums (const Diff *self, Change *change)
{
  if (muster_bundle_reader_is_same (self->a.reader, change->a->name, self->b.reader,
                                    change->b->name))
    return;
  change->kind = CHANGED;
  change->text = g_strdup ("different checksum");
}

static gboolean
compare_values (Diff *self, Change *change, GError **error)
{
  if (!muster_dtype_is_supported (change->a->dtype)) {
    compare_checksums (self, change);
    return TRUE;
  }
  g_autoptr (MusterTensor) a = muster_bundle_reader_read (self->a.reader, change->a->name, error);
  if (a == NULL)
    return FALSE;
  g_autoptr (MusterTensor) b = muster_bundle_reader_read (self->b.reader, change->b->name, error);
  if (b == NULL)
    return FALSE;
  muster_tensor_difference (a, b, &change->values);
  if (change->values.n_differ == 0)
    return TRUE;
  change->kind = CHANGED;
  if (change->values.n == 1)
    change->text = one_to_other (a, b);
  return TRUE;
}

static guint64
bytes_of (const Change *change)
{
  const MusterBundleEntry *a = change->a;
  const gint64 n = muster_shape_n_elements (a->n_dims, a->dims);
  return a->is_sliced && n > 0 ? (guint64)n * MAX (muster_dtype_size (a->dtype), 1)
                               : (guint64)a->size;
}

static gboolean
compare_all (Diff *self, gboolean json, GError **error)
{
  g_autoptr (MusterProgress) progress = muster_cli_progress (json);
  guint64 all = 0, done = 0;
  for (guint i = 0; i < self->changes->len; i++) {
    const Change *change = &g_array_index (self->changes, Change, i);
    all += change->kind == EQUAL ? bytes_of (change) : 0;
  }
  muster_progress_part (progress, "comparing", 0, all);
  for (guint i = 0; i < self->changes->len; i++) {
    Change *change = &g_array_index (self->changes, Change, i);
    if (change->kind != EQUAL)
      continue;
    done += bytes_of (change);
    if (!muster_cli_checkpoint_check_time (error) || !compare_values (self, change, error))
      return FALSE;
    muster_progress_at (done, all, progress);
  }
  return TRUE;
}

static char *
type_of (const MusterBundleEntry *entry)
{
  g_autofree char *shape = muster_shape_to_string (entry->n_dims, entry->dims);
  return g_strdup_printf ("%s %s", muster_dtype_name (entry->dtype), shape);
}

/* "64 of 2,048 elements, by up to 0.013" */
static void
append_values (GString *text, const Change *change)
{
  const MusterTensorDifference *it = &change->values;
  if (change->text != NULL) {
    g_string_append (text, change->text);
    return;
  }
  g_string_append_printf (text, "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " differ", it->n_differ,
                          it->n);
  if (change->a->dtype != MUSTER_STRING && change->a->dtype != MUSTER_BOOL)
    g_string_append_printf (text, ", by up to %.6g%s", it->max_abs,
                            it->nan ? ", NaN on one side" : "");
}

static void
add_change (MusterTable *table, const Change *change, gboolean coloured)
{
  g_autofree char *a = change->a != NULL ? type_of (change->a) : NULL;
  g_autofree char *b = change->b != NULL ? type_of (change->b) : NULL;
  g_autofree char *name = g_strdup_printf ("%s %s", kinds[change->kind].sign, change->name);
  g_autoptr (GString) text = g_string_new (a != NULL ? a : b);
  if (change->kind == RETYPED)
    g_string_append_printf (text, " → %s", b);
  if (change->kind == CHANGED) {
    g_string_append (text, "  ");
    append_values (text, change);
  }
  muster_table_add (table, name, text->str, NULL);
  if (coloured)
    muster_table_colour (table, kinds[change->kind].colour);
}

static void
print_text (const Diff *self, gboolean with_values)
{
  const gboolean coloured = muster_cli_is_terminal (stdout) && g_getenv ("NO_COLOR") == NULL;
  const guint n_equal = self->n[EQUAL];
  if (n_equal == self->changes->len) {
    muster_cli_say (stdout, "%s and %s are equal: %u tensors%s\n", self->prefix_a, self->prefix_b,
                    n_equal, with_values ? "" : ", compared by name, type and shape");
    return;
  }
  muster_cli_say (stdout, "%s and %s differ:", self->prefix_a, self->prefix_b);
  const char *comma = " ";
  for (guint kind = 0; kind < G_N_ELEMENTS (kinds); kind++)
    if (self->n[kind] > 0) {
      muster_cli_say (stdout, "%s%u %s", comma, self->n[kind], kinds[kind].word);
      comma = ", ";
    }
  printf ("\n");
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (guint i = 0; i < self->changes->len; i++) {
    const Change *change = &g_array_index (self->changes, Change, i);
    if (change->kind != EQUAL)
      add_change (table, change, coloured);
  }
  muster_table_print (table, stdout);
}

static void
add_type (JsonBuilder *builder, const char *name, const MusterBundleEntry *entry)
{
  json_builder_set_member_name (builder, name);
  if (entry == NULL) {
    json_builder_add_null_value (builder);
    return;
  }
  json_builder_begin_object (builder);
  muster_json_add_string (builder, "dtype", muster_dtype_name (entry->dtype));
  json_builder_set_member_name (builder, "shape");
  json_builder_begin_array (builder);
  for (int d = 0; d < entry->n_dims; d++)
    json_builder_add_int_value (builder, entry->dims[d]);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
}

/* What isn't known is null. */
static void
add_values (JsonBuilder *builder, const Change *change)
{
  const MusterTensorDifference *it = &change->values;
  if (it->n == 0) {
    for (gsize i = 0; i < G_N_ELEMENTS (value_names); i++)
      muster_json_add_string (builder, value_names[i], NULL);
    return;
  }
  muster_json_add_int (builder, value_names[0], it->n);
  muster_json_add_int (builder, value_names[1], it->n_differ);
  json_builder_set_member_name (builder, value_names[2]);
  if (change->a->dtype != MUSTER_STRING && isfinite (it->max_abs))
    json_builder_add_double_value (builder, it->max_abs);
  else
    json_builder_add_null_value (builder);
  muster_json_add_boolean (builder, value_names[3], it->nan);
}

/* Prints a line for each difference, and a summary line. */
static void
print_json (const Diff *self)
{
  for (guint i = 0; i < self->changes->len; i++) {
    const Change *change = &g_array_index (self->changes, Change, i);
    if (change->kind == EQUAL)
      continue;
    g_autoptr (JsonBuilder) builder = muster_json_new_line ();
    muster_json_add_string (builder, "name", change->name);
    muster_json_add_string (builder, "change", kinds[change->kind].word);
    add_type (builder, "a", change->a);
    add_type (builder, "b", change->b);
    if (change->kind == CHANGED)
      add_values (builder, change);
    muster_json_print_line (builder);
  }
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "a", self->prefix_a);
  muster_json_add_string (builder, "b", self->prefix_b);
  for (guint kind = 0; kind < G_N_ELEMENTS (kinds); kind++)
    muster_json_add_int (builder, kinds[kind].word, self->n[kind]);
  muster_json_print_line (builder);
}

static gboolean
read_yes (const char *text, gboolean *value, GError **error)
{
  *value = text == NULL || strcmp (text, "yes") == 0;
  if (*value || strcmp (text, "no") == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "checkpoint diff: invalid --values '%s' (use yes or no)", text);
}

int
muster_cli_checkpoint_diff (int argc, char **argv)
{
  g_autofree char *values = NULL;
  gboolean with_values;
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_auto (Diff) diff = {0};
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"values", 0, 0, G_OPTION_ARG_STRING, &values,
       "compare values; no: only names, types and shapes (default: yes)", "yes|no"},
      {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "A B", summary, entries, 2, 2, &options, &words,
                                    &code))
    return code;
  if (!read_yes (values, &with_values, &error) ||
      !open_one (words[0], &diff.a, &diff.prefix_a, &diff.names_a, &error) ||
      !open_one (words[1], &diff.b, &diff.prefix_b, &diff.names_b, &error))
    return muster_cli_fail (error);
  match_names (&diff);
  if (with_values && !compare_all (&diff, options.json, &error))
    return muster_cli_fail (error);
  for (guint i = 0; i < diff.changes->len; i++)
    diff.n[g_array_index (diff.changes, Change, i).kind]++;
  if (options.json)
    print_json (&diff);
  else
    print_text (&diff, with_values);
  return diff.n[EQUAL] == diff.changes->len ? MUSTER_EXIT_DONE : MUSTER_EXIT_NO;
}
