// SPDX-License-Identifier: Apache-2.0
#include "tests/train/monitored_fixture.h"

#include "tests/doubles/small_model.h"

static const MusterSmallVariable variables[] = {{"v", MUSTER_FLOAT, 1, {2}},
                                                {"global_step", MUSTER_INT64, 0, {0}}};

Monitored
monitored_set_up (void)
{
  Monitored self = {.clock = muster_fake_clock_new (), .cancellable = g_cancellable_new ()};
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (variables, 2, 5);
  g_autoptr (GError) error = NULL;
  self.master = muster_fake_master_new (self.clock);
  self.scaffold = muster_scaffold_new (meta_graph, &error);
  g_assert_no_error (error);
  MusterSessionManagerOptions options = {.clock = MUSTER_CLOCK (self.clock)};
  self.manager =
      muster_session_manager_new (muster_scaffold_graph (self.scaffold), &options, &error);
  g_assert_no_error (error);
  self.hooks = g_ptr_array_new_with_free_func (g_object_unref);
  return self;
}

static gboolean
read_step (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
           MusterTensor **value, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  *value = muster_tensor_new_int64 (((Monitored *)user_data)->step);
  return TRUE;
}

static gboolean
read_loss (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
           MusterTensor **value, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  *value = muster_tensor_new_float ((float)((Monitored *)user_data)->step);
  return TRUE;
}

static gboolean
advance (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
         MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  ((Monitored *)user_data)->step++;
  return TRUE;
}

static gboolean
start_over (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
            MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  if (!((Monitored *)user_data)->keeps_step)
    ((Monitored *)user_data)->step = 0;
  return TRUE;
}

void
monitored_script (Monitored *self)
{
  muster_fake_master_op_calls (self->master, "muster/init", start_over, self);
  muster_fake_master_op_calls (self->master, "global_step", read_step, self);
  muster_fake_master_op_calls (self->master, "loss", read_loss, self);
  muster_fake_master_op_calls (self->master, "train", advance, self);
  self->options = (MusterMonitoredSessionOptions){.scaffold = self->scaffold,
                                                  .master = MUSTER_MASTER (self->master),
                                                  .manager = self->manager,
                                                  .clock = MUSTER_CLOCK (self->clock)};
}

void
monitored_tear_down (Monitored *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->hooks, g_ptr_array_unref);
  g_clear_object (&self->manager);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->master);
  g_clear_object (&self->clock);
  g_clear_object (&self->cancellable);
}

void
monitored_add (Monitored *self, MusterHook *hook)
{
  g_ptr_array_add (self->hooks, hook);
}

gboolean
monitored_open (Monitored *self, GError **error)
{
  self->options.hooks = (MusterHook *const *)self->hooks->pdata;
  self->options.n_hooks = self->hooks->len;
  self->session = muster_monitored_session_new (&self->options, NULL, self->cancellable, error);
  return self->session != NULL;
}

gboolean
monitored_train (Monitored *self, float *loss, GError **error)
{
  static const char *const fetches[] = {"loss:0"}, *const targets[] = {"train"};
  MusterStep step = {.fetches = fetches, .n_fetches = 1, .targets = targets, .n_targets = 1};
  g_autoptr (MusterTensor) value = NULL;
  if (!muster_monitored_session_run (self->session, &step, &value, NULL, error))
    return FALSE;
  if (loss != NULL)
    *loss = *(const float *)muster_tensor_data (value);
  return TRUE;
}

/* --- the hook with a diary --- */

typedef struct {
  char *verb;
  int first, n, calls;
  MusterError code;
} Failure;

#define MUSTER_TYPE_DIARY_HOOK (muster_diary_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterDiaryHook, muster_diary_hook, MUSTER, DIARY_HOOK, MusterHook)

struct _MusterDiaryHook {
  MusterHook parent;
  char *name;
  GString *diary;
  GArray *failures;
  char *fetch;
  guint fetched;
  double value;
  char *feed_name;
  MusterTensor *feed;
  GBytes *options;
  int stop_at, n_runs;
};

G_DEFINE_FINAL_TYPE (MusterDiaryHook, muster_diary_hook, MUSTER_TYPE_HOOK)

static gboolean
note (MusterHook *hook, const char *verb, GError **error)
{
  MusterDiaryHook *self = MUSTER_DIARY_HOOK (hook);
  g_string_append_printf (self->diary, "%s%s.%s", self->diary->len > 0 ? " " : "", self->name,
                          verb);
  for (guint i = 0; i < self->failures->len; i++) {
    Failure *failure = &g_array_index (self->failures, Failure, i);
    if (strcmp (failure->verb, verb) != 0)
      continue;
    failure->calls++;
    if (failure->calls < failure->first || failure->calls >= failure->first + failure->n)
      continue;
    g_set_error (error, MUSTER_ERROR, (gint)failure->code, "%s failed", verb);
    return FALSE;
  }
  return TRUE;
}

