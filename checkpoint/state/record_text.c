// SPDX-License-Identifier: Apache-2.0
/* The text of the side file. Its first line holds the checksum of the rest, so that a flipped
 * bit can't pass for another epoch. Names are escaped as in a URI, because a file's name is any
 * bytes and a GKeyFile's value is UTF-8. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/record_groups_private.h"
#include "checkpoint/state/record_keys_private.h"

#include <math.h>
#include <string.h>

/* The version of the format. */

#define VERSION 1
/* A thousand years, so that sums don't overflow. */
#define MOST_SPENT_US (G_GINT64_CONSTANT (31557600000) * MUSTER_SECOND)
#define DIRECTORY     "directory"
#define CHECKPOINT    "checkpoint "
#define RETENTION     "retention "

static char *
first_line (const char *body, gsize size)
{
  return g_strdup_printf ("# muster %08x\n", muster_crc32c_extend (0, body, size));
}

static void
set_files (GKeyFile *file, const char *group, const GArray *files)
{
  g_autoptr (GString) value = g_string_new (NULL);
  for (guint i = 0; i < files->len; i++) {
    const MusterSideFile *one = &g_array_index (files, MusterSideFile, i);
    g_autofree char *name = muster_record_escape (one->name);
    g_string_append_printf (value, "%s%s %" G_GUINT64_FORMAT, i > 0 ? ";" : "", name, one->size);
    if (one->has_crc)
      g_string_append_printf (value, " %08x", one->crc32c);
  }
  if (value->len > 0)
    g_key_file_set_value (file, group, "files", value->str);
}

/* "goodput-training" */
static char *
goodput_key (guint use)
{
  return g_strdup_printf ("goodput-%s", muster_time_use_name ((MusterTimeUse)use));
}

static void
set_metrics (GKeyFile *file, const char *group, const GArray *metrics)
{
  g_autoptr (GString) value = g_string_new (NULL);
  for (guint i = 0; i < metrics->len; i++) {
    const MusterSideMetric *one = &g_array_index (metrics, MusterSideMetric, i);
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *name = muster_record_escape (one->name);
    g_string_append_printf (value, "%s%s %s", i > 0 ? ";" : "", name,
                            g_ascii_dtostr (number, sizeof number, one->value));
  }
  if (value->len > 0)
    g_key_file_set_value (file, group, "metrics", value->str);
}

static void
set_holds (GKeyFile *file, const char *group, const GArray *holds)
{
  g_autoptr (GString) value = g_string_new (NULL);
  for (guint i = 0; i < holds->len; i++) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf (
        value, "%s%s", i > 0 ? ";" : "",
        g_ascii_dtostr (number, sizeof number, g_array_index (holds, double, i)));
  }
  if (value->len > 0)
    g_key_file_set_value (file, group, "held-until", value->str);
}

/* An older muster, which doesn't know pins, then keeps what is preserved. */
static void
set_standing (GKeyFile *file, const char *group, const MusterSideCheckpoint *one)
{
  muster_record_set_flag (file, group, "preserved", one->preserved || one->pinned);
  muster_record_set_words (file, group, "preserved-for", one->preserved_for);
  if (one->pinned)
    g_key_file_set_string (file, group, "pinned", one->preserved ? "also" : "only");
  muster_record_set_words (file, group, "pinned-for", one->pinned_for);
  set_holds (file, group, one->holds);
}

static void
print_rules (GKeyFile *file, const char *group, const MusterSideRules *one)
{
  const MusterKeepRules *rules = &one->rules;
  muster_record_set_name (file, group, "state-file", one->state_file);
  g_key_file_set_int64 (file, group, "newest", rules->newest);
  g_key_file_set_double (file, group, "every-seconds", rules->every_s);
  g_key_file_set_int64 (file, group, "every-steps", rules->every_steps);
  g_key_file_set_int64 (file, group, "best", rules->best);
  muster_record_set_words (file, group, "metric", rules->metric);
  if (rules->metric != NULL)
    g_key_file_set_string (file, group, "metric-best", rules->least_is_best ? "min" : "max");
}

