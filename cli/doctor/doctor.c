// SPDX-License-Identifier: Apache-2.0
/* `muster doctor`: looks at a job's master and at its directory of checkpoints, and reports what
 * keeps the job from training, or puts it at risk. */
#include "cli/doctor/doctor.h"

#include "base/wait_private.h"
#include "checkpoint/stores/default_storage.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/master_status.h"
#include "cli/doctor/looks.h"
#include "master/remote/target.h"
#include "rpc/address_private.h"

#include <string.h>

#define DEFAULT_TIMEOUT_US  (10 * MUSTER_SECOND)
#define DEFAULT_PATIENCE_US (10 * MUSTER_SECOND)
#define SPARE_US            (500 * MUSTER_MILLISECOND) /* for what ends at the deadline by itself */

static const char summary[] =
    "Finds what keeps a job from training, and what puts it at risk. TARGET is the job's master:\n"
    "whether it answers and accepts this caller, the chief, tasks, waits, steps, saves, limits,\n"
    "versions and clocks are checked. DIR is its checkpoint directory: rights, space, other jobs,\n"
    "the latest checkpoint, which is read, and what was left over. Give both if you can. Without\n"
    "either, the master is that of TF_CONFIG. Prints each finding with its place and a remedy: "
    "the\n"
    "worst first, causes before their effects. Changes nothing.\n\n"
    "Exits with 0 if nothing was found, and with 1 if something was.";

static gboolean
is_master (const char *word)
{
  return muster_address_in_target (word, NULL) != NULL || muster_master_is_offered (word) ||
         (strstr (word, "://") == NULL && muster_address_check (word, NULL) &&
          !g_file_test (word, G_FILE_TEST_EXISTS));
}

static gboolean
check_place (const char *word, GError **error)
{
  gboolean tls;
  if (muster_master_is_offered (word))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "doctor: the master %s exists only in its own process; give the job's "
                        "checkpoint directory",
                        word);
  return is_master (word)
             ? muster_cli_master_address (word, &tls, error) != NULL
             : muster_storage_check_path (muster_default_storage (), "directory", word, error);
}

/* The coordinator is one more master to look at. */
static void
add_coordinator (const MusterCliOptions *options, char ***words)
{
  if (options->coordinator == NULL ||
      g_strv_contains ((const char *const *)*words, options->coordinator))
    return;
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  g_strv_builder_addv (all, (const char **)*words);
  g_strv_builder_add (all, options->coordinator);
  g_strfreev (*words);
  *words = g_strv_builder_end (all);
}

/* Without a word, TF_CONFIG names the master and the cluster's tasks. */
static gboolean
take_places (MusterCliOptions *options, char ***words, GError **error)
{
  if (**words == NULL && options->target != NULL) {
    g_strfreev (*words);
    *words = g_strdupv ((char *[]){options->target, NULL});
  } else if (options->cluster == NULL) {
    g_clear_pointer (&options->addresses, g_strfreev);
  }
  add_coordinator (options, words);
  if (**words == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "doctor needs a TARGET, such as grpc://HOST:PORT, or a DIR");
  for (char **word = *words; *word != NULL; word++)
    if (!check_place (*word, error))
      return FALSE;
  return TRUE;
}

static gboolean
parse (int argc, char **argv, MusterCliOptions *options, gint64 *patience_us, char ***words,
       GError **error)
{
  g_autofree char *patience = NULL;
  const GOptionEntry entries[] = {
      {"patience", 0, 0, G_OPTION_ARG_STRING, &patience,
       "maximum duration of a wait, a step or the preparation of a model that isn't a finding "
       "(default: 10s)",
       "TIME"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "TARGET|DIR…", summary, entries,
                         MUSTER_CLI_TIMEOUT | MUSTER_CLI_SHORT | MUSTER_CLI_JSON |
                             MUSTER_CLI_CLUSTER | MUSTER_CLI_SECURITY,
                         options, words, error))
    return FALSE;
  if (options->timeout == NULL)
    options->timeout_us = DEFAULT_TIMEOUT_US;
  *patience_us = DEFAULT_PATIENCE_US;
  return (patience == NULL || muster_cli_duration (patience, patience_us, error)) &&
         take_places (options, words, error);
}

/* A directory is read on a thread of its own: where its file server is gone, the system may not
 * answer. Then the thread is left behind with this. */
typedef struct {
  MusterDoctor doctor; /* with findings of its own (owned) */
  const char *directory;
  GMutex lock;
  GCond changed;
  gboolean is_read; /* guarded by lock */
} Reading;

static gpointer
run_reading (gpointer data)
{
  Reading *self = data;
  muster_doctor_look_at_directory (&self->doctor, self->directory);
  g_mutex_lock (&self->lock);
  self->is_read = TRUE;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
  return NULL;
}

static gboolean
await_reading (Reading *self, gint64 deadline_us)
{
  gboolean is_in_time = TRUE;
  g_mutex_lock (&self->lock);
  while (!self->is_read && is_in_time)
    is_in_time = muster_wait_change (&self->changed, &self->lock, deadline_us);
  const gboolean is_read = self->is_read;
  g_mutex_unlock (&self->lock);
  return is_read;
}

static void
look_at_directory (const MusterDoctor *self, const char *directory)
{
  Reading *reading = g_new0 (Reading, 1);
  reading->doctor = *self;
  reading->doctor.findings = muster_findings_new ();
  reading->directory = directory;
  GThread *thread = g_thread_new ("muster-read", run_reading, reading);
  if (!await_reading (reading, muster_deadline_after (self->deadline_us, SPARE_US))) {
    muster_findings_add (self->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_DIRECTORY, directory,
                         "check its file server and its mount: what saves there hangs, too; if it "
                         "is only slow, set a longer --timeout",
                         "the directory doesn't answer in time");
    muster_findings_add_place (self->findings, directory, "no answer");
    g_thread_unref (thread);
    return;
  }
  g_thread_join (thread);
  muster_findings_take (self->findings, reading->doctor.findings);
  muster_findings_free (reading->doctor.findings);
  g_free (reading);
}

/* Masters first: what they say of their chiefs is compared with the directories. */
static void
look (const MusterDoctor *self, char **words)
{
  for (char **word = words; *word != NULL; word++)
    if (is_master (*word))
      muster_doctor_look_at_master (self, *word);
  for (char **word = words; *word != NULL; word++)
    if (!is_master (*word))
      look_at_directory (self, *word);
}

int
muster_cli_doctor (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFindings) findings = muster_findings_new ();
  g_autoptr (GPtrArray) holders = g_ptr_array_new_with_free_func (g_free);
  MusterDoctor doctor = {.options = &options, .findings = findings, .holders = holders};

  if (!parse (argc, argv, &options, &doctor.patience_us, &words, &error))
    return muster_cli_fail (error);
  doctor.deadline_us = muster_cli_bind_storage (&options, NULL);
  look (&doctor, words);
  if (options.json)
    muster_findings_print_json (findings);
  else
    muster_findings_print (findings);
  return muster_cli_leave (muster_findings_list (findings)->len > 0 ? MUSTER_EXIT_NO
                                                                    : MUSTER_EXIT_DONE);
}
