// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint list`: the checkpoints of directories or of a job's tiers, with their state
 * and why they stay. */
#include "cli/checkpoint/checkpoint_list.h"

#include "base/files/local_path_private.h"
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_keep.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/output/json.h"
#include "cli/output/rows.h"
#include "cli/output/table.h"
#include "saver/tiers/tier.h"
#include "saver/tiers/tier_choose_private.h"

#include <math.h>
#include <string.h>

#define MOST_DIRECTORIES (MUSTER_MAX_FAST_TIERS + 1)

static const char summary[] =
    "Lists the checkpoints of a directory, newest first: prefix, age, size, why it is kept, and\n"
    "state. Only file lengths and indexes are read. With the directories of a job, the fastest "
    "first\n"
    "and the durable one last, it shows which holds what, and which checkpoint the job resumes "
    "from.\n"
    "Kept as newest, best (with its value), every N steps or hours, or pinned; - if a later save "
    "may\n"
    "remove it, or no saver of this directory would. States:\n"
    "  latest      the one that a job resumes from\n"
    "  verified    read back and found undamaged when it was saved\n"
    "  good        all files are present and have the right length; --verify reads them\n"
    "  V1          the same of a checkpoint from before TensorFlow 0.12, read but never removed;\n"
    "              `muster checkpoint copy` converts it\n"
    "  intact      --verify has read it, and every checksum matches\n"
    "  damaged     and why\n"
    "  unread      its files can't be read, and why\n"
    "  set aside   muster took it out of use, and why\n"
    "  not used    it isn't of the job's past, and why";

static int
newest_first (gconstpointer a, gconstpointer b)
{
  const MusterListed *x = *(MusterListed *const *)a, *y = *(MusterListed *const *)b;
  if (x->step != y->step)
    return x->step < y->step ? 1 : -1;
  if (x->when_us != y->when_us)
    return x->when_us < y->when_us ? 1 : -1;
  return x->tier != y->tier ? (x->tier > y->tier ? 1 : -1) : strcmp (x->prefix, y->prefix);
}

static void
warn_and_clear (GError **error)
{
  if (*error != NULL)
    muster_cli_say (stderr, "muster: warning: %s\n", (*error)->message);
  g_clear_error (error);
}

void
muster_listed_drop_removed (GPtrArray *listed)
{
  for (guint i = listed->len; i-- > 0;) {
    const MusterListed *it = listed->pdata[i];
    if (it->damage != NULL && muster_checkpoint_is_gone (muster_cli_storage (), it->prefix))
      g_ptr_array_remove_index (listed, i);
  }
}

/* A state file that can't be read has given a warning already. */
static void
explain (GPtrArray *listed, const char *directory, const MusterCheckpointRecord *record)
{
  g_autoptr (MusterCheckpointRecord) none = record == NULL ? muster_checkpoint_record_new () : NULL;
  if (record == NULL)
    record = none;
  g_autoptr (GPtrArray) state_files = muster_cli_state_files (record);
  (void)muster_listed_read_states (listed, directory, state_files, NULL);
  muster_listed_explain (listed, record);
}

GPtrArray *
muster_listed_directory (const char *directory, gboolean with_quarantined, GError **error)
{
  g_autoptr (GError) warning = NULL;
  g_auto (GStrv) prefixes = muster_checkpoint_list (muster_cli_storage (), directory, error);
  if (prefixes == NULL)
    return NULL;
  g_auto (GStrv) aside =
      with_quarantined
          ? muster_checkpoint_list_quarantined (muster_cli_storage (), directory, error)
          : NULL;
  if (with_quarantined && aside == NULL)
    return NULL;
  g_auto (GStrv) old = muster_v1_list (muster_cli_storage (), directory, error);
  if (old == NULL)
    return NULL;
  g_autofree char *latest = muster_latest_checkpoint (muster_cli_storage (), directory, &warning);
  warn_and_clear (&warning);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_cli_storage (), directory, &warning);
  warn_and_clear (&warning);
  GPtrArray *listed = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_listed_free);
  for (char **it = prefixes; *it != NULL; it++)
    g_ptr_array_add (listed, muster_listed_new (*it, record, latest));
  for (char **it = old; *it != NULL; it++) {
    MusterListed *one = muster_listed_new (*it, record, latest);
    one->state = one->damage == NULL ? "V1" : one->state;
    g_ptr_array_add (listed, one);
  }
  for (char **it = aside; it != NULL && *it != NULL; it++)
    g_ptr_array_add (listed, muster_listed_new (*it, record, latest));
  muster_listed_drop_removed (listed);
  explain (listed, directory, record);
  g_ptr_array_sort (listed, newest_first);
  return listed;
}

