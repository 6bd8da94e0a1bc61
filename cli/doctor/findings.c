// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/findings.h"

#include "cli/output/json.h"
#include "cli/output/sanitise.h"
#include "cli/output/table.h"

#include <string.h>

typedef struct {
  char *place, *state; /* (owned) */
} Place;

struct _MusterFindings {
  GArray *findings; /* (owned) (element-type MusterFinding) */
  GArray *places;   /* (owned) (element-type Place) */
};

static const char *const severities[] = {
    [MUSTER_FINDING_ERROR] = "error",
    [MUSTER_FINDING_WARNING] = "warning",
};

static const char *const checks[MUSTER_N_CHECKS] = {
    [MUSTER_CHECK_SECRET] = "secret",   [MUSTER_CHECK_MASTER] = "master",
    [MUSTER_CHECK_ACCESS] = "access",   [MUSTER_CHECK_DIRECTORY] = "directory",
    [MUSTER_CHECK_SPACE] = "space",     [MUSTER_CHECK_CHECKPOINT] = "checkpoint",
    [MUSTER_CHECK_CHIEF] = "chief",     [MUSTER_CHECK_TASKS] = "tasks",
    [MUSTER_CHECK_WAIT] = "wait",       [MUSTER_CHECK_STEP] = "step",
    [MUSTER_CHECK_SAVE] = "save",       [MUSTER_CHECK_LIMIT] = "limit",
    [MUSTER_CHECK_CLOCK] = "clock",     [MUSTER_CHECK_VERSION] = "version",
    [MUSTER_CHECK_GOODPUT] = "goodput", [MUSTER_CHECK_FILES] = "files",
};

static void
finding_clear (gpointer data)
{
  MusterFinding *self = data;
  g_free (self->what);
  g_free (self->where);
  g_free (self->remedy);
}

static void
place_clear (gpointer data)
{
  Place *self = data;
  g_free (self->place);
  g_free (self->state);
}

MusterFindings *
muster_findings_new (void)
{
  MusterFindings *self = g_new (MusterFindings, 1);
  self->findings = g_array_new (FALSE, FALSE, sizeof (MusterFinding));
  self->places = g_array_new (FALSE, FALSE, sizeof (Place));
  g_array_set_clear_func (self->findings, finding_clear);
  g_array_set_clear_func (self->places, place_clear);
  return self;
}

void
muster_findings_free (MusterFindings *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->findings);
  g_array_unref (self->places);
  g_free (self);
}

void
muster_findings_add (MusterFindings *self, MusterSeverity severity, MusterCheck check,
                     const char *where, const char *remedy, const char *what, ...)
{
  va_list arguments;
  va_start (arguments, what);
  const MusterFinding finding = {severity, check, g_strdup_vprintf (what, arguments),
                                 g_strdup (where), g_strdup (remedy)};
  va_end (arguments);
  g_array_append_val (self->findings, finding);
}

void
muster_findings_add_error (MusterFindings *self, MusterSeverity severity, MusterCheck check,
                           const char *where, const GError *error, const char *remedy)
{
  const char *end = g_strrstr (error->message, "; ");
  g_autofree char *what = end != NULL ? g_strndup (error->message, (gsize)(end - error->message))
                                      : g_strdup (error->message);
  muster_findings_add (self, severity, check, where, end != NULL ? end + strlen ("; ") : remedy,
                       "%s", what);
}

void
muster_findings_add_place (MusterFindings *self, const char *place, const char *state, ...)
{
  va_list arguments;
  va_start (arguments, state);
  const Place one = {g_strdup (place), g_strdup_vprintf (state, arguments)};
  va_end (arguments);
  g_array_append_val (self->places, one);
}

/* The elements move. */
static void
move_all (GArray *to, GArray *from)
{
  g_array_append_vals (to, from->data, from->len);
  g_array_set_clear_func (from, NULL);
  g_array_set_size (from, 0);
}

void
muster_findings_take (MusterFindings *self, MusterFindings *other)
{
  move_all (self->findings, other->findings);
  move_all (self->places, other->places);
}

static int
worst_first (gconstpointer a, gconstpointer b)
{
  const MusterFinding *x = a, *y = b;
  return x->severity != y->severity ? (int)x->severity - (int)y->severity
                                    : (int)x->check - (int)y->check;
}

/* The order in which they were added decides between equals: g_array_sort () is stable. */
const GArray *
muster_findings_list (MusterFindings *self)
{
  g_array_sort (self->findings, worst_first);
  return self->findings;
}

/* --- as text --- */

static void
print_findings (const GArray *list)
{
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (guint i = 0; i < list->len; i++) {
    const MusterFinding *it = &g_array_index (list, MusterFinding, i);
    muster_table_add (table, severities[it->severity], it->what, NULL);
    muster_table_add (table, "  where", it->where, NULL);
    muster_table_add (table, "  try", it->remedy, NULL);
  }
  muster_table_print (table, stdout);
}

static void
print_sum (const GArray *list)
{
  const guint n = list->len;
  guint n_errors = 0;
  for (guint i = 0; i < n; i++)
    n_errors += g_array_index (list, MusterFinding, i).severity == MUSTER_FINDING_ERROR;
  if (n == 0)
    muster_cli_say (stdout, "nothing found\n");
  else
    muster_cli_say (stdout, "%u error%s, %u warning%s\n", n_errors, n_errors == 1 ? "" : "s",
                    n - n_errors, n - n_errors == 1 ? "" : "s");
}

void
muster_findings_print (MusterFindings *self)
{
  const GArray *list = muster_findings_list (self);
  print_findings (list);
  print_sum (list);
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (guint i = 0; i < self->places->len; i++) {
    const Place *it = &g_array_index (self->places, Place, i);
    g_autofree char *place = g_strconcat ("  ", it->place, NULL);
    muster_table_add (table, place, it->state, NULL);
  }
  muster_table_print (table, stdout);
}

/* --- as JSON --- */

static void
findings_json (JsonBuilder *builder, const GArray *list)
{
  json_builder_set_member_name (builder, "findings");
  json_builder_begin_array (builder);
  for (guint i = 0; i < list->len; i++) {
    const MusterFinding *it = &g_array_index (list, MusterFinding, i);
    json_builder_begin_object (builder);
    muster_json_add_string (builder, "severity", severities[it->severity]);
    muster_json_add_string (builder, "check", checks[it->check]);
    muster_json_add_string (builder, "what", it->what);
    muster_json_add_string (builder, "where", it->where);
    muster_json_add_string (builder, "try", it->remedy);
    json_builder_end_object (builder);
  }
  json_builder_end_array (builder);
}

void
muster_findings_print_json (MusterFindings *self)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (Place, place, STRING, "place"),
      MUSTER_JSON_FIELD (Place, state, STRING, "state"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  g_autoptr (GPtrArray) places = g_ptr_array_new ();
  for (guint i = 0; i < self->places->len; i++)
    g_ptr_array_add (places, &g_array_index (self->places, Place, i));
  findings_json (builder, muster_findings_list (self));
  muster_json_add_list (builder, "places", fields, G_N_ELEMENTS (fields), places->pdata,
                        places->len);
  muster_json_print_line (builder);
}