static void
print_checkpoint (GKeyFile *file, const char *group, const MusterSideCheckpoint *one)
{
  muster_record_set_name (file, group, "name", one->name);
  g_key_file_set_int64 (file, group, "step", one->step);
  g_key_file_set_int64 (file, group, "epoch", one->epoch);
  muster_record_set_name (file, group, "run", one->run);
  g_key_file_set_double (file, group, "time", one->time);
  muster_record_set_uint64 (file, group, "bytes", one->bytes);
  muster_record_set_flag (file, group, "verified", one->verified);
  set_standing (file, group, one);
  muster_record_set_flag (file, group, "copied", one->copied);
  muster_record_set_flag (file, group, "doomed", one->pending_delete);
  if (one->deaths > 0)
    muster_record_set_uint64 (file, group, "deaths", one->deaths);
  muster_record_set_words (file, group, "bad", one->bad);
  muster_record_set_name (file, group, "state-file", one->state_file);
  set_metrics (file, group, one->metrics);
  set_files (file, group, one->files);
}

static void
print_goodput (GKeyFile *file, const MusterCheckpointRecord *self)
{
  const MusterGoodput *goodput = &self->goodput;
  if (goodput->began_us == 0)
    return;
  g_key_file_set_int64 (file, DIRECTORY, "goodput-began", goodput->began_us);
  g_key_file_set_double (file, DIRECTORY, "goodput-time", self->goodput_time);
  for (guint i = 0; i < MUSTER_N_TIMES; i++) {
    g_autofree char *key = goodput_key (i);
    g_key_file_set_int64 (file, DIRECTORY, key, goodput->spent_us[i]);
  }
  muster_record_set_uint64 (file, DIRECTORY, "goodput-restarts", goodput->n_restarts);
  muster_record_set_uint64 (file, DIRECTORY, "goodput-failures", goodput->n_failures);
  muster_record_set_uint64 (file, DIRECTORY, "goodput-steps-again", goodput->steps_again);
  g_key_file_set_int64 (file, DIRECTORY, "goodput-step", goodput->step);
  muster_record_set_flag (file, DIRECTORY, "goodput-least", goodput->is_least);
  g_key_file_set_int64 (file, DIRECTORY, "goodput-end", goodput->end);
}

char *
muster_checkpoint_record_print (const MusterCheckpointRecord *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_key_file_set_int64 (file, DIRECTORY, "version", VERSION);
  g_key_file_set_int64 (file, DIRECTORY, "epoch", self->epoch);
  muster_record_set_words (file, DIRECTORY, "chief", self->chief);
  muster_record_set_flag (file, DIRECTORY, "over", self->over);
  g_key_file_set_int64 (file, DIRECTORY, "final-step", self->final_step);
  g_key_file_set_double (file, DIRECTORY, "last-preserved", self->last_preserved);
  muster_record_set_name (file, DIRECTORY, "life", self->life);
  muster_record_set_name (file, DIRECTORY, "run", self->run);
  muster_record_set_name (file, DIRECTORY, "resumed-run", self->resumed_run);
  if (self->resumed_step >= 0)
    g_key_file_set_int64 (file, DIRECTORY, "resumed-step", self->resumed_step);
  muster_record_set_name (file, DIRECTORY, "durable-dir", self->durable_dir);
  print_goodput (file, self);
  for (guint i = 0; i < self->checkpoints->len; i++) {
    g_autofree char *group = g_strdup_printf (CHECKPOINT "%u", i);
    print_checkpoint (file, group, self->checkpoints->pdata[i]);
  }
  for (guint i = 0; i < self->rules->len; i++) {
    g_autofree char *group = g_strdup_printf (RETENTION "%u", i);
    print_rules (file, group, self->rules->pdata[i]);
  }
  g_autofree char *groups = g_key_file_to_data (file, NULL, NULL);
  g_autofree char *body = muster_record_sum_groups (groups);
  g_autofree char *line = first_line (body, strlen (body));
  return g_strconcat (line, body, NULL);
}