/* Those of one of several directories; none if it can't be read. */
static void
add_tier (GPtrArray *all, const char *directory, guint tier, guint *n_read, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GPtrArray) own = muster_listed_directory (directory, TRUE, &failure);
  if (own == NULL) {
    muster_cli_say (stderr, "muster: warning: %s\n", failure->message);
    if (error != NULL && *error == NULL)
      g_propagate_error (error, g_steal_pointer (&failure));
    return;
  }
  (*n_read)++;
  for (guint i = 0; i < own->len; i++) {
    MusterListed *it = own->pdata[i];
    it->directory = g_strdup (directory);
    it->tier = tier;
    it->latest = FALSE;
  }
  g_ptr_array_extend_and_steal (all, g_steal_pointer (&own));
}

static MusterListed *
find_listed (GPtrArray *listed, const char *prefix)
{
  for (guint i = 0; i < listed->len; i++)
    if (muster_cli_checkpoint_is_same (((MusterListed *)listed->pdata[i])->prefix, prefix))
      return listed->pdata[i];
  return NULL;
}

/* As a restore chooses. */
static void
mark_chosen (GPtrArray *listed, char **directories)
{
  const MusterTierLook look = {.storage = muster_cli_storage ()};
  const guint n = g_strv_length (directories);
  g_autofree char *durable =
      muster_storage_is_local (NULL, directories[n - 1])
          ? g_canonicalize_filename (muster_local_path (directories[n - 1]), NULL)
          : g_strdup (directories[n - 1]);
  g_autoptr (GPtrArray) listings =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tier_listing_free);
  g_auto (MusterTierChoice) choice = {0};
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (listings, muster_tier_list (&look, directories[i]));
  muster_tier_choose (listings, durable, &choice);
  MusterListed *latest =
      choice.prefixes->len > 0 ? find_listed (listed, choice.prefixes->pdata[0]) : NULL;
  if (latest != NULL)
    latest->latest = TRUE;
  for (guint i = 0; i < choice.refused->len; i++) {
    const MusterTierRefused *refused = choice.refused->pdata[i];
    MusterListed *it = find_listed (listed, refused->prefix);
    if (it != NULL)
      it->refused = g_strdup (refused->why);
  }
}

/* Lists a job's directories, as muster_listed_directory () one, the fastest first and the durable
 * one last: latest is the one that the job resumes from. A directory that can't be read gives a
 * warning, unless none can. */
static GPtrArray *
list_tiers (char **directories, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_listed_free);
  guint n_read = 0;
  for (guint i = 0; directories[i] != NULL; i++)
    add_tier (all, directories[i], i, &n_read, &failure);
  if (n_read == 0) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  mark_chosen (all, directories);
  g_ptr_array_sort (all, newest_first);
  return g_steal_pointer (&all);
}

void
muster_listed_verify (MusterListed *self, MusterBundleProgress progress, gpointer data,
                      GCancellable *cancellable)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterCliOpened) opened = {0};
  const gint64 started_us = muster_clock_now_us (muster_system_clock ());
  const gboolean is_read =
      muster_cli_checkpoint_open (&opened, self->prefix, &error) &&
      muster_bundle_reader_verify (opened.reader, progress, data, cancellable, &error);
  if (!is_read && !g_cancellable_is_cancelled (cancellable))
    muster_listed_set_failure (self, error);
  else if (is_read && self->reason == NULL)
    self->state = "intact";
  self->took_us = muster_clock_now_us (muster_system_clock ()) - started_us;
}

typedef struct {
  MusterProgress *progress; /* (not owned) (nullable) */
  GCancellable *late;       /* (owned) cancelled at the end of --timeout */
  GError *error;            /* (owned) (nullable) and why */
} Reading;

