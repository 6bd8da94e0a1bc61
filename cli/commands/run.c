// SPDX-License-Identifier: Apache-2.0
/* `muster run`: runs steps of a prepared model, and prints what is fetched by the last one. */
#include "cli/commands/commands.h"

#include "cli/commands/finish.h"
#include "cli/common/cli.h"
#include "cli/common/feed.h"
#include "cli/output/json.h"
#include "master/remote/target.h"
#include "train/train.h"

#include <string.h>

static const char summary[] =
    "Runs steps of a model whose variables are ready on the master, and prints what the last\n"
    "step fetched. On 'local' the master starts with this command, so the model is initialised\n"
    "first.\n\n"
    "  muster run --meta-graph=digits.meta --master=grpc://chief:2222 \\\n"
    "      --feed=x:0=@images.npy --feed=y:0=@labels.npy --fetch=accuracy:0";

#define VALUES_SHOWN 20

typedef struct {
  char **feeds; /* (owned) (nullable) as on the command line, and the two below */
  char **fetches;
  char **targets;
  char *rows; /* (owned) (nullable) */
  int steps;
  gboolean ends_job;
} RunOptions;

static void
run_options_clear (RunOptions *self)
{
  g_strfreev (self->feeds);
  g_strfreev (self->fetches);
  g_strfreev (self->targets);
  g_free (self->rows);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RunOptions, run_options_clear)

static gsize
count (char **words)
{
  return words == NULL ? 0 : g_strv_length (words);
}

static void
print_fetched (char **names, MusterTensor *const *tensors, gsize n, gboolean json)
{
  if (!json) {
    for (gsize i = 0; i < n; i++) {
      g_autofree char *text = muster_tensor_to_string (tensors[i], VALUES_SHOWN);
      g_autofree char *shape = muster_shape_to_string (muster_tensor_n_dims (tensors[i]),
                                                       muster_tensor_dims (tensors[i]));
      muster_cli_say (stdout, "%s %s%s = %s\n", names[i],
                      muster_dtype_name (muster_tensor_dtype (tensors[i])), shape, text);
    }
    return;
  }
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  for (gsize i = 0; i < n; i++) {
    json_builder_set_member_name (builder, names[i]);
    muster_cli_tensor_json (builder, tensors[i]);
  }
  muster_json_print_line (builder);
}

/* Runs the steps, and prints the tensors of the last one. */
static gboolean
run_steps (MusterSession *session, MusterStep *step, const RunOptions *run, gboolean json,
           GError **error)
{
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, step->n_fetches + 1);
  for (int i = 0; i < run->steps; i++) {
    for (gsize k = 0; k < step->n_fetches; k++)
      g_clear_pointer (&fetched[k], muster_tensor_unref);
    if (!muster_session_run (session, step, fetched, NULL, NULL, error))
      return FALSE;
  }
  print_fetched (run->fetches, fetched, step->n_fetches, json);
  for (gsize k = 0; k < step->n_fetches; k++)
    muster_tensor_unref (fetched[k]);
  return TRUE;
}

/* Opens a session. On a master in this process or its child, the model is initialised first. */
static MusterSession *
open_session (MusterScaffold *scaffold, const MusterCliOptions *options, const MusterStep *step,
              gint64 deadline_us, GError **error)
{
  g_autoptr (MusterMaster) master = muster_cli_master (options, error);
  if (master == NULL)
    return NULL;
  if (!muster_master_is_offered (options->target))
    return muster_cli_create_session (master, muster_scaffold_graph (scaffold), options,
                                      deadline_us, error);
  g_autoptr (MusterSessionManager) manager = muster_cli_manager (scaffold, options, step, 0, error);
  if (manager == NULL)
    return NULL;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (muster_scaffold_init_op (scaffold) == NULL) /* nothing to initialise */
    return muster_cli_create_session (master, muster_scaffold_graph (scaffold), options,
                                      deadline_us, error);
  MusterPrepareOptions prepare = {.init_op = muster_scaffold_init_op (scaffold),
                                  .timeout_us = muster_deadline_remaining (deadline_us, now_us)};
  return muster_session_manager_prepare_session (manager, master, &prepare, NULL, NULL, error);
}

