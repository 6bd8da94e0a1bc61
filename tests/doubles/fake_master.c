// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_master.h"

#include "tests/doubles/fake_session_private.h"

typedef enum { SETS, REPORTS, YIELDS, CALLS } DeedKind;

typedef struct {
  DeedKind kind;
  char **names;        /* (owned) (nullable) SETS, REPORTS */
  MusterTensor *value; /* (owned) (nullable) YIELDS */
  MusterFakeOp func;   /* CALLS */
  gpointer user_data;
} Deed;

typedef struct {
  guint first;
  guint n_times;
  MusterError code;
  char *message; /* (owned) */
} Failure;

/* What the test said of "create", "close", "watch" or an op. */
typedef struct {
  GArray *deeds;    /* (owned) (element-type Deed) */
  GArray *failures; /* (owned) (element-type Failure) */
  gint64 cost_us;
  guint n_calls;
  GBytes *options; /* (owned) (nullable) of the last step */
} Script;

struct _MusterFakeMaster {
  GObject parent;
  char *target;                      /* (owned) (nullable) */
  MusterFakeClock *clock;            /* (owned) */
  MusterFakeChiefRegistry *registry; /* (owned) */
  GMutex lock;
  /* guarded by lock */
  GHashTable *scripts;   /* (owned) name -> Script */
  GHashTable *variables; /* (owned) a set of names that have a value */
  GHashTable *fed;       /* (owned) name -> MusterTensor */
  GString *diary;        /* (owned) */
  guint life;            /* a restart begins another */
  guint n_created;
  guint n_open;
  guint most_open;
  gboolean watchable;
  gint64 down_until_us; /* on the clock, from its start */
  gboolean was_down;    /* as far as anybody has noticed */
  gint64 early_us;
};

static void muster_fake_master_master_init (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterFakeMaster, muster_fake_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER,
                                                      muster_fake_master_master_init))

static void
deed_clear (gpointer data)
{
  Deed *deed = data;
  g_strfreev (deed->names);
  muster_tensor_unref (deed->value);
}

static void
failure_clear (gpointer data)
{
  g_free (((Failure *)data)->message);
}

static void
script_free (gpointer data)
{
  Script *script = data;
  g_array_unref (script->deeds);
  g_array_unref (script->failures);
  g_clear_pointer (&script->options, g_bytes_unref);
  g_free (script);
}

/* "ready:0" -> "ready". */
char *
muster_fake_node_of (const char *name)
{
  const char *colon = strchr (name, ':');
  return colon != NULL ? g_strndup (name, (gsize)(colon - name)) : g_strdup (name);
}

static Script *
script_locked (MusterFakeMaster *self, const char *what)
{
  g_autofree char *node = muster_fake_node_of (what);
  Script *script = g_hash_table_lookup (self->scripts, node);

  if (script == NULL) {
    script = g_new0 (Script, 1);
    script->deeds = g_array_new (FALSE, FALSE, sizeof (Deed));
    script->failures = g_array_new (FALSE, FALSE, sizeof (Failure));
    g_array_set_clear_func (script->deeds, deed_clear);
    g_array_set_clear_func (script->failures, failure_clear);
    g_hash_table_insert (self->scripts, g_steal_pointer (&node), script);
  }
  return script;
}

MusterFakeMaster *
muster_fake_master_new (MusterFakeClock *clock)
{
  MusterFakeMaster *self = g_object_new (MUSTER_TYPE_FAKE_MASTER, NULL);
  self->clock = g_object_ref (clock);
  self->registry = muster_fake_chief_registry_new (clock);
  return self;
}

static void
add_deed (MusterFakeMaster *self, const char *op, Deed deed)
{
  g_mutex_lock (&self->lock);
  g_array_append_val (script_locked (self, op)->deeds, deed);
  g_mutex_unlock (&self->lock);
}

static char **
take_names (va_list args)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  const char *name;
  while ((name = va_arg (args, const char *)) != NULL)
    g_strv_builder_add (builder, name);
  return g_strv_builder_end (builder);
}

void
muster_fake_master_op_sets (MusterFakeMaster *self, const char *op, ...)
{
  va_list args;
  va_start (args, op);
  add_deed (self, op, (Deed){.kind = SETS, .names = take_names (args)});
  va_end (args);
}

void
muster_fake_master_op_reports (MusterFakeMaster *self, const char *op, ...)
{
  va_list args;
  va_start (args, op);
  add_deed (self, op, (Deed){.kind = REPORTS, .names = take_names (args)});
  va_end (args);
}