static void
reading_clear (Reading *self)
{
  g_clear_object (&self->late);
  g_clear_error (&self->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reading, reading_clear)

static void
note_read (guint64 done, guint64 total, gpointer user_data)
{
  Reading *self = user_data;
  muster_progress_at (done, total, self->progress);
  if (self->error == NULL && !muster_cli_checkpoint_check_time (&self->error))
    g_cancellable_cancel (self->late);
}

static void
verify_one (MusterListed *self, MusterProgress *progress)
{
  g_autoptr (GError) error = NULL;
  g_auto (Reading) reading = {.progress = progress, .late = g_cancellable_new ()};
  muster_listed_verify (self, note_read, &reading, reading.late);
  if (muster_listed_failure (self) == NULL && reading.error != NULL &&
      strcmp (self->state, "intact") != 0)
    muster_listed_set_failure (self, reading.error);
  if (muster_listed_failure (self) == NULL &&
      !muster_checkpoint_check_meta_graph (muster_cli_storage (), self->prefix, &error))
    muster_listed_set_failure (self, error);
}

void
muster_listed_verify_all (GPtrArray *listed, gboolean json)
{
  g_autoptr (MusterProgress) progress = muster_cli_progress (json);
  guint64 all = 0, before = 0;
  for (guint i = 0; i < listed->len; i++)
    all += (guint64)((MusterListed *)listed->pdata[i])->bytes;
  for (guint i = 0; i < listed->len; i++) {
    MusterListed *it = listed->pdata[i];
    g_autofree char *what = g_strdup_printf ("reading %s", it->name);
    muster_progress_part (progress, what, before, all);
    if (it->damage == NULL)
      verify_one (it, progress);
    before += (guint64)it->bytes;
  }
}

char *
muster_cli_ago (gint64 when_us)
{
  if (when_us <= 0)
    return g_strdup ("-");
  const gint64 age_us = MAX (0, muster_clock_wall_us (muster_system_clock ()) - when_us);
  const gint64 days = age_us / (24 * 3600 * MUSTER_SECOND);
  if (days >= 2)
    return g_strdup_printf ("%" G_GINT64_FORMAT " days ago", days);
  if (age_us < MUSTER_SECOND)
    return g_strdup ("just now");
  g_autofree char *age = muster_rows_seconds (age_us);
  return g_strdup_printf ("%s ago", age);
}

char *
muster_cli_without_directory (const char *text, const char *directory)
{
  if (text == NULL)
    return NULL;
  g_autofree char *path = g_strdup_printf (
      "'%s%s", directory, g_str_has_suffix (directory, G_DIR_SEPARATOR_S) ? "" : G_DIR_SEPARATOR_S);
  g_autoptr (GString) rest = g_string_new (text);
  g_string_replace (rest, path, "'", 0);
  return g_strdup (rest->str);
}

static void
add_kept (JsonBuilder *builder, const MusterListed *self)
{
  json_builder_set_member_name (builder, "kept");
  json_builder_begin_array (builder);
  for (char **word = self->kept_for; word != NULL && *word != NULL; word++)
    json_builder_add_string_value (builder, *word);
  json_builder_end_array (builder);
}

/* JSON has no other numbers. */
static void
add_metrics (JsonBuilder *builder, const MusterListed *self)
{
  json_builder_set_member_name (builder, "metrics");
  json_builder_begin_object (builder);
  for (guint i = 0; self->metrics != NULL && i < self->metrics->len; i++) {
    const MusterSideMetric *metric = &g_array_index (self->metrics, MusterSideMetric, i);
    json_builder_set_member_name (builder, metric->name);
    if (isfinite (metric->value))
      json_builder_add_double_value (builder, metric->value);
    else
      json_builder_add_null_value (builder);
  }
  json_builder_end_object (builder);
}

void
muster_listed_json (const MusterListed *self, const char *name, const char *value)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (MusterListed, prefix, STRING, "prefix"),
      MUSTER_JSON_FIELD (MusterListed, step, STEP, "step"),
      MUSTER_JSON_FIELD (MusterListed, when_us, SECONDS, "time"),
      MUSTER_JSON_FIELD (MusterListed, bytes, INT64, "bytes"),
      MUSTER_JSON_FIELD (MusterListed, shards, INT, "shards"),
      MUSTER_JSON_FIELD (MusterListed, tensors, INT, "tensors"),
      MUSTER_JSON_FIELD (MusterListed, state, STRING, "state"),
      MUSTER_JSON_FIELD (MusterListed, latest, BOOLEAN, "latest"),
      MUSTER_JSON_FIELD (MusterListed, kept, BOOLEAN, "kept_for_good"),
      MUSTER_JSON_FIELD (MusterListed, damage, STRING, "damage"),
      MUSTER_JSON_FIELD (MusterListed, reason, STRING, "quarantined"),
  };
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), self);
  add_kept (builder, self);
  add_metrics (builder, self);
  if (self->unread != NULL)
    muster_json_add_string (builder, "unread", self->unread->message);
  if (self->directory != NULL) {
    muster_json_add_string (builder, "directory", self->directory);
    muster_json_add_string (builder, "not_used", self->refused);
  }
  if (name != NULL)
    muster_json_add_string (builder, name, value);
  muster_json_print_line (builder);
}

