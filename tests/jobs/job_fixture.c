// SPDX-License-Identifier: Apache-2.0
#include "tests/jobs/job_fixture.h"

#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/gtest_shim.h"

/* --- the model --- */

static void
add_variable (MusterGraphBuilder *builder, const char *name, gint64 initial)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (initial);
  muster_graph_builder_variable (builder, name, value);
}

static void
add_node (MusterGraphBuilder *builder, const char *op, const char *name, const char *a,
          const char *b)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_input (builder, a);
  if (b != NULL)
    muster_graph_builder_input (builder, b);
  muster_graph_builder_attr_type (builder, "T", MUSTER_INT64);
}

MusterMetaGraph *
job_model_new (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) ten = muster_tensor_new_int64 (10);
  g_autoptr (GError) error = NULL;
  const char *inits[] = {"total/Assign", "position/Assign", "copied/Assign", "counter/Assign",
                         NULL};
  const char *reads[] = {"add", "advance", NULL};
  add_variable (builder, "total", 100);
  add_variable (builder, "position", 0);
  add_variable (builder, "copied", 0);
  add_variable (builder, "late", 7);
  add_variable (builder, "counter", 0);
  add_node (builder, "CountUpTo", "count", "counter", NULL);
  muster_graph_builder_attr_int (builder, "limit", 5);
  muster_graph_builder_constant (builder, "ten", ten);
  add_node (builder, "Less", "has_more", "position/read", "ten");
  muster_graph_builder_node (builder, "Cast", "more");
  muster_graph_builder_input (builder, "has_more");
  muster_graph_builder_attr_type (builder, "SrcT", MUSTER_BOOL);
  muster_graph_builder_attr_type (builder, "DstT", MUSTER_INT64);
  add_node (builder, "Mul", "number", "position/read", "more");
  add_node (builder, "AssignAdd", "add", "total", "number");
  add_node (builder, "AssignAdd", "advance", "position", "more");
  muster_graph_builder_input (builder, "^add");
  muster_graph_builder_group (builder, "read", reads);
  add_node (builder, "GreaterEqual", "finished", "position/read", "ten");
  add_node (builder, "Assign", "download", "copied", "total/read");
  muster_graph_builder_group (builder, "init", inits);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  return muster_meta_graph_new_for_graph (graph);
}

/* --- tasks --- */

MusterJobTask *
job_ops_task (const char *name, const char *node, guint64 repeat, ...)
{
  g_autoptr (GPtrArray) targets = g_ptr_array_new ();
  MusterJobTask *task = muster_job_task_new (name, node, 1);
  const char *op;
  va_list ops;
  va_start (ops, repeat);
  while ((op = va_arg (ops, const char *)) != NULL)
    g_ptr_array_add (targets, (gpointer)op);
  va_end (ops);
  g_ptr_array_add (targets, NULL);
  MusterJobStep step = {.targets = (const char *const *)targets->pdata, .repeat = repeat};
  g_assert_true (muster_job_task_set_step (task, &step, NULL));
  return task;
}

void
job_add (MusterJobGroup *group, MusterJobTask *task)
{
  g_autoptr (GError) error = NULL;
  (void)muster_job_group_add (group, task, &error);
  g_assert_no_error (error);
  g_object_unref (task);
}

typedef struct {
  JobFixture *fixture;
  char *word;
} Note;

static void
note_free (gpointer data)
{
  g_free (((Note *)data)->word);
  g_free (data);
}

gboolean
job_note (JobFixture *self, const char *word, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_auto (GStrv) failing = g_strsplit (self->fails_at != NULL ? self->fails_at : "", "|", -1);
  if (g_strv_contains ((const char *const *)failing, word)) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "%s was to fail", word);
    return FALSE;
  }
  g_string_append_printf (self->diary, "%s%s", self->diary->len > 0 ? ", " : "", word);
  return TRUE;
}

static gboolean
note (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  return job_note (((Note *)data)->fixture, ((Note *)data)->word, error);
}