void
muster_fake_master_op_yields (MusterFakeMaster *self, const char *op, MusterTensor *value)
{
  add_deed (self, op,
            (Deed){.kind = YIELDS, .value = value != NULL ? muster_tensor_ref (value) : NULL});
}

void
muster_fake_master_op_calls (MusterFakeMaster *self, const char *op, MusterFakeOp func,
                             gpointer user_data)
{
  add_deed (self, op, (Deed){.kind = CALLS, .func = func, .user_data = user_data});
}

void
muster_fake_master_fail (MusterFakeMaster *self, const char *what, guint first, guint n_times,
                         MusterError code, const char *message)
{
  Failure failure = {first, n_times, code, g_strdup (message)};
  g_mutex_lock (&self->lock);
  g_array_append_val (script_locked (self, what)->failures, failure);
  g_mutex_unlock (&self->lock);
}

void
muster_fake_master_forgive (MusterFakeMaster *self, const char *what)
{
  g_mutex_lock (&self->lock);
  g_array_set_size (script_locked (self, what)->failures, 0);
  g_mutex_unlock (&self->lock);
}

void
muster_fake_master_set_target (MusterFakeMaster *self, const char *target)
{
  g_free (self->target);
  self->target = g_strdup (target);
}

void
muster_fake_master_set_cost (MusterFakeMaster *self, const char *what, gint64 cost_us)
{
  g_mutex_lock (&self->lock);
  script_locked (self, what)->cost_us = cost_us;
  g_mutex_unlock (&self->lock);
}

void
muster_fake_master_set_early (MusterFakeMaster *self, gint64 early_us)
{
  g_mutex_lock (&self->lock);
  self->early_us = early_us;
  g_mutex_unlock (&self->lock);
}

void
muster_fake_master_set_variable (MusterFakeMaster *self, const char *name)
{
  g_mutex_lock (&self->lock);
  g_hash_table_add (self->variables, g_strdup (name));
  g_mutex_unlock (&self->lock);
}

gboolean
muster_fake_master_has_variable (MusterFakeMaster *self, const char *name)
{
  g_mutex_lock (&self->lock);
  gboolean has_value = g_hash_table_contains (self->variables, name);
  g_mutex_unlock (&self->lock);
  return has_value;
}

void
muster_fake_master_restart (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  self->life++;
  self->n_open = 0;
  g_hash_table_remove_all (self->variables);
  g_mutex_unlock (&self->lock);
  muster_fake_chief_registry_forget (self->registry);
}

void
muster_fake_master_down_until (MusterFakeMaster *self, gint64 after_us)
{
  g_mutex_lock (&self->lock);
  self->down_until_us = after_us;
  g_mutex_unlock (&self->lock);
}

void
muster_fake_master_set_watchable (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  self->watchable = TRUE;
  g_mutex_unlock (&self->lock);
}

guint
muster_fake_master_n_calls (MusterFakeMaster *self, const char *what)
{
  g_mutex_lock (&self->lock);
  guint n = script_locked (self, what)->n_calls;
  g_mutex_unlock (&self->lock);
  return n;
}

guint
muster_fake_master_n_open (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  guint n = self->n_open;
  g_mutex_unlock (&self->lock);
  return n;
}

guint
muster_fake_master_most_open (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  guint n = self->most_open;
  g_mutex_unlock (&self->lock);
  return n;
}

char *
muster_fake_master_diary (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  char *diary = g_strdup (self->diary->str);
  g_mutex_unlock (&self->lock);
  return diary;
}

MusterTensor *
muster_fake_master_fed (MusterFakeMaster *self, const char *name)
{
  g_mutex_lock (&self->lock);
  MusterTensor *tensor = g_hash_table_lookup (self->fed, name);
  g_mutex_unlock (&self->lock);
  return tensor;
}

GBytes *
muster_fake_master_options_of (MusterFakeMaster *self, const char *op)
{
  g_mutex_lock (&self->lock);
  GBytes *options = script_locked (self, op)->options;
  g_mutex_unlock (&self->lock);
  return options;
}

/* What its sessions use. */

static void
note_locked (MusterFakeMaster *self, const char *format, const char *what)
{
  if (self->diary->len > 0)
    g_string_append (self->diary, ", ");
  g_string_append_printf (self->diary, format, what);
}

static const Failure nobody_there = {1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                                     (char *)"connection refused"};