/* The latest is always one of the newest. */
static char *
kept_in_words (const MusterListed *self)
{
  const gboolean has_more = self->kept_for != NULL && g_strv_length (self->kept_for) > 1;
  char **from = self->kept_for;
  if (has_more && (self->reasons & MUSTER_KEEP_FOR_LATEST) != 0)
    from++;
  return from != NULL && *from != NULL ? g_strjoinv (", ", from) : g_strdup ("-");
}

static void
add_listed (MusterTable *table, const MusterListed *self, const char *directory)
{
  if (self->directory != NULL)
    directory = self->directory;
  g_autofree char *ago = muster_cli_ago (self->when_us);
  g_autofree char *size = muster_format_size ((guint64)self->bytes);
  g_autofree char *shards =
      self->shards > 0 ? g_strdup_printf ("%d", self->shards) : g_strdup ("-");
  g_autofree char *why = muster_cli_without_directory (
      self->reason != NULL ? self->reason : muster_listed_failure (self), directory);
  g_autofree char *state = g_strdup_printf (
      "%s%s%s%s%s%s", self->latest ? "latest, " : "", self->state, why != NULL ? ": " : "",
      why != NULL ? why : "", self->refused != NULL ? ", not used: " : "",
      self->refused != NULL ? self->refused : "");
  g_autofree char *kept = kept_in_words (self);
  if (self->directory != NULL)
    muster_table_add (table, self->name, self->directory, ago, size, shards, kept, state, NULL);
  else
    muster_table_add (table, self->prefix, ago, size, shards, kept, state, NULL);
}

static void
print_all (GPtrArray *listed, char **directories)
{
  const gboolean is_one = directories[1] == NULL;
  if (listed->len == 0) {
    g_autofree char *names = g_strjoinv (", ", directories);
    muster_cli_say (stdout, "no checkpoints in %s\n", names);
    return;
  }
  g_autoptr (MusterTable) table = muster_table_new (is_one ? 6 : 7);
  if (is_one)
    muster_table_add (table, "prefix", "when", "size", "shards", "kept", "state", NULL);
  else
    muster_table_add (table, "checkpoint", "in", "when", "size", "shards", "kept", "state", NULL);
  for (guint i = 0; i < listed->len; i++)
    add_listed (table, listed->pdata[i], directories[0]);
  muster_table_print (table, stdout);
}

int
muster_cli_checkpoint_list (int argc, char **argv)
{
  gboolean verify = FALSE;
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"verify", 0, 0, G_OPTION_ARG_NONE, &verify, "read every byte of each checkpoint", NULL},
      {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "DIR…", summary, entries, 1, MOST_DIRECTORIES,
                                    &options, &words, &code))
    return code;
  g_autoptr (GPtrArray) listed = words[1] == NULL ? muster_listed_directory (words[0], TRUE, &error)
                                                  : list_tiers (words, &error);
  if (listed == NULL)
    return muster_cli_fail (error);
  if (verify)
    muster_listed_verify_all (listed, options.json);
  if (!options.json)
    print_all (listed, words);
  for (guint i = 0; options.json && i < listed->len; i++)
    muster_listed_json (listed->pdata[i], NULL, NULL);
  return MUSTER_EXIT_DONE;
}