MusterJobStep
job_note_step (JobFixture *self, const char *word)
{
  Note *data = g_new (Note, 1);
  *data = (Note){self, g_strdup (word)};
  return (MusterJobStep){.func = note, .user_data = data, .destroy = note_free};
}

MusterJobTask *
job_note_task (JobFixture *self, const char *node, const char *word)
{
  MusterJobTask *task = muster_job_task_new (word, node, 1);
  MusterJobStep step = job_note_step (self, word);
  g_assert_true (muster_job_task_set_step (task, &step, NULL));
  return task;
}

/* --- metadata --- */

#define TYPE_FAKE (muster_job_fake_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobFake, muster_job_fake, MUSTER, JOB_FAKE, GObject)

struct _MusterJobFake {
  GObject parent;
  JobFixture *fixture; /* (not owned) */
  FakeMetadata says;
};

static gboolean note_words (MusterJobFake *self, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
note_words (MusterJobFake *self, GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *words = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return job_note (self->fixture, words, error);
}

/* FALSE for the verb that waits, at its end. */
static gboolean
may_answer (MusterJobFake *self, const char *verb, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  if (g_strcmp0 (verb, self->says.waits_at) != 0)
    return TRUE;
  if (self->says.cancels != NULL)
    g_cancellable_cancel (self->says.cancels);
  return muster_clock_wait_until (muster_system_clock (), deadline_us, cancellable, error) &&
         muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "%s took too long", verb);
}

/* A verb that is asked about an epoch, or about none. */
static gboolean
note_asked (MusterJobFake *self, GError **error, const char *verb, gint64 epoch)
{
  if (epoch == MUSTER_NO_EPOCH)
    return note_words (self, error, "%s", verb);
  return note_words (self, error, "%s %" G_GINT64_FORMAT, verb, epoch);
}

static gboolean
fake_set_params (MusterJobMetadata *metadata, const MusterJobParams *params, GError **error)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (metadata);
  g_autofree char *nodes = g_strjoinv (" ", (char **)params->nodes);

  g_free (self->says.params);
  self->says.params =
      g_strdup_printf ("%s: %s, %s, %s", params->directory, nodes,
                       params->path_prefix != NULL ? params->path_prefix : "no prefix",
                       params->path_storage != NULL ? "another storage" : "no other storage");
  return note_words (self, error, "params");
}

static gboolean
fake_write (MusterJobMetadata *metadata, gint64 epoch, gboolean finished, gint64 deadline_us,
            GCancellable *cancellable, GError **error)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (metadata);
  return may_answer (self, "write", deadline_us, cancellable, error) &&
         note_words (self, error, "write %" G_GINT64_FORMAT "%s", epoch,
                     finished ? " finished" : "");
}

static gboolean
fake_last_epoch (MusterJobMetadata *metadata, gint64 user_epoch, gint64 *epoch, gboolean *finished,
                 gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (metadata);
  *epoch = self->says.last_epoch != MUSTER_NO_EPOCH ? self->says.last_epoch : user_epoch;
  *finished = self->says.finished;
  return may_answer (self, "resume", deadline_us, cancellable, error) &&
         note_asked (self, error, "resume", user_epoch);
}

static gboolean
fake_accessible (MusterJobMetadata *metadata, gint64 epoch, gboolean *accessible,
                 gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (metadata);
  *accessible = !self->says.inaccessible;
  return may_answer (self, "accessible", deadline_us, cancellable, error) &&
         note_asked (self, error, "accessible", epoch);
}

static gboolean
fake_report (MusterJobMetadata *metadata, const char *action, GPtrArray *stats, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (metadata);
  g_clear_pointer (&self->says.stats, g_ptr_array_unref);
  self->says.stats = g_ptr_array_ref (stats);
  return may_answer (self, "report", deadline_us, cancellable, error) &&
         note_words (self, error, "report %s", action);
}

static void
fake_iface_init (MusterJobMetadataInterface *iface)
{
  iface->set_params = fake_set_params;
  iface->write = fake_write;
  iface->last_epoch = fake_last_epoch;
  iface->accessible = fake_accessible;
  iface->report = fake_report;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterJobFake, muster_job_fake, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_JOB_METADATA, fake_iface_init))