static gboolean
parse_file (const char *text, MusterSideCheckpoint *one)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 4);
  const guint n = g_strv_length (words);
  guint64 size, crc = 0;
  if (n < 2 || n > 3 || !g_ascii_string_to_unsigned (words[1], 10, 0, G_MAXUINT64, &size, NULL) ||
      (n == 3 && !g_ascii_string_to_unsigned (words[2], 16, 0, G_MAXUINT32, &crc, NULL)))
    return FALSE;
  g_autofree char *name = g_uri_unescape_string (words[0], "/");
  if (name == NULL || *name != '.' || strchr (name, '/') != NULL)
    return FALSE;
  const guint32 crc32c = (guint32)crc;
  muster_side_checkpoint_add_file (one, name, size, n == 3 ? &crc32c : NULL);
  return TRUE;
}

static gboolean
parse_metric (const char *text, MusterSideCheckpoint *one)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 3);
  char *end = NULL;
  if (g_strv_length (words) != 2)
    return FALSE;
  const double value = g_ascii_strtod (words[1], &end);
  g_autofree char *unescaped = g_uri_unescape_string (words[0], NULL);
  if (end == words[1] || *end != '\0' || unescaped == NULL ||
      one->metrics->len >= MUSTER_MOST_METRICS)
    return FALSE;
  g_autofree char *name = muster_keep_metric_name (unescaped, NULL);
  if (name == NULL)
    return FALSE;
  muster_side_checkpoint_set_metric (one, name, value);
  return TRUE;
}

static gboolean
parse_hold (const char *text, MusterSideCheckpoint *one)
{
  char *end = NULL;
  const double until = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || !isfinite (until) || one->holds->len >= MUSTER_MOST_METRICS)
    return FALSE;
  g_array_append_val (one->holds, until);
  return TRUE;
}

/* Reads a list; parse () adds each item to the checkpoint. */
static gboolean
get_list (GKeyFile *file, const char *group, const char *key,
          gboolean (*parse) (const char *text, MusterSideCheckpoint *one),
          MusterSideCheckpoint *one, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  g_autofree char *why = g_strconcat ("not a list of ", key, NULL);
  g_auto (GStrv) items = text != NULL ? g_strsplit (text, ";", -1) : NULL;
  for (gsize i = 0; items != NULL && items[i] != NULL; i++)
    if (!parse (items[i], one))
      return muster_record_refuse (error, group, key, why);
  return TRUE;
}

static gboolean
get_standing (GKeyFile *file, const char *group, MusterSideCheckpoint *one, GError **error)
{
  g_autofree char *pinned = NULL;
  if (!muster_record_get_flag (file, group, "preserved", &one->preserved, error) ||
      !muster_record_get_words (file, group, "preserved-for", &one->preserved_for, error) ||
      !muster_record_get_words (file, group, "pinned", &pinned, error) ||
      !muster_record_get_words (file, group, "pinned-for", &one->pinned_for, error) ||
      !get_list (file, group, "held-until", parse_hold, one, error))
    return FALSE;
  one->pinned = pinned != NULL;
  if (g_strcmp0 (pinned, "only") == 0)
    one->preserved = FALSE;
  else if (pinned != NULL && strcmp (pinned, "also") != 0)
    return muster_record_refuse (error, group, "pinned", "neither only nor also");
  return TRUE;
}

static gboolean
get_metric_rule (GKeyFile *file, const char *group, MusterKeepRules *rules, GError **error)
{
  g_autofree char *name = NULL, *best = NULL;
  if (!muster_record_get_words (file, group, "metric", &name, error) ||
      !muster_record_get_words (file, group, "metric-best", &best, error))
    return FALSE;
  if (name == NULL)
    return TRUE;
  rules->metric = muster_keep_metric_name (name, NULL);
  rules->least_is_best = g_strcmp0 (best, "min") == 0;
  return (rules->metric != NULL && (rules->least_is_best || g_strcmp0 (best, "max") == 0)) ||
         muster_record_refuse (error, group, "metric", "not a metric");
}

