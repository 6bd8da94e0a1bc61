// SPDX-License-Identifier: Apache-2.0
/* `muster save`: saves a model that a master holds, with the positions of the job that trains
 * it. */
#include "cli/commands/commands.h"

#include "cli/common/cli.h"
#include "cli/common/flags.h"
#include "cli/output/figures.h"
#include "cli/output/json.h"
#include "train/position/position.h"
#include "train/train.h"

static const char summary[] =
    "Saves the model's variables from the master as DIR/model.ckpt-STEP, and returns when the\n"
    "checkpoint is durable and the latest of DIR. TensorFlow can read it. The master must see the\n"
    "same DIR. save can run beside the job's chief: the two take turns in DIR.\n\n"
    "Free space is checked first. If there isn't enough, checkpoints that would be removed after\n"
    "the save are removed before it. If that isn't enough, nothing is removed, and save fails\n"
    "(exit code 4), skips this checkpoint (1), or pauses until there is space or the timeout.";

/* What somebody asks for. */
typedef struct {
  char *directory;    /* (owned) */
  MusterFlags *flags; /* (owned) */
  MusterSaverOptions saver;
} CommandOptions;

static void
options_clear (CommandOptions *self)
{
  g_free (self->directory);
  muster_flags_free (self->flags);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CommandOptions, options_clear)

static void
say_pause (const char *why, gpointer user_data G_GNUC_UNUSED)
{
  muster_cli_say (stderr, "waiting for free space: %s\n", why);
}

/* Saves a checkpoint, numbered with the model's global step; without a number if it has none. */
static gboolean
save (MusterScaffold *scaffold, MusterSession *session, MusterSaver *saver,
      const CommandOptions *command, MusterSaved *saved, gint64 deadline_us, GError **error)
{
  const MusterPositionGuard guard = {.is_apart = TRUE,
                                     .global_step = muster_scaffold_global_step (scaffold)};
  muster_position_guard (saver, muster_scaffold_meta_graph (scaffold), &guard);
  if (!muster_saver_adopt_directory (saver, command->directory, error))
    return FALSE;
  gint64 step = -1;
  if (muster_scaffold_global_step (scaffold) != NULL) {
    step = muster_read_global_step (session, scaffold, deadline_us, NULL, error);
    if (step < 0)
      return FALSE;
  }
  return muster_saver_save_with (saver, session, command->directory, step, 0, saved, deadline_us,
                                 NULL, error);
}

/* "saved run/model.ckpt-5, durable, 4.2 GB in 1.4 s (3.0 GB/s)" */
static void
print_saved (const MusterSaved *saved)
{
  if (saved->skipped) {
    muster_cli_say (stdout, "skipped: %s\n", saved->why);
    return;
  }
  g_autofree char *transfer = muster_figure_transfer (saved->bytes, saved->bytes, saved->took_us);
  muster_cli_say (stdout, "saved %s, durable, %s\n", saved->prefix, transfer);
  if (saved->why != NULL)
    muster_cli_say (
        stderr, "warning: the checkpoint is complete, but its metadata could not be written: %s\n",
        saved->why);
}

static void
print_json (const MusterSaved *saved)
{
  static const MusterJsonField fields[] = {
      MUSTER_JSON_FIELD (MusterSaved, prefix, STRING, "saved"),
      MUSTER_JSON_FIELD (MusterSaved, step, STEP, "step"),
      MUSTER_JSON_FIELD (MusterSaved, bytes, INT64, "bytes"),
      MUSTER_JSON_FIELD (MusterSaved, took_us, SECONDS, "seconds"),
      MUSTER_JSON_FIELD (MusterSaved, skipped, BOOLEAN, "skipped"),
      MUSTER_JSON_FIELD (MusterSaved, why, STRING, "why")};
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_fields (builder, fields, G_N_ELEMENTS (fields), saved);
  muster_json_print_line (builder);
}

static gboolean
check_options (CommandOptions *command, GError **error)
{
  if (command->directory == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "save needs --checkpoint-dir=DIR; see `muster help save`");
  command->saver.paused = say_pause;
  return muster_cli_check_directory ("--checkpoint-dir", command->directory, error) &&
         muster_flags_apply (command->flags, error);
}

/* The model with the positions of the job that trains it on the master. */
static MusterScaffold *
find_positions (MusterMaster *master, MusterScaffold *scaffold, const MusterCliOptions *options,
                gint64 deadline_us, GError **error)
{
  MusterMetaGraph *own = muster_scaffold_meta_graph (scaffold);
  const MusterScaffoldOptions same = {.copy_from = scaffold};
  g_autoptr (MusterMetaGraph) found =
      muster_position_find (master, own, options->config, deadline_us, NULL, error);
  if (found == NULL) {
    muster_cli_explain_no_answer (options, deadline_us, error);
    return NULL;
  }
  return found == own ? muster_scaffold_ref (scaffold)
                      : muster_scaffold_new_with (found, &same, error);
}

static gboolean
save_from (MusterMaster *master, MusterScaffold *own, const MusterCliOptions *options,
           const CommandOptions *command, MusterSaved *saved, GError **error)
{
  const gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), options->timeout_us);
  g_autoptr (MusterScaffold) scaffold = find_positions (master, own, options, deadline_us, error);
  g_autoptr (MusterSaver) saver =
      scaffold != NULL
          ? muster_saver_new (muster_scaffold_meta_graph (scaffold), &command->saver, error)
          : NULL;
  g_autoptr (MusterSession) session =
      saver != NULL ? muster_cli_create_session (master, muster_scaffold_graph (scaffold), options,
                                                 deadline_us, error)
                    : NULL;
  if (session == NULL)
    return FALSE;
  const gboolean is_done = save (scaffold, session, saver, command, saved, deadline_us, error);
  muster_session_close_quietly (session);
  return is_done;
}

#define AT(field) MUSTER_CLI_AT (CommandOptions, field)

static const GOptionEntry entries[] = {{"checkpoint-dir", 0, 0, G_OPTION_ARG_FILENAME,
                                        AT (directory), "checkpoint directory (required)", "DIR"},
                                       {NULL}};

static gboolean
parse (CommandOptions *self, int argc, char **argv, MusterCliOptions *options, GError **error)
{
  self->flags = muster_flags_new ("save");
  muster_flags_add (self->flags, entries, self);
  muster_flags_add_options (self->flags, MUSTER_TYPE_SAVER_OPTIONS, &self->saver);
  return muster_cli_parse (argc, argv, "", summary, muster_flags_entries (self->flags),
                           MUSTER_CLI_SESSION | MUSTER_CLI_SHARED, options, NULL, error) &&
         check_options (self, error);
}

int
muster_cli_save (int argc, char **argv)
{
  g_auto (CommandOptions) command = {0};
  g_auto (MusterCliOptions) options = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  if (!parse (&command, argc, argv, &options, &error))
    return muster_cli_fail (error);
  g_autoptr (MusterScaffold) scaffold = muster_cli_scaffold (&options, &error);
  g_autoptr (MusterSaver) checked = /* check everything before creating a session */
      scaffold != NULL
          ? muster_saver_new (muster_scaffold_meta_graph (scaffold), &command.saver, &error)
          : NULL;
  g_autoptr (MusterMaster) master = checked == NULL ? NULL : muster_cli_master (&options, &error);
  if (master == NULL || !save_from (master, scaffold, &options, &command, &saved, &error))
    return muster_cli_fail (error);
  if (options.json)
    print_json (&saved);
  else
    print_saved (&saved);
  return saved.skipped ? MUSTER_EXIT_NO : MUSTER_EXIT_DONE;
}
