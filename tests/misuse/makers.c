// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph.h"
#include "tests/misuse/misuse.h"

#include "base/budget_private.h"
#include "callbacks/backup.h"
#include "callbacks/worker_training_state.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/format/object_graph.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/forwarding_storage.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "jobs/cluster.h"
#include "jobs/job_runner.h"
#include "master/membership.h"
#include "master/remote/remote_master.h"
#include "master/step_builder.h"
#include "saver/async/async_saver.h"
#include "saver/async/checkpoint_manager.h"
#include "saver/async/snapshot_private.h"
#include "saver/cut.h"
#include "session/cluster/cluster_spec.h"
#include "session/manager.h"
#include "tests/doubles/notebook.h"
#include "train/goodput/goodput_meter.h"
#include "train/hooks/hooks.h"
#include "train/hooks/step_timer_private.h"
#include "train/monitored/monitored_session.h"
#include "train/position/batches.h"
#include "train/position/position_slots.h"
#include "train/preemption/preemption.h"
#include "train/train.h"

#include <string.h>

/* What is made is meant to live as long as its process, so nothing is given back. One small model
 * on the engine in this process is what most of it is about. */

#define SAVED "saved/model.ckpt-1"

static gpointer
must (gpointer made, GError *error)
{
  if (made == NULL)
    g_error ("a maker failed: %s", error != NULL ? error->message : "without an error");
  return made;
}

#define MUST(call)                                                                                 \
  ({                                                                                               \
    GError *error = NULL;                                                                          \
    gpointer made_ = (call);                                                                       \
    must (made_, error);                                                                           \
  })

#define ONCE(type, name, make)                                                                     \
  static type *name (void)                                                                         \
  {                                                                                                \
    static gpointer kept;                                                                          \
    if (kept == NULL)                                                                              \
      kept = (make);                                                                               \
    return kept;                                                                                   \
  }

static gpointer
block (void)
{
  return g_malloc0 (1 << 16);
}

/* --- the model --- */

static MusterMetaGraph *
load_model (void)
{
  g_autofree char *path =
      g_build_filename (g_getenv ("MISUSE_ROOT"), "tests/fixtures/linreg.meta", NULL);
  return MUST (muster_meta_graph_load (path, &error));
}

ONCE (MusterMetaGraph, meta_graph, load_model ())
ONCE (MusterScaffold, scaffold, MUST (muster_scaffold_new (meta_graph (), &error)))
ONCE (MusterMaster, master, muster_local_master_new ())

static MusterGraph *
graph (void)
{
  return muster_scaffold_graph (scaffold ());
}

