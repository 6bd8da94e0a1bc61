// SPDX-License-Identifier: Apache-2.0
/* Whether a master answers, and whether it answers this caller. */
#include "cli/common/master_status.h"
#include "cli/doctor/looks.h"

#include <string.h>

#define LONGEST_DIAGNOSIS_US MUSTER_SECOND
#define PART_FOR_DIAGNOSIS   4  /* of the time, at most */
#define MOST_AT_ONCE         64 /* tasks; a silent one takes a second */

typedef struct {
  const MusterDoctor *doctor;
  const char *target;
  const char *address; /* a part of the target */
  gboolean tls;
  gint64 call_deadline_us; /* leaves time to find out why there is no answer */
} Look;

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static void
add (const Look *self, MusterCheck check, const GError *error, const char *remedy)
{
  muster_findings_add_error (self->doctor->findings, MUSTER_FINDING_ERROR, check, self->target,
                             error, remedy);
}

/* No answer came: the cause is found without gRPC. */
static void
diagnose (const Look *self, const GError *error)
{
  MusterFindings *findings = self->doctor->findings;
  g_auto (MusterDiagnosis) diagnosis = {0};
  muster_diagnose (self->address, self->tls,
                   MIN (self->doctor->deadline_us, now_us () + LONGEST_DIAGNOSIS_US), NULL,
                   &diagnosis);
  g_autofree char *remedy =
      muster_cli_no_answer_hint (self->address, self->tls, diagnosis.stage, "doctor");
  muster_findings_add (findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_MASTER, self->target, remedy,
                       "the master doesn't answer: %s",
                       diagnosis.stage != MUSTER_REACH_ANSWERS ? diagnosis.text : error->message);
  muster_findings_add_place (findings, self->target, "no answer");
}

/* A master without muster's own service, such as TensorFlow's, lists its devices. */
static void
look_at_another (const Look *self)
{
  g_autoptr (GError) error = NULL;
  MusterCliOptions options = *self->doctor->options;
  options.target = (char *)self->target;
  g_autoptr (MusterMaster) master = muster_cli_master (&options, &error);
  g_autoptr (GPtrArray) devices =
      master == NULL ? NULL
                     : muster_master_list_devices (master, self->call_deadline_us, NULL, &error);
  if (devices == NULL && muster_cli_is_unanswered (error)) {
    add (self, MUSTER_CHECK_MASTER, error,
         "start all tasks of its cluster, of which a server of TensorFlow waits for each; "
         "--cluster=TASK=HOST:PORT,… or TF_CONFIG finds those that don't answer");
    muster_findings_add_place (self->doctor->findings, self->target,
                               "up, not muster's, but doesn't answer");
    return;
  }
  if (devices == NULL) {
    add (self, MUSTER_CHECK_MASTER, error,
         "check that it is a master's port, not the one for health probes");
    muster_findings_add_place (self->doctor->findings, self->target, "not a master");
    return;
  }
  muster_findings_add_place (self->doctor->findings, self->target,
                             "up, not muster's, so its jobs are unknown: %u device%s", devices->len,
                             devices->len == 1 ? "" : "s");
}

static void
look_at_failure (const Look *self, const GError *error)
{
  if (muster_cli_is_unanswered (error)) {
    diagnose (self, error);
    return;
  }
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED)) {
    look_at_another (self);
    return;
  }
  const gboolean is_refused = muster_error_is (error, MUSTER_ERROR_UNAUTHENTICATED) ||
                              muster_error_is (error, MUSTER_ERROR_PERMISSION_DENIED);
  const gboolean is_ours = muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT);
  add (self, is_refused || is_ours ? MUSTER_CHECK_ACCESS : MUSTER_CHECK_MASTER, error,
       is_refused ? "pass --token-file with a token of the server, with the role `read` or above"
       : is_ours  ? "correct the options"
                  : "read the server's log");
  muster_findings_add_place (self->doctor->findings, self->target,
                             is_refused ? "up, but refuses this caller"
                             : is_ours  ? "not asked"
                                        : "the request failed");
}

/* A task of TensorFlow's cluster. */
typedef struct {
  const char *task; /* "ps:0=HOST:PORT" */
  const char *address;
  gboolean is_probed;
  MusterDiagnosis diagnosis; /* (owned) */
} Probe;

static void
probe_clear (gpointer data)
{
  muster_diagnosis_clear (&((Probe *)data)->diagnosis);
}

static void
run_probe (gpointer data, gpointer user_data)
{
  Probe *self = data;
  const MusterDoctor *doctor = user_data;
  const gint64 until_us = now_us () + LONGEST_DIAGNOSIS_US;
  if (now_us () >= doctor->deadline_us)
    return;
  self->is_probed = TRUE;
  muster_diagnose_master (self->address, MIN (doctor->deadline_us, until_us), NULL,
                          &self->diagnosis);
}

static void
report_probe (const MusterDoctor *self, const Probe *probe)
{
  if (!probe->is_probed || probe->diagnosis.stage == MUSTER_REACH_ANSWERS)
    return;
  g_autofree char *name = g_strndup (probe->task, (gsize)(probe->address - 1 - probe->task));
  g_autofree char *remedy = g_strdup_printf ("start %s at %s", name, probe->address);
  muster_findings_add (self->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_TASKS, probe->address,
                       remedy, "the task %s of the cluster doesn't answer: %s", name,
                       probe->diagnosis.text);
}

void
muster_doctor_look_at_tasks (const MusterDoctor *self, const char *place)
{
  g_autoptr (GArray) probes = g_array_new (FALSE, TRUE, sizeof (Probe));
  GThreadPool *pool = g_thread_pool_new (run_probe, (gpointer)self, MOST_AT_ONCE, FALSE, NULL);
  guint n_probed = 0;
  g_array_set_clear_func (probes, probe_clear);
  for (char **task = self->options->addresses; task != NULL && *task != NULL; task++) {
    const Probe probe = {.task = *task, .address = strchr (*task, '=') + 1};
    g_array_append_val (probes, probe);
  }
  for (guint i = 0; i < probes->len; i++)
    g_thread_pool_push (pool, &g_array_index (probes, Probe, i), NULL);
  g_thread_pool_free (pool, FALSE, TRUE);
  for (guint i = 0; i < probes->len; i++) {
    report_probe (self, &g_array_index (probes, Probe, i));
    n_probed += g_array_index (probes, Probe, i).is_probed;
  }
  if (n_probed < probes->len)
    muster_findings_add_place (self->findings, place, "%u of %u tasks checked in time", n_probed,
                               probes->len);
}

void
muster_doctor_look_at_master (const MusterDoctor *self, const char *target)
{
  const gint64 left_us = self->deadline_us - now_us ();
  Look look = {.doctor = self, .target = target};
  MusterCliOptions options = *self->options;
  g_autoptr (MusterRpcCredentials) credentials = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;

  look.address = muster_cli_master_address (target, &look.tls, NULL);
  look.call_deadline_us =
      self->deadline_us - MIN (LONGEST_DIAGNOSIS_US, left_us / PART_FOR_DIAGNOSIS);
  options.target = (char *)target;
  if (!muster_cli_credentials (&options, &credentials, &error)) {
    add (&look, MUSTER_CHECK_SECRET, error, "correct the file, or pass another one");
    return;
  }
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (look.address, credentials);
  const Muster__StatusResponse *status =
      muster_cli_master_status (client, 0, 0, look.call_deadline_us, arena, &error);
  if (status != NULL)
    muster_doctor_look_at_status (self, target, status);
  else
    look_at_failure (&look, error);
}