static gboolean
parse_rules (MusterCheckpointRecord *self, GKeyFile *file, const char *group, GError **error)
{
  g_autofree char *state_file = NULL;
  g_auto (MusterKeepRules) rules = {0};
  guint64 newest = 0, best = 0;
  if (!muster_record_get_name (file, group, "state-file", &state_file, error) ||
      !muster_record_get_uint64 (file, group, "newest", G_MAXINT, &newest, error) ||
      !muster_record_get_time (file, group, "every-seconds", &rules.every_s, error) ||
      !muster_record_get_int64 (file, group, "every-steps", 0, &rules.every_steps, error) ||
      !muster_record_get_uint64 (file, group, "best", G_MAXINT, &best, error) ||
      !get_metric_rule (file, group, &rules, error))
    return FALSE;
  if (self->rules->len >= MUSTER_MOST_METRICS)
    return muster_record_refuse (error, group, "state-file", "one too many");
  rules.newest = (int)newest;
  rules.best = (int)best;
  muster_checkpoint_record_set_rules (self, state_file, &rules);
  return TRUE;
}

static gboolean
parse_checkpoint (MusterCheckpointRecord *self, GKeyFile *file, const char *group, GError **error)
{
  g_autofree char *name = NULL;
  if (!muster_record_get_name (file, group, "name", &name, error))
    return FALSE;
  if (name == NULL)
    return muster_record_refuse (error, group, "name", "missing");
  if (muster_checkpoint_record_find (self, name) != NULL)
    return muster_record_refuse (error, group, "name", "that of another checkpoint");
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (self, name);
  guint64 deaths = 0;
  if (!muster_record_get_int64 (file, group, "step", -1, &one->step, error) ||
      !muster_record_get_int64 (file, group, "epoch", 0, &one->epoch, error) ||
      !muster_record_get_name (file, group, "run", &one->run, error) ||
      !muster_record_get_time (file, group, "time", &one->time, error) ||
      !muster_record_get_uint64 (file, group, "bytes", G_MAXUINT64, &one->bytes, error) ||
      !muster_record_get_flag (file, group, "verified", &one->verified, error) ||
      !get_standing (file, group, one, error) ||
      !muster_record_get_flag (file, group, "copied", &one->copied, error) ||
      !muster_record_get_flag (file, group, "doomed", &one->pending_delete, error) ||
      !muster_record_get_uint64 (file, group, "deaths", G_MAXUINT, &deaths, error) ||
      !muster_record_get_words (file, group, "bad", &one->bad, error) ||
      !muster_record_get_name (file, group, "state-file", &one->state_file, error))
    return FALSE;
  one->deaths = (guint)deaths;
  return get_list (file, group, "metrics", parse_metric, one, error) &&
         get_list (file, group, "files", parse_file, one, error);
}

static gboolean
parse_goodput (MusterCheckpointRecord *self, GKeyFile *file, GError **error)
{
  MusterGoodput *goodput = &self->goodput;
  gint64 end = MUSTER_RUN_UNENDED;
  if (!muster_record_get_int64 (file, DIRECTORY, "goodput-began", 0, &goodput->began_us, error) ||
      !muster_record_get_time (file, DIRECTORY, "goodput-time", &self->goodput_time, error) ||
      !muster_record_get_uint64 (file, DIRECTORY, "goodput-restarts", MUSTER_RECORD_MAX_NUMBER,
                                 &goodput->n_restarts, error) ||
      !muster_record_get_uint64 (file, DIRECTORY, "goodput-failures", MUSTER_RECORD_MAX_NUMBER,
                                 &goodput->n_failures, error) ||
      !muster_record_get_uint64 (file, DIRECTORY, "goodput-steps-again", MUSTER_RECORD_MAX_NUMBER,
                                 &goodput->steps_again, error) ||
      !muster_record_get_int64 (file, DIRECTORY, "goodput-step", -1, &goodput->step, error) ||
      !muster_record_get_flag (file, DIRECTORY, "goodput-least", &goodput->is_least, error) ||
      !muster_record_get_int64 (file, DIRECTORY, "goodput-end", MUSTER_RUN_UNENDED, &end, error))
    return FALSE;
  goodput->end = (MusterRunEnd)MIN (end, MUSTER_RUN_FINISHED);
  for (guint i = 0; i < MUSTER_N_TIMES; i++) {
    g_autofree char *key = goodput_key (i);
    if (!muster_record_get_int64 (file, DIRECTORY, key, 0, &goodput->spent_us[i], error))
      return FALSE;
    goodput->spent_us[i] = MIN (goodput->spent_us[i], MOST_SPENT_US);
  }
  return TRUE;
}