static gboolean
end_job (MusterScaffold *scaffold, MusterSession *session, const MusterCliOptions *options,
         gint64 deadline_us, GError **error)
{
  gint64 step = -1;
  if (muster_scaffold_global_step (scaffold) != NULL) {
    step = muster_read_global_step (session, scaffold, deadline_us, NULL, error);
    if (step < 0)
      return FALSE;
  }
  return muster_cli_end_job (session, options, step, deadline_us, error);
}

/* A step that exceeds its deadline is a failed run, not a model that isn't ready. */
static int
fail_run (const GError *error)
{
  MusterExit code = muster_cli_fail (error);
  return code == MUSTER_EXIT_NOT_READY ? MUSTER_EXIT_FAILED : code;
}

static int
run_with_feeds (MusterScaffold *scaffold, const MusterCliOptions *options, const RunOptions *run)
{
  g_autoptr (GError) error = NULL;
  gsize n_feeds = count (run->feeds), n_read = 0;
  g_autofree MusterFeed *feeds = g_new0 (MusterFeed, n_feeds + 1);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  for (; n_read < n_feeds; n_read++) {
    char *name = NULL;
    feeds[n_read].tensor = muster_cli_read_feed (muster_scaffold_graph (scaffold),
                                                 run->feeds[n_read], run->rows, &name, &error);
    if (feeds[n_read].tensor == NULL)
      break;
    feeds[n_read].name = name;
    g_ptr_array_add (names, name);
  }
  g_autoptr (MusterSession) session = NULL;
  if (n_read == n_feeds) {
    gint64 deadline_us =
        muster_deadline_after (muster_clock_now_us (muster_system_clock ()), options->timeout_us);
    MusterStep step = {.feeds = feeds,
                       .n_feeds = n_feeds,
                       .fetches = (const char *const *)run->fetches,
                       .n_fetches = count (run->fetches),
                       .targets = (const char *const *)run->targets,
                       .n_targets = count (run->targets),
                       .deadline_us = deadline_us};
    session = open_session (scaffold, options, &step, deadline_us, &error);
    if (session != NULL && run_steps (session, &step, run, options->json, &error) && run->ends_job)
      (void)end_job (scaffold, session, options, deadline_us, &error);
  }
  for (gsize i = 0; i < n_read; i++)
    muster_tensor_unref (feeds[i].tensor);
  if (session != NULL)
    muster_session_close_quietly (session);
  return error != NULL ? fail_run (error) : MUSTER_EXIT_DONE;
}

int
muster_cli_run (int argc, char **argv)
{
  g_auto (RunOptions) run = {.steps = 1};
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"feed", 0, 0, G_OPTION_ARG_STRING_ARRAY, &run.feeds,
       "tensor to feed: a number, a JSON list, or a NumPy file (default: none)",
       "NAME=VALUE|NAME=@FILE.npy"},
      {"rows", 0, 0, G_OPTION_ARG_STRING, &run.rows,
       "rows of each NumPy file to use, such as 1500:1600 or 1500: (default: all)", "FIRST:END"},
      {"fetch", 0, 0, G_OPTION_ARG_STRING_ARRAY, &run.fetches,
       "tensor to fetch and print (default: none)", "NAME"},
      {"target", 0, 0, G_OPTION_ARG_STRING_ARRAY, &run.targets,
       "op to run without fetching (default: none)", "OP"},
      {"steps", 0, 0, G_OPTION_ARG_INT, &run.steps, "number of steps to run (default: 1)", "N"},
      {"ends-job", 0, 0, G_OPTION_ARG_NONE, &run.ends_job,
       "mark the job as over afterwards, as `muster finish` does", NULL},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries,
                         MUSTER_CLI_SESSION | MUSTER_CLI_MODEL | MUSTER_CLI_TASK, &options, NULL,
                         &error))
    return muster_cli_fail (error);
  if (run.steps < 1 || count (run.fetches) + count (run.targets) == 0) {
    fprintf (
        stderr,
        "muster: run needs at least one --fetch=NAME or --target=OP, and --steps of 1 or more\n");
    return MUSTER_EXIT_BAD_INPUT;
  }
  g_autoptr (MusterScaffold) scaffold = muster_cli_scaffold (&options, &error);
  if (scaffold == NULL)
    return muster_cli_fail (error);
  return run_with_feeds (scaffold, &options, &run);
}