static void
job_fake_finalize (GObject *object)
{
  MusterJobFake *self = MUSTER_JOB_FAKE (object);
  g_free (self->says.params);
  g_clear_pointer (&self->says.stats, g_ptr_array_unref);
  G_OBJECT_CLASS (muster_job_fake_parent_class)->finalize (object);
}

static void
muster_job_fake_init (MusterJobFake *self)
{
  self->says.last_epoch = MUSTER_NO_EPOCH;
}

static void
muster_job_fake_class_init (MusterJobFakeClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = job_fake_finalize;
}

FakeMetadata *
job_fake_metadata (JobFixture *self)
{
  if (self->metadata == NULL) {
    self->metadata = g_object_new (TYPE_FAKE, NULL);
    MUSTER_JOB_FAKE (self->metadata)->fixture = self;
  }
  return &MUSTER_JOB_FAKE (self->metadata)->says;
}

/* --- the job --- */

static void
make_job (JobFixture *self, const char *const *nodes)
{
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  g_autoptr (GError) error = NULL;
  self->cluster = muster_cluster_new (NULL);
  self->job = muster_job_new ();
  for (guint i = 0; nodes[i]; i++) {
    (void)muster_cluster_add (self->cluster, nodes[i], self->masters->pdata[i], model, &error);
    g_assert_no_error (error);
    job_add (muster_job_init_group (self->job), job_ops_task ("init", nodes[i], 0, "init", NULL));
    job_add (muster_job_epoch_group (self->job), job_ops_task ("read", nodes[i], 3, "read", NULL));
    job_add (muster_job_download_group (self->job),
             job_ops_task ("download", nodes[i], 0, "download", NULL));
  }
  (void)muster_job_add_stop_tensor (self->job, nodes[0], "finished:0", &error);
  g_assert_no_error (error);
  (void)muster_cluster_open (self->cluster, 10 * MUSTER_SECOND, NULL, &error);
  g_assert_no_error (error);
}

void
job_set_up (JobFixture *self, const char *const *nodes)
{
  job_set_up_on (self, nodes, NULL);
}

void
job_set_up_on (JobFixture *self, const char *const *nodes, MusterStorage *storage)
{
  *self = (JobFixture){0};
  g_mutex_init (&self->lock);
  self->directory = g_strdup (muster_test_tmpdir ());
  self->diary = g_string_new (NULL);
  self->masters = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; nodes[i]; i++)
    g_ptr_array_add (self->masters, muster_local_master_new_with (storage, 0));
  make_job (self, nodes);
}

void
job_begin_again (JobFixture *self, const char *const *nodes, gboolean same_masters)
{
  g_clear_object (&self->cluster);
  g_clear_object (&self->job);
  for (guint i = 0; !same_masters && nodes[i] != NULL; i++) {
    g_object_unref (self->masters->pdata[i]);
    self->masters->pdata[i] = muster_local_master_new ();
  }
  make_job (self, nodes);
}

void
job_tear_down (JobFixture *self)
{
  g_clear_object (&self->job);
  g_clear_object (&self->cluster);
  g_clear_object (&self->metadata);
  g_ptr_array_unref (self->masters);
  g_string_free (self->diary, TRUE);
  g_free (self->directory);
  g_mutex_clear (&self->lock);
}

/* --- looking --- */

gint64
job_value (JobFixture *self, const char *node, const char *variable)
{
  MusterClusterNode *it = muster_cluster_node (self->cluster, node);
  g_autofree char *tensor = g_strconcat (variable, "/read:0", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) value =
      muster_session_fetch (it->session, tensor, MUSTER_WAIT_FOREVER, NULL, &error);

  if (value == NULL) {
    MUSTER_FAIL ("%s of %s: %s", variable, node, error->message);
    return G_MININT64;
  }
  return *(const gint64 *)muster_tensor_data (value);
}

gboolean
job_has_file (JobFixture *self, const char *name)
{
  g_autofree char *file = g_strconcat (name, ".index", NULL);
  g_autofree char *path = g_build_filename (self->directory, file, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}