static MusterSession *
make_session (void)
{
  MusterSession *session = MUST (
      muster_master_create_session (master (), graph (), NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  GError *error = NULL;
  must (muster_session_run_op (session, muster_scaffold_init_op (scaffold ()), MUSTER_WAIT_FOREVER,
                               NULL, &error)
            ? session
            : NULL,
        error);
  return session;
}

ONCE (MusterSession, session, make_session ())
ONCE (MusterSaver, saver, MUST (muster_saver_new (meta_graph (), NULL, &error)))

static const char *
saved (void)
{
  return MUST (
      muster_saver_save (saver (), session (), "saved", 1, MUSTER_WAIT_FOREVER, NULL, &error));
}

ONCE (MusterBundleReader, reader,
      (saved (), MUST (muster_bundle_reader_open (NULL, SAVED, &error))))

static MusterTensor *
tensor (void)
{
  const gint64 dims[] = {2};
  const float values[] = {1, 2};
  return MUST (muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, values, sizeof values, &error));
}

static gpointer
tensors (void)
{
  MusterTensor **list = block ();
  for (int i = 0; i < 4; i++)
    list[i] = tensor ();
  return list;
}

static gpointer
strings (void)
{
  const char **list = block ();
  list[0] = "x";
  return list;
}

/* Sizes of dimensions. */
static gpointer
ones (void)
{
  gint64 *list = block ();
  for (int i = 0; i < 256; i++)
    list[i] = 1;
  return list;
}

/* --- masters' --- */

/* A lease that is held, and a watch that has nothing to say. */
typedef struct {
  MusterLease parent;
} MisuseLease;
typedef MusterLeaseClass MisuseLeaseClass;
GType misuse_lease_get_type (void);
G_DEFINE_TYPE (MisuseLease, misuse_lease, MUSTER_TYPE_LEASE)

static gboolean
lease_announce (MusterLease *self G_GNUC_UNUSED,
                const MusterAnnouncement *announcement G_GNUC_UNUSED,
                gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
lease_check (MusterLease *self G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static void
misuse_lease_class_init (MisuseLeaseClass *klass)
{
  klass->announce = lease_announce;
  klass->check = lease_check;
}

static void
misuse_lease_init (MisuseLease *self G_GNUC_UNUSED)
{
}

typedef struct {
  MusterWatch parent;
} MisuseWatch;
typedef MusterWatchClass MisuseWatchClass;
GType misuse_watch_get_type (void);
G_DEFINE_TYPE (MisuseWatch, misuse_watch, MUSTER_TYPE_WATCH)

static gboolean
watch_next (MusterWatch *self G_GNUC_UNUSED, MusterReadiness *readiness,
            gint64 until_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
            GError **error G_GNUC_UNUSED)
{
  *readiness = (MusterReadiness){0};
  return TRUE;
}

static void
misuse_watch_class_init (MisuseWatchClass *klass)
{
  klass->next = watch_next;
}

static void
misuse_watch_init (MisuseWatch *self G_GNUC_UNUSED)
{
}

static gpointer
lease (void)
{
  MusterLease *made = g_object_new (misuse_lease_get_type (), NULL);
  muster_lease_set_identity (made, "m", 1);
  return made;
}

typedef struct {
  MusterMembership parent;
} MisuseMembership;
typedef MusterMembershipClass MisuseMembershipClass;
GType misuse_membership_get_type (void);
G_DEFINE_TYPE (MisuseMembership, misuse_membership, MUSTER_TYPE_MEMBERSHIP)

static gboolean
membership_leave (MusterMembership *self G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                  GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static void
misuse_membership_class_init (MisuseMembershipClass *klass)
{
  klass->leave = membership_leave;
}

static void
misuse_membership_init (MisuseMembership *self G_GNUC_UNUSED)
{
}

static gpointer
membership (void)
{
  return g_object_new (misuse_membership_get_type (), NULL);
}

static gpointer
manager (void)
{
  const MusterSessionManagerOptions options = {.ready_op = muster_scaffold_ready_op (scaffold ())};
  return MUST (muster_session_manager_new (graph (), &options, &error));
}

static gpointer
bundle_names (void)
{
  const char *const names[] = {"a", "b", NULL};
  return muster_bundle_names_new (muster_tensor_new_strv (names));
}

/* --- storage --- */

static gpointer
storage_file (void)
{
  return MUST (muster_storage_create (muster_local_storage (), "file", &error));
}

static gpointer
storage_input (void)
{
  guint64 size;
  (void)saved ();
  return MUST (muster_storage_open (muster_local_storage (), SAVED ".index", &size, &error));
}

static gpointer
storage_lock (void)
{
  return MUST (
      muster_storage_lock (muster_local_storage (), "lock", MUSTER_LOCK_EXCLUSIVE, &error));
}

static gpointer
side_checkpoint (void)
{
  return muster_checkpoint_record_ensure (muster_checkpoint_record_new (), "m-1");
}

/* --- savers --- */

static gpointer
async_saver (void)
{
  return MUST (muster_async_saver_new (saver (), session (), MUSTER_SAVES_BLOCK, 0, &error));
}

/* Implements interfaces without any of their functions. */
typedef struct {
  GObject parent;
} MisuseEmpty;
typedef GObjectClass MisuseEmptyClass;
GType misuse_empty_get_type (void);
G_DEFINE_TYPE_WITH_CODE (MisuseEmpty, misuse_empty, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CUT, NULL)
                             G_IMPLEMENT_INTERFACE (MUSTER_TYPE_POSITION_SLOTS, NULL))

static void
misuse_empty_class_init (MisuseEmptyClass *klass G_GNUC_UNUSED)
{
}

static void
misuse_empty_init (MisuseEmpty *self G_GNUC_UNUSED)
{
}

static gpointer
saveable_tensors (void)
{
  return g_ptr_array_new ();
}

static gpointer
ticket (void)
{
  return MUST (
      muster_async_saver_save (async_saver (), "saved", 2, MUSTER_WAIT_FOREVER, NULL, &error));
}

static gpointer
snapshot (void)
{
  const MusterSaverInfo *info = muster_meta_graph_saver (meta_graph ());
  return MUST (muster_snapshot_new (session (), graph (), info->save_tensor, "shadow",
                                    MUSTER_WAIT_FOREVER, NULL, &error));
}

/* --- training --- */

static gpointer
hook (void)
{
  return MUST (muster_stop_at_step_hook_new (0, 100, &error));
}

static gpointer
saver_hook (void)
{
  const MusterCheckpointSaverOptions options = {
      .checkpoint_dir = "saved", .save_steps = 10, .saver = saver ()};
  return MUST (muster_checkpoint_saver_hook_new (&options, &error));
}

static gpointer
monitored (void)
{
  const MusterMonitoredSessionOptions options = {.scaffold = scaffold (), .master = master ()};
  return MUST (muster_monitored_session_new (&options, NULL, NULL, &error));
}

static gpointer
batches (void)
{
  MusterTensor *arrays[] = {tensor ()};
  return MUST (muster_batches_new (arrays, 1, 1, 1, &error));
}

static gpointer
session_program (void)
{
  return MUST (muster_session_program_new (meta_graph (), session (), NULL, NULL, &error));
}

static gpointer
backup (void)
{
  const MusterBackupOptions options = {
      .backup_dir = "backup", .program = muster_session_program_operations (session_program ())};
  return MUST (muster_backup_new (&options, &error));
}

static gpointer
worker_training_state (void)
{
  const MusterWorkerTrainingStateOptions options = {.directory = "state"};
  return MUST (muster_worker_training_state_new (meta_graph (), session (), &options, &error));
}

static gpointer
cluster (void)
{
  GError *error = NULL;
  MusterCluster *made = muster_cluster_new (NULL);
  must (muster_cluster_add (made, "x", master (), meta_graph (), &error) ? made : NULL, error);
  must (muster_cluster_open (made, MUSTER_WAIT_FOREVER, NULL, &error) ? made : NULL, error);
  return made;
}

static gpointer
job_task (void)
{
  return muster_job_task_new (NULL, "x", 1);
}

static gpointer
job_output (void)
{
  return MUST (muster_job_task_add_output (job_task (), NULL, &error));
}

static gpointer
job_checkpoint (void)
{
  return muster_job_checkpoint_new ("job", NULL, NULL, NULL);
}

static gpointer
step_timer (void)
{
  MusterStepTimer *made = g_new0 (MusterStepTimer, 1);
  GError *error = NULL;
  return must (muster_step_timer_init (made, 0, 10, NULL, &error) ? made : NULL, error);
}

static gpointer
entries (void)
{
  const MusterBundleEntry **list = block ();
  for (int i = 0; i < 4; i++)
    list[i] = muster_bundle_reader_entry (reader (), 0);
  return list;
}

static gpointer
credentials (void)
{
  const MusterRpcSecurity security = {.tls = TRUE};
  return MUST (muster_rpc_credentials_new (&security, &error));
}

static gpointer
async_result (void)
{
  return g_task_new (NULL, NULL, NULL, NULL);
}

/* --- the table --- */

static gpointer
make_error (void)
{
  return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "lost");
}

#define MAKE(type, call)                                                                           \
  if (strcmp (name, type) == 0)                                                                    \
  return (call)

static gpointer
make_plain (const char *name)
{
  MAKE ("char*", g_strdup ("x"));
  MAKE ("char**", strings ());
  MAKE ("GError*", make_error ());
  MAKE ("gint64*", ones ());
  MAKE ("GBytes*", g_bytes_new_static ("", 0));
  MAKE ("GString*", g_string_new (NULL));
  MAKE ("GByteArray*", g_byte_array_new ());
  MAKE ("GPtrArray*", g_ptr_array_new ());
  MAKE ("GHashTable*", g_hash_table_new (g_str_hash, g_str_equal));
  MAKE ("GCancellable*", g_cancellable_new ());
  MAKE ("GAsyncResult*", async_result ());
  MAKE ("MusterClock*", muster_system_clock ());
  MAKE ("MusterStorage*", muster_local_storage ());
  MAKE ("MusterForwardingStorage*", g_object_new (MUSTER_TYPE_FORWARDING_STORAGE, NULL));
  MAKE ("MusterStorageFile*", storage_file ());
  MAKE ("MusterStorageInput*", storage_input ());
  MAKE ("MusterStorageLock*", storage_lock ());
  MAKE ("MusterBudget*", g_memdup2 (&(MusterBudget){.limit = 1 << 20}, sizeof (MusterBudget)));
  MAKE ("MusterTensor*", tensor ());
  MAKE ("MusterTensor**", tensors ());
  MAKE ("MusterGraph*", graph ());
  MAKE ("MusterMetaGraph*", meta_graph ());
  MAKE ("MusterGraphBuilder*", muster_graph_builder_new ());
  MAKE ("MusterStepTimer*", step_timer ());
  return NULL;
}

static gpointer
make_for_checkpoints (const char *name)
{
  MAKE ("MusterBundleNames*", bundle_names ());
  MAKE ("MusterBundleReader*", reader ());
  MAKE ("MusterBundleEntry**", entries ());
  MAKE ("MusterBundleWriter*", MUST (muster_bundle_writer_new (NULL, "new", &error)));
  MAKE ("MusterCheckpointRecord*", muster_checkpoint_record_new ());
  MAKE ("MusterCheckpointState*", muster_checkpoint_state_new ());
  MAKE ("MusterSideCheckpoint*", side_checkpoint ());
  MAKE ("MusterDirectoryLock*",
        MUST (muster_directory_lock (NULL, ".", MUSTER_WAIT_FOREVER, NULL, NULL, &error)));
  MAKE ("MusterSaver*", saver ());
  MAKE ("MusterAsyncSaver*", async_saver ());
  MAKE ("MusterSaveTicket*", ticket ());
  MAKE ("MusterSaveableTensors*", saveable_tensors ());
  MAKE ("MusterCut*", g_object_new (misuse_empty_get_type (), NULL));
  MAKE ("MusterPositionSlots*", g_object_new (misuse_empty_get_type (), NULL));
  MAKE ("MusterSnapshot*", snapshot ());
  MAKE ("MusterSaveable*", muster_notebook_new (1));
  MAKE ("MusterCheckpointManager*",
        MUST (muster_checkpoint_manager_new (meta_graph (), "managed", NULL, &error)));
  return NULL;
}

static gpointer
make_for_sessions (const char *name)
{
  MAKE ("MusterMaster*", master ());
  MAKE ("MusterRemoteMaster*", MUST (muster_remote_master_new ("grpc://localhost:1", &error)));
  MAKE ("MusterSession*", session ());
  MAKE ("MusterStepBuilder*", muster_step_builder_new ());
  MAKE ("MusterLease*", lease ());
  MAKE ("MusterMembership*", membership ());
  MAKE ("MusterWatch*", g_object_new (misuse_watch_get_type (), NULL));
  MAKE ("MusterRpcCredentials*", credentials ());
  MAKE ("MusterSessionManager*", manager ());
  MAKE ("MusterClusterSpec*", MUST (muster_cluster_spec_new (NULL, &error)));
  return NULL;
}

static gpointer
make_for_training (const char *name)
{
  MAKE ("MusterScaffold*", scaffold ());
  MAKE ("MusterCoordinator*", muster_coordinator_new (NULL, FALSE));
  MAKE ("MusterEventWriter*", MUST (muster_event_writer_new ("events", NULL, &error)));
  MAKE ("MusterHook*", hook ());
  MAKE ("MusterMonitoredSession*", monitored ());
  MAKE ("MusterMonitoredSessionOptions*",
        muster_monitored_session_options_new (scaffold (), master ()));
  MAKE ("MusterScaffoldOptions*", muster_scaffold_options_new (NULL));
  MAKE ("MusterSessionObserver*", muster_session_observer_new ());
  MAKE ("MusterSaverObserver*", muster_saver_observer_new ());
  MAKE ("MusterTrainingObserver*", muster_training_observer_new ());
  MAKE ("MusterTraining*", muster_training_new (scaffold (), master ()));
  MAKE ("MusterMonitoredTrainingOptions*",
        muster_monitored_training_options_new (scaffold (), master ()));
  MAKE ("MusterCheckpointSaverOptions*", muster_checkpoint_saver_options_new ("saved"));
  MAKE ("MusterBatches*", batches ());
  MAKE ("MusterPreemption*", muster_preemption_new (0, NULL));
  MAKE ("MusterGoodputMeter*", muster_goodput_meter_new (NULL));
  MAKE ("MusterSessionProgram*", session_program ());
  MAKE ("MusterBackup*", backup ());
  MAKE ("MusterWorkerTrainingState*", worker_training_state ());
  MAKE ("MusterFit*", muster_fit_new (1, 1));
  MAKE ("MusterBackupOptions*", muster_backup_options_new ("backup", session_program ()));
  MAKE ("MusterWorkerTrainingStateOptions*", muster_worker_training_state_options_new ("state"));
  MAKE ("MusterJobStep*", muster_job_step_new (NULL, NULL));
  MAKE ("MusterJobRunnerOptions*", g_new0 (MusterJobRunnerOptions, 1));
  MAKE ("MusterCluster*", cluster ());
  MAKE ("MusterJob*", muster_job_new ());
  MAKE ("MusterJobTask*", job_task ());
  MAKE ("MusterJobGroup*", muster_job_group_new ());
  MAKE ("MusterJobOutput*", job_output ());
  MAKE ("MusterJobSetup*", muster_job_setup_new (NULL, NULL));
  MAKE ("MusterJobCheckpoint*", job_checkpoint ());
  MAKE ("MusterJobMetadata*", muster_job_state_file_new ());
  MAKE ("MusterJobStateFile*", muster_job_state_file_new ());
  MAKE ("MusterJobUploadBuilder*", g_object_new (MUSTER_TYPE_JOB_UPLOAD_BUILDER, NULL));
  MAKE ("MusterJobRunner*", muster_job_runner_new (muster_job_new (), job_checkpoint (), -1, NULL));
  return NULL;
}

static char *
plain_name (const char *type)
{
  g_autoptr (GString) name = g_string_new (type);
  g_string_replace (name, "const ", "", 0);
  g_string_replace (name, " []", "*", 0);
  g_string_replace (name, " ", "", 0);
  return g_strdup (name->str);
}

gpointer
misuse_make (const char *function, const char *type)
{
  g_autofree char *name = plain_name (type);
  gpointer made = make_plain (name);
  if (g_str_has_prefix (function, "muster_checkpoint_saver_hook_") &&
      strcmp (name, "MusterHook*") == 0)
    return saver_hook (); /* a verb of that kind of hook alone */
  if (made == NULL)
    made = make_for_checkpoints (name);
  if (made == NULL)
    made = make_for_sessions (name);
  return made != NULL ? made : make_for_training (name);
}

gboolean
misuse_is_unmade (const char *type)
{
  static const char *const unmade[] = {
      "MusterObjectNames*",      /* of a checkpoint of TensorFlow 2's objects */
      "MusterRunContext*",       /* a hook's, inside a run */
      "MusterTensorflowMaster*", /* starts TensorFlow */
      NULL,
  };
  g_autofree char *name = plain_name (type);
  return g_strv_contains (unmade, name);
}
