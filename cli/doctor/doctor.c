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

/* Whether a target's address is that of TF_CONFIG's own task, or of another one of its cluster. */
static gboolean
is_in_cluster (const MusterCliOptions *options, const char *word)
{
  const char *address = muster_address_in_target (word, NULL);
  if (address == NULL)
    return FALSE;
  if (options->target != NULL &&
      g_strcmp0 (muster_address_in_target (options->target, NULL), address) == 0)
    return TRUE;
  for (char **task = options->addresses; task != NULL && *task != NULL; task++)
    if (strcmp (strchr (*task, '=') + 1, address) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
has_word_in_cluster (const MusterCliOptions *options, char **words)
{
  for (char **word = words; *word != NULL; word++)
    if (is_in_cluster (options, *word))
      return TRUE;
  return FALSE;
}

/* Without a word, TF_CONFIG names the master and the cluster's tasks. Otherwise the cluster may be
 * another job's. */
static gboolean
take_places (MusterCliOptions *options, char ***words, GError **error)
{
  if (**words == NULL && options->target != NULL) {
    g_strfreev (*words);
    *words = g_strdupv ((char *[]){options->target, NULL});
  } else if (**words != NULL && options->cluster == NULL &&
             !has_word_in_cluster (options, *words)) {
    g_clear_pointer (&options->addresses, g_strfreev);
  }
  add_coordinator (options, words);
  if (**words == NULL && options->addresses == NULL)
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

typedef void (*LookFunction) (const MusterDoctor *self, const char *place);

/* Each place is looked at on a thread of its own: one that is silent leaves the others their time.
 * Where a directory's file server is gone, the system may not answer. Then the thread is left
 * behind with this. */
typedef struct {
  MusterDoctor doctor; /* with findings, and a master's with holders, of its own (owned) */
  LookFunction look;
  const char *place;
  GThread *thread;
  GMutex lock;
  GCond changed;
  gboolean is_done; /* guarded by lock */
} Looking;

static gpointer
run_looking (gpointer data)
{
  Looking *self = data;
  self->look (&self->doctor, self->place);
  g_mutex_lock (&self->lock);
  self->is_done = TRUE;
  g_cond_signal (&self->changed);
  g_mutex_unlock (&self->lock);
  return NULL;
}

static Looking *
looking_start (const MusterDoctor *doctor, LookFunction look, const char *place)
{
  Looking *self = g_new0 (Looking, 1);
  self->doctor = *doctor;
  self->doctor.findings = muster_findings_new ();
  if (look == muster_doctor_look_at_master)
    self->doctor.holders = g_ptr_array_new_with_free_func (muster_holder_free);
  self->look = look;
  self->place = place;
  self->thread = g_thread_new ("muster-look", run_looking, self);
  return self;
}

static gboolean
await_looking (Looking *self, gint64 deadline_us)
{
  gboolean is_in_time = TRUE;
  g_mutex_lock (&self->lock);
  while (!self->is_done && is_in_time)
    is_in_time = muster_wait_change (&self->changed, &self->lock, deadline_us);
  const gboolean is_done = self->is_done;
  g_mutex_unlock (&self->lock);
  return is_done;
}

static void
looking_end (Looking *self, const MusterDoctor *doctor)
{
  if (!await_looking (self, muster_deadline_after (self->doctor.deadline_us, SPARE_US))) {
    const gboolean is_directory = self->look == muster_doctor_look_at_directory;
    muster_findings_add (doctor->findings, MUSTER_FINDING_ERROR,
                         is_directory ? MUSTER_CHECK_DIRECTORY : MUSTER_CHECK_MASTER, self->place,
                         is_directory ? "check its file server and its mount: saves there hang, "
                                        "too; if it is only slow, set a longer --timeout"
                                      : "check the name server, and set a longer --timeout",
                         "the %s doesn't answer in time", is_directory ? "directory" : "master");
    muster_findings_add_place (doctor->findings, self->place, "no answer");
    g_thread_unref (self->thread);
    return;
  }
  g_thread_join (self->thread);
  muster_findings_take (doctor->findings, self->doctor.findings);
  muster_findings_free (self->doctor.findings);
  if (self->doctor.holders != doctor->holders)
    g_ptr_array_extend_and_steal (doctor->holders, self->doctor.holders);
  g_free (self);
}

static guint
n_directories (char **words)
{
  guint n = 0;
  for (char **word = words; *word != NULL; word++)
    n += !is_master (*word);
  return n;
}

static void
look_at_all (const MusterDoctor *self, char **words, gboolean masters)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  if (masters && self->options->addresses != NULL)
    g_ptr_array_add (all, looking_start (self, muster_doctor_look_at_tasks, "the cluster"));
  for (char **word = words; *word != NULL; word++)
    if (is_master (*word) == masters)
      g_ptr_array_add (all, looking_start (self,
                                           masters ? muster_doctor_look_at_master
                                                   : muster_doctor_look_at_directory,
                                           *word));
  for (guint i = 0; i < all->len; i++)
    looking_end (all->pdata[i], self);
}

/* Masters first: what they say of their chiefs is compared with the directories, to which they
 * leave half of the time. */
static void
look (const MusterDoctor *self, char **words)
{
  MusterDoctor first = *self;
  if (n_directories (words) > 0)
    first.deadline_us -= (self->deadline_us - muster_clock_now_us (muster_system_clock ())) / 2;
  look_at_all (&first, words, TRUE);
  look_at_all (self, words, FALSE);
}

int
muster_cli_doctor (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFindings) findings = muster_findings_new ();
  g_autoptr (GPtrArray) holders = g_ptr_array_new_with_free_func (muster_holder_free);
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