static gboolean
diary_begin (MusterHook *hook, MusterScaffold *scaffold G_GNUC_UNUSED, GError **error)
{
  return note (hook, "begin", error);
}

static gboolean
diary_after_create (MusterHook *hook, MusterSession *session G_GNUC_UNUSED,
                    MusterCoordinator *coordinator G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                    GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  return note (hook, "create", error);
}

static gboolean
diary_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterDiaryHook *self = MUSTER_DIARY_HOOK (hook);
  if (self->fetch != NULL)
    self->fetched = muster_run_context_fetch (context, self->fetch);
  if (self->feed != NULL)
    muster_run_context_feed (context, self->feed_name, self->feed);
  if (self->options != NULL)
    muster_run_context_add_options (context, self->options);
  return note (hook, "before", error);
}

static gboolean
diary_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterDiaryHook *self = MUSTER_DIARY_HOOK (hook);
  if (self->fetch != NULL)
    self->value =
        *(const float *)muster_tensor_data (muster_run_context_value (context, self->fetched));
  if (++self->n_runs == self->stop_at)
    muster_run_context_request_stop (context);
  return note (hook, "after", error);
}

static gboolean
diary_end (MusterHook *hook, MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  return note (hook, "end", error);
}

static void
diary_on_error (MusterHook *hook, const GError *error G_GNUC_UNUSED)
{
  (void)note (hook, "error", NULL);
}

static void
failure_clear (gpointer data)
{
  g_free (((Failure *)data)->verb);
}

static void
diary_finalize (GObject *object)
{
  MusterDiaryHook *self = MUSTER_DIARY_HOOK (object);
  g_free (self->name);
  g_free (self->fetch);
  g_free (self->feed_name);
  muster_tensor_unref (self->feed);
  g_clear_pointer (&self->options, g_bytes_unref);
  g_array_unref (self->failures);
  G_OBJECT_CLASS (muster_diary_hook_parent_class)->finalize (object);
}

static void
muster_diary_hook_class_init (MusterDiaryHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = diary_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = diary_begin;
  MUSTER_HOOK_CLASS (klass)->after_create_session = diary_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = diary_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = diary_after_run;
  MUSTER_HOOK_CLASS (klass)->end = diary_end;
  MUSTER_HOOK_CLASS (klass)->on_error = diary_on_error;
}

static void
muster_diary_hook_init (MusterDiaryHook *self)
{
  self->failures = g_array_new (FALSE, FALSE, sizeof (Failure));
  g_array_set_clear_func (self->failures, failure_clear);
}

MusterHook *
diary_hook_new (const char *name, GString *diary)
{
  MusterDiaryHook *self = g_object_new (MUSTER_TYPE_DIARY_HOOK, NULL);
  self->name = g_strdup (name);
  self->diary = diary;
  return MUSTER_HOOK (self);
}

void
diary_hook_fail (MusterHook *hook, const char *verb, int first, int n, MusterError code)
{
  Failure failure = {.verb = g_strdup (verb), .first = first, .n = n, .code = code};
  g_array_append_val (MUSTER_DIARY_HOOK (hook)->failures, failure);
}

void
diary_hook_fetch (MusterHook *hook, const char *tensor)
{
  MUSTER_DIARY_HOOK (hook)->fetch = g_strdup (tensor);
}

void
diary_hook_options (MusterHook *hook, GBytes *options)
{
  MUSTER_DIARY_HOOK (hook)->options = g_bytes_ref (options);
}

void
diary_hook_feed (MusterHook *hook, const char *tensor, MusterTensor *value)
{
  g_clear_pointer (&MUSTER_DIARY_HOOK (hook)->feed_name, g_free);
  g_clear_pointer (&MUSTER_DIARY_HOOK (hook)->feed, muster_tensor_unref);
  MUSTER_DIARY_HOOK (hook)->feed_name = g_strdup (tensor);
  MUSTER_DIARY_HOOK (hook)->feed = muster_tensor_ref (value);
}

void
diary_hook_stop (MusterHook *hook, int at_run)
{
  MUSTER_DIARY_HOOK (hook)->stop_at = at_run;
}

double
diary_hook_value (MusterHook *hook)
{
  return MUSTER_DIARY_HOOK (hook)->value;
}