static const Failure *
failure_locked (Script *script)
{
  for (guint i = 0; i < script->failures->len; i++) {
    const Failure *failure = &g_array_index (script->failures, Failure, i);
    if (script->n_calls >= failure->first && script->n_calls - failure->first < failure->n_times)
      return failure;
  }
  return NULL;
}

/* Takes the call's time. */
static gboolean
pass_time (MusterFakeMaster *self, const char *what, gint64 cost_us, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  MusterClock *clock = MUSTER_CLOCK (self->clock);
  gint64 until_us = muster_deadline_after (muster_clock_now_us (clock), cost_us);
  g_mutex_lock (&self->lock);
  gint64 end_us = deadline_us == MUSTER_WAIT_FOREVER ? deadline_us : deadline_us - self->early_us;
  g_mutex_unlock (&self->lock);

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (until_us <= deadline_us)
    return muster_clock_wait_until (clock, until_us, cancellable, error);
  if (!muster_clock_wait_until (clock, end_us, cancellable, error))
    return FALSE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "%s took too long", what);
  return FALSE;
}

static gboolean
is_down_locked (MusterFakeMaster *self)
{
  gboolean is_down = muster_fake_clock_elapsed_us (self->clock) < self->down_until_us;
  self->was_down |= is_down;
  return is_down;
}

static MusterServerState
fake_reach (MusterMaster *master, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED)
{
  MusterFakeMaster *self = MUSTER_FAKE_MASTER (master);
  MusterServerState state = MUSTER_SERVER_DOWN;
  g_mutex_lock (&self->lock);
  script_locked (self, "reach")->n_calls++;
  if (!is_down_locked (self)) {
    state = self->was_down ? MUSTER_SERVER_CHANGED : MUSTER_SERVER_UP;
    self->was_down = FALSE;
  }
  g_mutex_unlock (&self->lock);
  return state;
}

gboolean
muster_fake_master_ask (MusterFakeMaster *self, const char *what, const char *note,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_mutex_lock (&self->lock);
  Script *script = script_locked (self, what);
  script->n_calls++;
  note_locked (self, note, what);
  gint64 cost_us = script->cost_us;
  const Failure *failure = is_down_locked (self) ? &nobody_there : failure_locked (script);
  MusterError code = failure != NULL ? failure->code : 0;
  g_autofree char *message = failure != NULL ? g_strdup (failure->message) : NULL;
  g_mutex_unlock (&self->lock);

  if (!pass_time (self, what, cost_us, deadline_us, cancellable, error))
    return FALSE;
  if (message != NULL)
    g_set_error_literal (error, MUSTER_ERROR, code, message);
  return message == NULL;
}

void
muster_fake_master_keep_step (MusterFakeMaster *self, const char *op, const MusterStep *step)
{
  g_mutex_lock (&self->lock);
  Script *script = script_locked (self, op);
  g_clear_pointer (&script->options, g_bytes_unref);
  if (step->options != NULL)
    script->options = g_bytes_ref (step->options);
  for (gsize i = 0; i < step->n_feeds; i++)
    g_hash_table_insert (self->fed, muster_fake_node_of (step->feeds[i].name),
                         muster_tensor_ref (step->feeds[i].tensor));
  g_mutex_unlock (&self->lock);
}

static MusterTensor *
missing_locked (MusterFakeMaster *self, char **names)
{
  g_autoptr (GPtrArray) missing = g_ptr_array_new ();
  for (char **name = names; *name; name++)
    if (!g_hash_table_contains (self->variables, *name))
      g_ptr_array_add (missing, *name);
  g_ptr_array_add (missing, NULL);
  return muster_tensor_new_strv ((const char *const *)missing->pdata);
}

static GArray *
copy_deeds_locked (MusterFakeMaster *self, const char *op)
{
  GArray *deeds = script_locked (self, op)->deeds;
  GArray *copy = g_array_new (FALSE, FALSE, sizeof (Deed));
  g_array_append_vals (copy, deeds->data, deeds->len);
  return copy;
}

