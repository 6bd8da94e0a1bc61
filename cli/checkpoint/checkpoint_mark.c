// SPDX-License-Identifier: Apache-2.0
/* What is noted of a checkpoint: pin, unpin and mark. */
#include "checkpoint/state/checkpoint_mark.h"

#include "checkpoint/state/keep_rules_private.h"
#include "checkpoint/state/quarantine.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/output/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const char pin_summary[] =
    "Pins checkpoints, or a directory's latest: neither a job nor prune removes them, and they\n"
    "don't count towards the number to keep. A job that saves there may be running.";
static const char unpin_summary[] = "Removes pins. The job that saved a checkpoint removes it "
                                    "with a later save, unless another\n"
                                    "rule keeps it.";
static const char mark_summary[] =
    "Gives a checkpoint the value of a metric, as an evaluator beside the job does. A job with\n"
    "--keep-best and this --metric counts it from its next save on.";

/* The prefixes of all words; NULL if one isn't a checkpoint: then nothing is changed. */
static char **
find_all (char **words, GError **error)
{
  g_autoptr (GStrvBuilder) found = g_strv_builder_new ();
  for (char **word = words; *word != NULL; word++) {
    g_autofree char *prefix = muster_cli_checkpoint_find (*word, error);
    if (prefix == NULL)
      return NULL;
    g_strv_builder_add (found, prefix);
  }
  return g_strv_builder_end (found);
}

static JsonBuilder *
begin_line (const char *prefix)
{
  JsonBuilder *builder = muster_json_new_line ();
  muster_json_add_string (builder, "prefix", prefix);
  muster_json_add_step (builder, "step", muster_checkpoint_step (prefix));
  return builder;
}

/* --- pins --- */

static void
print_pinned (const char *prefix, const char *why, gboolean json)
{
  if (!json) {
    muster_cli_say (stdout, "pinned %s%s%s\n", prefix, why != NULL ? ": " : "",
                    why != NULL ? why : "");
    return;
  }
  g_autoptr (JsonBuilder) builder = begin_line (prefix);
  muster_json_add_boolean (builder, "pinned", TRUE);
  muster_json_add_string (builder, "why", why);
  muster_json_print_line (builder);
}

int
muster_cli_checkpoint_pin (int argc, char **argv)
{
  g_autofree char *why = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"why", 0, 0, G_OPTION_ARG_STRING, &why, "reason, which list shows (default: none)", "TEXT"},
      {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "PREFIX|DIR…", pin_summary, entries, 1, G_MAXINT,
                                    &options, &words, &code))
    return code;
  g_auto (GStrv) prefixes = find_all (words, &error);
  for (char **prefix = prefixes; prefix != NULL && *prefix != NULL; prefix++) {
    if (!muster_checkpoint_pin (muster_cli_storage (), *prefix, why, muster_cli_lock_deadline (),
                                NULL, &error))
      break;
    print_pinned (*prefix, why, options.json);
  }
  return error == NULL ? MUSTER_EXIT_DONE : muster_cli_fail (error);
}

static void
print_unpinned (const char *prefix, gboolean json)
{
  if (!json) {
    muster_cli_say (stdout, "unpinned %s\n", prefix);
    return;
  }
  g_autoptr (JsonBuilder) builder = begin_line (prefix);
  muster_json_add_boolean (builder, "pinned", FALSE);
  muster_json_print_line (builder);
}

int
muster_cli_checkpoint_unpin (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  if (!muster_cli_checkpoint_parse (argc, argv, "PREFIX|DIR…", unpin_summary, NULL, 1, G_MAXINT,
                                    &options, &words, &code))
    return code;
  g_auto (GStrv) prefixes = find_all (words, &error);
  for (char **prefix = prefixes; prefix != NULL && *prefix != NULL; prefix++) {
    if (!muster_checkpoint_unpin (muster_cli_storage (), *prefix, muster_cli_lock_deadline (), NULL,
                                  &error))
      break;
    print_unpinned (*prefix, options.json);
  }
  return error == NULL ? MUSTER_EXIT_DONE : muster_cli_fail (error);
}

/* --- metrics --- */

typedef struct {
  char *name; /* (owned) */
  double value;
} Metric;

static void
metric_clear (gpointer data)
{
  g_free (((Metric *)data)->name);
}

/* "eval/accuracy=0.97" */
static gboolean
parse_metric (const char *text, Metric *metric, GError **error)
{
  const char *equals = strrchr (text, '=');
  char *end = NULL;
  errno = 0;
  const double value = equals != NULL ? g_ascii_strtod (equals + 1, &end) : 0;
  const gboolean is_too_large = errno == ERANGE && fabs (value) > 1;
  if (equals == NULL || end == equals + 1 || *end != '\0' || is_too_large)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid --metric '%s' (use NAME=VALUE, such as eval/accuracy=0.97)", text);
  g_autofree char *name = g_strndup (text, (gsize)(equals - text));
  metric->value = value;
  metric->name = muster_keep_metric_name (name, error);
  return metric->name != NULL;
}

static GArray *
parse_metrics (char **texts, GError **error)
{
  g_autoptr (GArray) metrics = g_array_new (FALSE, FALSE, sizeof (Metric));
  g_array_set_clear_func (metrics, metric_clear);
  for (char **text = texts; text != NULL && *text != NULL; text++) {
    Metric metric = {0};
    if (!parse_metric (*text, &metric, error))
      return NULL;
    g_array_append_val (metrics, metric);
  }
  if (metrics->len > 0)
    return g_steal_pointer (&metrics);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "checkpoint mark needs --metric=NAME=VALUE, such as eval/accuracy=0.97");
  return NULL;
}

static void
print_marked (const char *prefix, const Metric *metric, gboolean json)
{
  if (!json) {
    muster_cli_say (stdout, "%s: %s %g\n", prefix, metric->name, metric->value);
    return;
  }
  g_autoptr (JsonBuilder) builder = begin_line (prefix);
  muster_json_add_string (builder, "metric", metric->name);
  json_builder_set_member_name (builder, "value");
  if (isfinite (metric->value))
    json_builder_add_double_value (builder, metric->value);
  else
    json_builder_add_null_value (builder);
  muster_json_print_line (builder);
}

static gboolean
mark_all (const char *prefix, const GArray *metrics, gboolean json, GError **error)
{
  for (guint i = 0; i < metrics->len; i++) {
    const Metric *metric = &g_array_index (metrics, Metric, i);
    if (!muster_checkpoint_set_metric (muster_cli_storage (), prefix, metric->name, metric->value,
                                       muster_cli_lock_deadline (), NULL, error))
      return FALSE;
    print_marked (prefix, metric, json);
  }
  return TRUE;
}

int
muster_cli_checkpoint_mark (int argc, char **argv)
{
  g_auto (GStrv) texts = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {{"metric", 0, 0, G_OPTION_ARG_STRING_ARRAY, &texts,
                                   "value of a metric; may be repeated (required)", "NAME=VALUE"},
                                  {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "PREFIX|DIR --metric=NAME=VALUE", mark_summary,
                                    entries, 1, 1, &options, &words, &code))
    return code;
  g_autoptr (GArray) metrics = parse_metrics (texts, &error);
  g_autofree char *prefix = metrics != NULL ? muster_cli_checkpoint_find (words[0], &error) : NULL;
  return prefix != NULL && mark_all (prefix, metrics, options.json, &error)
             ? MUSTER_EXIT_DONE
             : muster_cli_fail (error);
}