static gboolean
parse_directory (MusterCheckpointRecord *self, GKeyFile *file, GError **error)
{
  gint64 version = 0;
  if (!muster_record_get_int64 (file, DIRECTORY, "version", 1, &version, error))
    return FALSE;
  if (version > VERSION) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "it was written by a newer muster (version %" G_GINT64_FORMAT
                        " of the file; this one knows %d)",
                        version, VERSION);
  }
  return muster_record_get_int64 (file, DIRECTORY, "epoch", 0, &self->epoch, error) &&
         muster_record_get_words (file, DIRECTORY, "chief", &self->chief, error) &&
         muster_record_get_flag (file, DIRECTORY, "over", &self->over, error) &&
         muster_record_get_int64 (file, DIRECTORY, "final-step", -1, &self->final_step, error) &&
         muster_record_get_time (file, DIRECTORY, "last-preserved", &self->last_preserved, error) &&
         muster_record_get_name (file, DIRECTORY, "life", &self->life, error) &&
         muster_record_get_name (file, DIRECTORY, "run", &self->run, error) &&
         muster_record_get_name (file, DIRECTORY, "resumed-run", &self->resumed_run, error) &&
         muster_record_get_int64 (file, DIRECTORY, "resumed-step", -1, &self->resumed_step,
                                  error) &&
         muster_record_get_path (file, DIRECTORY, "durable-dir", &self->durable_dir, error) &&
         parse_goodput (self, file, error);
}

/* Returns the text after the first line, if that is valid. */
static const char *
check_first_line (const char *text, gsize size)
{
  const char *end = size > 0 ? memchr (text, '\n', size) : NULL;
  if (end == NULL || memchr (text, '\0', size) != NULL)
    return NULL;
  const char *body = end + 1;
  g_autofree char *line = first_line (body, size - (gsize)(body - text));
  return strlen (line) == (gsize)(body - text) && memcmp (line, text, strlen (line)) == 0 ? body
                                                                                          : NULL;
}

/* Parses the text after the first line. */
static MusterCheckpointRecord *
parse_body (const char *body, gsize size, GError **error)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autoptr (GError) why = NULL;
  if (!g_key_file_load_from_data (file, body, size, G_KEY_FILE_NONE, &why)) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "%s", why->message);
    return NULL;
  }
  g_autoptr (MusterCheckpointRecord) self = muster_checkpoint_record_new ();
  if (!parse_directory (self, file, error))
    return NULL;
  g_auto (GStrv) groups = g_key_file_get_groups (file, NULL);
  for (gsize i = 0; groups[i] != NULL; i++)
    if ((g_str_has_prefix (groups[i], CHECKPOINT) &&
         !parse_checkpoint (self, file, groups[i], error)) ||
        (g_str_has_prefix (groups[i], RETENTION) && !parse_rules (self, file, groups[i], error)))
      return NULL;
  return g_steal_pointer (&self);
}

MusterCheckpointRecord *
muster_checkpoint_record_parse (const char *text, gsize size, GError **error)
{
  muster_require_array (error, NULL, text, size);
  const char *body = check_first_line (text, size);
  if (body != NULL)
    return parse_body (body, size - (gsize)(body - text), error);
  muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the checksum in its first line doesn't match");
  return NULL;
}

/* Without the directory's group: the newest saver's epoch isn't known to be over, lower ones are.
 * A copy has the epoch of another job. */
static void
guess_epoch (MusterCheckpointRecord *self)
{
  for (guint i = 0; i < self->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = self->checkpoints->pdata[i];
    if (!one->copied)
      self->epoch = MAX (self->epoch, one->epoch - 1);
  }
}

MusterCheckpointRecord *
muster_checkpoint_record_salvage (const char *text, gsize size)
{
  g_autofree char *whole = muster_record_whole_groups (text, size);
  MusterCheckpointRecord *self = parse_body (whole, strlen (whole), NULL);
  if (self == NULL)
    return muster_checkpoint_record_new ();
  if (!g_str_has_prefix (whole, "[" DIRECTORY "]\n") &&
      strstr (whole, "\n[" DIRECTORY "]\n") == NULL)
    guess_epoch (self);
  return self;
}