static gboolean
do_deed (MusterFakeMaster *self, const Deed *deed, const MusterStep *step, MusterTensor **value,
         GError **error)
{
  if (deed->kind == CALLS)
    return deed->func (self, step, value, deed->user_data, error);

  g_mutex_lock (&self->lock);
  if (deed->kind != SETS)
    g_clear_pointer (value, muster_tensor_unref);
  if (deed->kind == SETS)
    for (char **name = deed->names; *name; name++)
      g_hash_table_add (self->variables, g_strdup (*name));
  else if (deed->kind == REPORTS)
    *value = missing_locked (self, deed->names);
  else if (deed->value != NULL)
    *value = muster_tensor_ref (deed->value);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

gboolean
muster_fake_master_compute (MusterFakeMaster *self, const char *op, const MusterStep *step,
                            MusterTensor **value, GError **error)
{
  g_autoptr (MusterTensor) result = NULL;
  g_mutex_lock (&self->lock);
  g_autoptr (GArray) deeds = copy_deeds_locked (self, op);
  g_mutex_unlock (&self->lock);

  if (deeds->len == 0) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "No op '%s' in the graph", op);
    return FALSE;
  }
  for (guint i = 0; i < deeds->len; i++)
    if (!do_deed (self, &g_array_index (deeds, Deed, i), step, &result, error))
      return FALSE;
  *value = g_steal_pointer (&result);
  return TRUE;
}

gboolean
muster_fake_master_is_alive (MusterFakeMaster *self, guint life)
{
  g_mutex_lock (&self->lock);
  gboolean alive = self->life == life;
  g_mutex_unlock (&self->lock);
  return alive;
}

void
muster_fake_master_session_ended (MusterFakeMaster *self, guint life)
{
  g_mutex_lock (&self->lock);
  if (self->life == life)
    self->n_open--;
  g_mutex_unlock (&self->lock);
}

gboolean
muster_fake_master_is_watchable (MusterFakeMaster *self)
{
  g_mutex_lock (&self->lock);
  gboolean watchable = self->watchable;
  g_mutex_unlock (&self->lock);
  return watchable;
}

MusterFakeClock *
muster_fake_master_clock (MusterFakeMaster *self)
{
  return self->clock;
}

MusterFakeChiefRegistry *
muster_fake_master_registry (MusterFakeMaster *self)
{
  return self->registry;
}

static MusterSession *
muster_fake_master_create_session (MusterMaster *master, MusterGraph *graph, GBytes *config,
                                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterFakeMaster *self = MUSTER_FAKE_MASTER (master);
  if (!muster_fake_master_ask (self, "create", "%s", deadline_us, cancellable, error))
    return NULL;
  muster_fake_master_keep_step (self, "create", &(MusterStep){.options = config});

  g_mutex_lock (&self->lock);
  guint life = self->life;
  g_autofree char *handle = g_strdup_printf ("fake-%u", ++self->n_created);
  self->n_open++;
  self->most_open = MAX (self->most_open, self->n_open);
  g_mutex_unlock (&self->lock);

  MusterSession *session = muster_fake_session_new (self, life);
  muster_session_set_identity (session, handle, graph);
  return session;
}

static const char *
muster_fake_master_target (MusterMaster *master)
{
  MusterFakeMaster *self = MUSTER_FAKE_MASTER (master);
  return self->target != NULL ? self->target : "fake";
}

static void
muster_fake_master_finalize (GObject *object)
{
  MusterFakeMaster *self = MUSTER_FAKE_MASTER (object);
  muster_fake_chief_registry_free (self->registry);
  g_free (self->target);
  g_object_unref (self->clock);
  g_hash_table_unref (self->scripts);
  g_hash_table_unref (self->variables);
  g_hash_table_unref (self->fed);
  g_string_free (self->diary, TRUE);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_fake_master_parent_class)->finalize (object);
}

static void
muster_fake_master_class_init (MusterFakeMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_fake_master_finalize;
}

static void
muster_fake_master_init (MusterFakeMaster *self)
{
  g_mutex_init (&self->lock);
  self->scripts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, script_free);
  self->variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->fed =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)muster_tensor_unref);
  self->diary = g_string_new (NULL);
}

static void
muster_fake_master_master_init (MusterMasterInterface *iface)
{
  iface->has_graph = TRUE;
  iface->create_session = muster_fake_master_create_session;
  iface->reach = fake_reach;
  iface->target = muster_fake_master_target;
}

MusterFakeSetup
muster_fake_setup_new (MusterGraph *graph)
{
  g_autoptr (GError) error = NULL;
  MusterFakeSetup self = {.clock = muster_fake_clock_new ()};
  self.master = muster_fake_master_new (self.clock);
  self.session = muster_master_create_session (MUSTER_MASTER (self.master), graph, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  return self;
}

void
muster_fake_setup_clear (MusterFakeSetup *self)
{
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  g_clear_object (&self->clock);
}
