// SPDX-License-Identifier: Apache-2.0
/* Why a wait waits: a list of components in the order in which they must be well, computed from
 * one situation; texts and hints for each. */
#include "ready/situation_private.h"

#include "base/gateway_private.h"
#include "base/names_private.h"
#include "graph/device_name_private.h"
#include "ready/backoff.h"
#include "ready/chief_gate_private.h"
#include "ready/member_private.h"

#include <string.h>

#define OWNERS_SHOWN       6 /* the longest lists first; the rest as "…" */
#define OWNERS_WITH_NAMES  2
#define NAMES_SHOWN        3
#define NAMES_SHOWN_OF_ONE 2 /* if there are several owners */

/* The missing variables of one task. */
typedef struct {
  char *owner; /* (owned) "" for none */
  guint n;
  const char *first[NAMES_SHOWN]; /* borrowed */
} Group;

static void
group_free (gpointer data)
{
  Group *self = data;
  g_free (self->owner);
  g_free (self);
}

/* The devices of the model's variables by name; NULL if none has one. */
static GHashTable *
devices_of (const MusterSituation *situation)
{
  GHashTable *devices = NULL;
  for (gsize i = 0; i < situation->n_variables; i++) {
    const MusterVariableInfo *info = &situation->variables[i];
    if (info->device == NULL || *info->device == '\0')
      continue;
    if (devices == NULL)
      devices = g_hash_table_new (g_str_hash, g_str_equal);
    g_hash_table_insert (devices, (gpointer)info->name, (gpointer)info->device);
  }
  return devices;
}

/* A ready op may name the tensor instead of the variable: "v:0". */
static const char *
device_of (GHashTable *devices, const char *name)
{
  const char *device = g_hash_table_lookup (devices, name);
  const char *colon = device == NULL ? strrchr (name, ':') : NULL;
  if (colon == NULL)
    return device;
  g_autofree char *op = g_strndup (name, (gsize)(colon - name));
  return g_hash_table_lookup (devices, op);
}

static int
by_size (gconstpointer a, gconstpointer b)
{
  const Group *x = *(Group *const *)a, *y = *(Group *const *)b;
  return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp (x->owner, y->owner);
}

/* (element-type Group) */
static GPtrArray *
group (const MusterSituation *situation, char **names)
{
  GPtrArray *groups = g_ptr_array_new_with_free_func (group_free);
  g_autoptr (GHashTable) by_owner = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) devices = devices_of (situation);
  for (char **name = names; *name != NULL; name++) {
    const char *device = devices == NULL ? NULL : device_of (devices, *name);
    g_autofree char *owner = device != NULL ? muster_device_task (device) : NULL;
    Group *it = g_hash_table_lookup (by_owner, owner != NULL ? owner : "");
    if (it == NULL) {
      it = g_new0 (Group, 1);
      it->owner = owner != NULL ? g_steal_pointer (&owner) : g_strdup ("");
      g_hash_table_insert (by_owner, it->owner, it);
      g_ptr_array_add (groups, it);
    }
    if (it->n < NAMES_SHOWN)
      it->first[it->n] = *name;
    it->n++;
  }
  g_ptr_array_sort (groups, by_size);
  return groups;
}

static void
append_names (GString *text, const Group *it, guint at_most)
{
  for (guint i = 0; i < MIN (it->n, at_most); i++)
    g_string_append_printf (text, "%s%s", i == 0 ? "" : ", ", it->first[i]);
  if (it->n > at_most)
    g_string_append (text, ", …");
}

/* "missing 92: ps:0 60 (dense_1/kernel, dense_1/bias, …), ps:1 32 (…)" */
static char *
describe (GPtrArray *groups, guint n_missing)
{
  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "missing %u: ", n_missing);
  const Group *largest = g_ptr_array_index (groups, 0);
  if (groups->len == 1 && *largest->owner == '\0') {
    append_names (text, largest, NAMES_SHOWN);
    return g_string_free (text, FALSE);
  }
  guint names_shown = groups->len == 1 ? NAMES_SHOWN : NAMES_SHOWN_OF_ONE;
  for (guint i = 0; i < MIN (groups->len, OWNERS_SHOWN); i++) {
    const Group *it = g_ptr_array_index (groups, i);
    g_string_append_printf (text, "%s%s %u", i == 0 ? "" : ", ",
                            *it->owner != '\0' ? it->owner : "on no task", it->n);
    if (i >= OWNERS_WITH_NAMES)
      continue;
    g_string_append (text, " (");
    append_names (text, it, names_shown);
    g_string_append_c (text, ')');
  }
  if (groups->len > OWNERS_SHOWN)
    g_string_append (text, ", …");
  return g_string_free (text, FALSE);
}

static void
describe_missing (MusterReason *self, const MusterSituation *situation)
{
  char **names = situation->readiness->missing;
  g_autoptr (GPtrArray) groups = group (situation, names);
  const Group *largest = g_ptr_array_index (groups, 0);
  self->state = "missing";
  self->n_missing = g_strv_length (names);
  /* a program's own ready op may check more than the model's variables */
  if (self->n_total < self->n_missing)
    self->n_total = 0;
  self->names = muster_names_pack (names, self->n_missing);
  self->text = describe (groups, self->n_missing);
  if (groups->len == 1 && *largest->owner != '\0')
    self->owner = g_strdup (largest->owner);
}

/* The master is there, but a store that can't be reached for now holds the chief up. */
static const char *
why_not_asked (const GError *failure)
{
  return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE) ? failure->message
                                                                            : NULL;
}

/* The reason for the variables: the number of missing ones, their tasks and names. The caller sets
 * since_us. (transfer full) */
static MusterReason *
reason_for_variables (const MusterSituation *situation)
{
  const MusterReadiness *readiness = situation->readiness;
  MusterReason *self = g_new0 (MusterReason, 1);
  self->component = "variables";
  self->n_total = (guint)MIN (situation->n_variables, G_MAXUINT);
  if (readiness != NULL && !readiness->is_ready && readiness->missing != NULL &&
      readiness->missing[0] != NULL) {
    describe_missing (self, situation);
    return self;
  }
  if (readiness != NULL && readiness->is_ready) {
    self->state = "initialised";
    self->is_well = TRUE;
    self->text = self->n_total > 0 ? g_strdup_printf ("all %u initialised", self->n_total)
                                   : g_strdup ("initialised");
    return self;
  }
  const char *why = readiness == NULL                  ? why_not_asked (situation->failure)
                    : readiness->why_not_ready != NULL ? readiness->why_not_ready
                                                       : readiness->why_gate;
  self->state = "unknown";
  self->text = g_strdup (why != NULL ? why : "not known yet");
  return self;
}

struct _MusterReasons {
  MusterClock *clock;   /* (owned) */
  GPtrArray *list;      /* (owned) (element-type MusterReason) */
  guint64 version;      /* of the last situation; 0: none */
  gint64 epoch;         /* of the last chief */
  gboolean was_reached; /* the server has answered before */
};

static MusterReason *
reason_new (const char *component, const char *state, gboolean is_well, char *text)
{
  MusterReason *self = g_new0 (MusterReason, 1);
  self->component = component;
  self->state = state;
  self->is_well = is_well;
  self->text = text;
  return self;
}

void
muster_reason_free (MusterReason *self)
{
  if (self == NULL)
    return;
  g_free (self->owner);
  g_free (self->text);
  g_free (self->last_error);
  g_free (self->hint);
  g_free (self->names);
  g_free (self);
}

MusterReason *
muster_reason_copy (const MusterReason *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterReason *copy = g_memdup2 (self, sizeof *self);
  copy->owner = g_strdup (self->owner);
  copy->text = g_strdup (self->text);
  copy->last_error = g_strdup (self->last_error);
  copy->hint = g_strdup (self->hint);
  copy->names = self->names != NULL ? muster_names_pack (self->names, self->n_missing) : NULL;
  return copy;
}

G_DEFINE_BOXED_TYPE (MusterReason, muster_reason, muster_reason_copy, muster_reason_free)

static gpointer
copy_reason (gconstpointer reason, gpointer data G_GNUC_UNUSED)
{
  return muster_reason_copy (reason);
}

static GPtrArray *
list_new (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify)muster_reason_free);
}

MusterReasons *
muster_reasons_new (MusterClock *clock)
{
  MusterReasons *self = g_new0 (MusterReasons, 1);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->list = list_new ();
  return self;
}

void
muster_reasons_free (MusterReasons *self)
{
  if (self == NULL)
    return;
  g_object_unref (self->clock);
  g_ptr_array_unref (self->list);
  g_free (self);
}

/* The server's state derived from a failure to create a session, if it wasn't diagnosed. A refusal
 * comes from a running server; after a timeout it may not even have been connected. */
static const char *
state_of_failure (const MusterReasons *self, const GError *failure)
{
  if (muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE))
    return self->was_reached ? "lost" : "unreachable";
  if (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return self->was_reached ? "silent" : "unreachable";
  return muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
                 muster_error_is (failure, MUSTER_ERROR_CANCELLED)
             ? "lost"
             : "up";
}

/* "ps:1" of "ps:1: refused". */
static char *
name_of_task (const char *task)
{
  const char *why = strstr (task, ": ");
  return why != NULL ? g_strndup (task, (gsize)(why - task)) : g_strdup (task);
}

/* A master that is a child process: there is no network in between. */
static gboolean
is_child (const char *target)
{
  return g_str_equal (target, "tensorflow") || g_str_has_prefix (target, "tensorflow:");
}

/* The engine in this process, or such a child: no other process reaches it. */
static gboolean
is_own (const char *target)
{
  return target != NULL && (g_str_equal (target, "local") || is_child (target));
}

/* The task's `muster serve` runs its gateway. */
static char *
silent_gateway_hint (const char *state)
{
  return g_strdup (strcmp (state, "refused") == 0
                       ? "start this task's `muster serve --master=tensorflow` again"
                       : "see the log of this task's `muster serve --master=tensorflow`: "
                         "TensorFlow may take two "
                         "minutes to start; else restart it");
}

static char *
server_hint (const char *state, const char *target, const MusterSituation *situation)
{
  const char *const *tasks = situation->tasks;
  if (situation->diagnosis != NULL &&
      g_str_has_prefix (situation->diagnosis, MUSTER_GATEWAY_DIAGNOSIS))
    return silent_gateway_hint (state);
  if (is_child (target) && muster_error_is (situation->failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return g_strdup ("raise --timeout: TensorFlow may take two minutes to start while its library "
                     "isn't cached in memory");
  if (strcmp (state, "silent") == 0 && tasks != NULL && tasks[0] != NULL) {
    g_autofree char *task = name_of_task (tasks[0]);
    return g_strdup_printf ("start %s: the master waits for all its tasks", task);
  }
  if (strcmp (state, "not-resolved") == 0)
    return g_strdup_printf ("check the host name in %s", target);
  if (strcmp (state, "refused") == 0 && (situation->chief != NULL || situation->has_cluster))
    return g_strdup_printf ("start this task's own server, %s, with `muster serve "
                            "--master=tensorflow` or as a tf.distribute.Server",
                            target);
  if (strcmp (state, "refused") == 0)
    return g_str_has_prefix (target, "unix:")
               ? g_strdup_printf ("`muster serve --listen=%s` starts a master", target)
               : g_strdup ("`muster serve --listen=HOST:PORT` starts a master");
  if (strcmp (state, "tls-failed") == 0)
    return g_str_has_prefix (target, "grpcs://")
               ? g_strdup_printf ("--master=grpc://%s", target + strlen ("grpcs://"))
               : g_strdup_printf ("--master=grpcs://%s", target + strlen ("grpc://"));
  if (strcmp (state, "unreachable") == 0)
    return g_str_has_prefix (target, "unix:")
               ? g_strdup_printf ("check the permissions of %s", target + strlen ("unix:"))
               : g_strdup_printf ("check the address %s and firewalls", target);
  if (strcmp (state, "silent") == 0 && g_str_has_prefix (target, "unix:"))
    return g_strdup ("check that this user may connect (the server's --allow-user)");
  if (strcmp (state, "unavailable") == 0)
    return g_strdup ("a session is created as soon as it is available");
  if (strcmp (state, "silent") == 0)
    return g_strdup_printf ("check that the port is a master's: `muster status %s`", target);
  return g_strdup ("a new session is created when it answers again");
}

/* An attempt that ended at the deadline is less informative than the previous failure. */
static gboolean
is_less_informative (const MusterReasons *self, const MusterSituation *situation)
{
  const MusterReason *before = muster_reasons_find (self->list, "server");
  return situation->server_state == NULL && before != NULL && !before->is_well &&
         muster_error_is (situation->failure, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

static void
add_server (MusterReasons *self, GPtrArray *list, const MusterSituation *situation)
{
  if (is_less_informative (self, situation)) {
    g_ptr_array_add (list, muster_reason_copy (muster_reasons_find (self->list, "server")));
    return;
  }
  const GError *failure = situation->failure;
  const char *state = situation->server_state != NULL ? situation->server_state
                      : failure == NULL               ? "up"
                                                      : state_of_failure (self, failure);
  gboolean is_up = strcmp (state, "up") == 0;
  gboolean is_reset = muster_failure_is_reset (failure);
  const char *target = situation->target != NULL ? situation->target : "the master";
  const char *text = is_up                          ? "up"
                     : situation->diagnosis != NULL ? situation->diagnosis
                     : is_reset                     ? MUSTER_RESET_REASON
                     : failure != NULL              ? failure->message
                                                    : state;
  MusterReason *it = reason_new ("server", state, is_up, g_strdup (text));
  const char *scheme = strstr (target, "://");
  it->owner = situation->target == NULL ? NULL : g_strdup (scheme != NULL ? scheme + 3 : target);
  it->last_error = failure == NULL ? NULL : g_strdup (failure->message);
  it->hint = is_up || is_reset ? NULL : server_hint (state, target, situation);
  self->was_reached = self->was_reached || is_up;
  g_ptr_array_add (list, it);
}

static const char *
or_null (const char *text)
{
  return text != NULL && *text != '\0' ? text : NULL;
}

/* "worker:0 at host:4711"; NULL if unknown. */
static char *
chief_name (const MusterAnnouncement *chief)
{
  const char *task = or_null (chief->task), *who = or_null (chief->who);
  if (task != NULL && who != NULL)
    return g_strdup_printf ("%s at %s", task, who);
  return g_strdup (task != NULL ? task : who);
}

static gboolean
waits_for_tasks (const MusterReadiness *readiness)
{
  return readiness != NULL && readiness->keeps_announcements &&
         readiness->n_tasks < readiness->min_tasks;
}

/* A job doesn't start before it has enough tasks, and stands still while it has fewer. A living
 * chief prepares the model even if tasks have left since; they are missing for the training. */
static void
add_job_with_too_few (GPtrArray *list, const MusterSituation *situation)
{
  const MusterReadiness *readiness = situation->readiness;
  const MusterAnnouncement *chief = readiness->chief;
  const guint n_missing = readiness->min_tasks - readiness->n_tasks;
  const gboolean is_preparing =
      chief != NULL && chief->alive && muster_chief_phase_is_preparing (chief->phase);
  MusterReason *it =
      reason_new ("job", "waiting-for-tasks", readiness->is_ready || is_preparing,
                  muster_waiting_for_tasks (readiness->n_tasks, readiness->min_tasks));
  it->owner = chief != NULL ? g_strdup (or_null (chief->model)) : NULL;
  if (!it->is_well && situation->chief != NULL) /* each task has a number of its own */
    it->hint = g_strdup_printf ("start %u more of the cluster's tasks with `muster train --task=…`",
                                n_missing);
  else if (!it->is_well)
    it->hint =
        g_strdup_printf ("start %u more with `muster train --task=auto --master=%s`", n_missing,
                         situation->target != NULL ? situation->target : "TARGET");
  g_ptr_array_add (list, it);
}

static void
add_job (GPtrArray *list, const MusterSituation *situation)
{
  const MusterReadiness *readiness = situation->readiness;
  if (waits_for_tasks (readiness)) {
    add_job_with_too_few (list, situation);
    return;
  }
  if (readiness == NULL || !readiness->keeps_announcements || readiness->chief == NULL)
    return;
  const MusterAnnouncement *chief = readiness->chief;
  gboolean is_over = chief->phase == MUSTER_CHIEF_OVER;
  char *text =
      !is_over ? g_strdup ("running")
      : chief->step < 0
          ? g_strdup ("its chief ended the job")
          : g_strdup_printf ("its chief ended the job at step %" G_GINT64_FORMAT, chief->step);
  MusterReason *it = reason_new ("job", is_over ? "over" : "running", !is_over, text);
  it->owner = g_strdup (or_null (chief->model));
  if (is_over)
    it->hint =
        g_strdup ("nothing left to do; to train further, use `muster train --overwrite` with "
                  "a higher --steps or --epochs");
  g_ptr_array_add (list, it);
}

static const char *
state_of_phase (MusterChiefPhase phase)
{
  return phase == MUSTER_CHIEF_LOCAL_INIT ? "local-init" : muster_chief_phase_name (phase);
}

/* For a master with announcements, and a chief whose job isn't over. A chief that has prepared the
 * model and exited, as `muster prepare` does, isn't lost. */
static MusterReason *
chief_reason (const MusterReadiness *readiness)
{
  const MusterAnnouncement *chief = readiness->chief;
  g_autofree char *who = chief_name (chief);
  gboolean has_left = !chief->alive && chief->phase == MUSTER_CHIEF_PREPARED && chief->prepared;
  gboolean is_lost = !chief->alive && !has_left;
  gboolean has_prepared =
      chief->phase == MUSTER_CHIEF_PREPARED || chief->phase == MUSTER_CHIEF_TRAINING;
  GString *text = g_string_new (NULL);
  const gboolean is_without = chief->alive && !muster_chief_has_session (chief);
  if (is_lost)
    g_string_append_printf (text, "%s while it was ", muster_announcement_end_word (chief));
  g_string_append (text, chief->phase == MUSTER_CHIEF_LOCAL_INIT ? "in local init"
                         : is_without                            ? "without a session"
                                      : muster_chief_phase_name (chief->phase));
  if (or_null (chief->detail) != NULL && muster_chief_phase_is_preparing (chief->phase))
    g_string_append_printf (text, " %s", chief->detail);
  if (has_left)
    g_string_append (text, " the model and exited");
  if (who != NULL)
    g_string_append_printf (text, " (%s)", who);
  if (is_without)
    g_string_append_printf (text, ": %s", chief->detail);
  if (is_lost && chief->failed && or_null (chief->ended) != NULL)
    g_string_append_printf (text, ": %s", chief->ended);
  MusterReason *it = reason_new ("chief",
                                 is_lost      ? "lost"
                                 : is_without ? "no-session"
                                              : state_of_phase (chief->phase),
                                 readiness->is_ready || (has_prepared && !is_lost && !is_without),
                                 g_string_free (text, FALSE));
  it->owner = g_strdup (or_null (chief->task) != NULL ? chief->task : or_null (chief->who));
  return it;
}

/* If tasks have their own masters, a gateway in front of one isn't notified by the others. */
static char *
gateway_hint (const MusterSituation *situation)
{
  if (situation->chief != NULL)
    return NULL;
  return g_strdup_printf ("a %s stores it: `muster serve --master=%s`",
                          is_own (situation->target) ? "server" : "gateway",
                          situation->target != NULL ? situation->target : "TARGET");
}

/* again is "" or "again ". In a cluster whose tasks have their own masters, the chief's own
 * configuration starts it. */
static char *
chief_hint (const MusterSituation *situation, const char *again)
{
  const char *address = situation->chief != NULL ? strchr (situation->chief, '=') : NULL;
  if (address == NULL && is_own (situation->target))
    return g_strdup_printf (
        "prepare the model in this process: no other one reaches '%s'; to share "
        "it between processes, start `muster serve --master=%s`",
        situation->target, situation->target);
  if (address == NULL)
    return g_strdup_printf ("start the chief %swith `muster train --task=chief:0` or `muster "
                            "prepare`, at --master=%s",
                            again, situation->target != NULL ? situation->target : "TARGET");
  return g_strdup_printf (
      "start %.*s %swith `muster prepare` and its own TF_CONFIG, for its server "
      "at %s",
      (int)(address - situation->chief), situation->chief, again, address + 1);
}

/* Whether all that is missing are the tasks' positions in their data (train/position/position.h).
 */
static gboolean
lacks_positions (const MusterReadiness *readiness)
{
  char **missing = readiness != NULL && !readiness->is_ready ? readiness->missing : NULL;
  for (char **name = missing; name != NULL && *name != NULL; name++)
    if (!g_str_has_prefix (*name, "muster/"))
      return FALSE;
  return missing != NULL && *missing != NULL;
}

/* In a cluster whose tasks have their own masters, which don't know the chief's graph. */
static gboolean
chief_lacks_positions (const MusterSituation *situation)
{
  return situation->chief != NULL && lacks_positions (situation->readiness);
}

static char *
positions_hint (const MusterSituation *situation)
{
  return g_strdup_printf ("start %.*s again with --positions, or all other tasks without",
                          (int)strcspn (situation->chief, "="), situation->chief);
}

static void
add_chief (GPtrArray *list, const MusterSituation *situation)
{
  const MusterReadiness *readiness = situation->readiness;
  MusterReason *it = NULL;
  if (readiness == NULL) {
    it = reason_new ("chief", "unknown", TRUE, g_strdup ("not known yet"));
  } else if (readiness->coordinator_failure != NULL) {
    it = reason_new ("chief", "unknown", TRUE, g_strdup ("the coordinator doesn't answer"));
    it->last_error = g_strdup (readiness->coordinator_failure);
    it->hint = g_strdup ("start the coordinator's `muster serve` again, or correct --coordinator");
  } else if (!readiness->keeps_announcements) {
    it = reason_new ("chief", "unknown", TRUE,
                     g_strdup ("this master doesn't store the chief's state"));
    it->hint = gateway_hint (situation);
  } else if (readiness->chief == NULL) {
    const gboolean is_apart = chief_lacks_positions (situation);
    it = reason_new ("chief", "never-registered", readiness->is_ready,
                     g_strdup (is_apart ? "the chief has prepared the model without positions"
                                        : "no chief has ever registered"));
    it->hint = is_apart ? positions_hint (situation) : chief_hint (situation, "");
  } else if (readiness->chief->phase != MUSTER_CHIEF_OVER) {
    it = chief_reason (readiness);
    if (!it->is_well && strcmp (it->state, "lost") == 0)
      it->hint = chief_hint (situation, "again ");
  }
  if (it == NULL)
    return;
  if (waits_for_tasks (readiness)) /* one of these becomes the chief */
    g_clear_pointer (&it->hint, g_free);
  g_ptr_array_add (list, it);
}

/* A worker's graph may differ; that is a reason only if variables are missing. */
static void
add_graph (GPtrArray *list, const MusterReadiness *readiness)
{
  const char *difference = readiness == NULL ? NULL : or_null (readiness->graph_difference);
  gboolean is_over =
      readiness != NULL && readiness->chief != NULL && readiness->chief->phase == MUSTER_CHIEF_OVER;
  if (difference == NULL || is_over)
    return;
  gboolean missing =
      !readiness->is_ready && readiness->missing != NULL && readiness->missing[0] != NULL;
  MusterReason *it = reason_new ("graph", "differs", !missing,
                                 g_strdup_printf ("differs from the chief's: %s", difference));
  if (lacks_positions (readiness)) {
    g_free (it->text);
    it->text =
        g_strdup ("positions are missing: the model was prepared without those of its tasks");
    it->hint =
        g_strdup ("start its chief with `muster train`, which adds them; or, if nothing has "
                  "trained it, prepare it again with `muster prepare --overwrite --tasks=N`");
  } else if (missing) {
    it->hint = g_strdup ("use the same meta graph for the chief and its workers");
  }
  g_ptr_array_add (list, it);
}

static void
add_tasks (GPtrArray *list, const char *const *tasks)
{
  for (; tasks != NULL && *tasks != NULL; tasks++) {
    const char *why = strstr (*tasks, ": ");
    g_autofree char *task = name_of_task (*tasks);
    char *text = why != NULL ? g_strdup_printf ("%s does not answer: %s", task, why + 2)
                             : g_strdup_printf ("%s does not answer", task);
    MusterReason *it = reason_new ("task", "missing", FALSE, text);
    it->last_error = why != NULL ? g_strdup (why + 2) : NULL;
    it->hint = g_strdup_printf ("start %s", task);
    it->owner = g_steal_pointer (&task);
    g_ptr_array_add (list, it);
  }
}

/* As the server's: there was no time to look for the tasks again. */
static void
keep_tasks (const MusterReasons *self, GPtrArray *list, const MusterSituation *situation)
{
  if (situation->tasks != NULL || !is_less_informative (self, situation))
    return;
  for (guint i = 0; i < self->list->len; i++) {
    const MusterReason *it = g_ptr_array_index (self->list, i);
    if (strcmp (it->component, "task") == 0)
      g_ptr_array_add (list, muster_reason_copy (it));
  }
}

static void
add_variables (GPtrArray *list, const MusterSituation *situation)
{
  MusterReason *it = reason_for_variables (situation);
  const MusterReason *chief = muster_reasons_find (list, "chief");
  if (strcmp (it->state, "missing") == 0 && chief != NULL && chief->is_well) {
    if (strcmp (chief->state, "unknown") == 0)
      it->hint = chief_lacks_positions (situation) ? positions_hint (situation)
                                                   : chief_hint (situation, "");
    else
      it->hint = g_strdup ("the chief doesn't initialise these variables; check that it uses the "
                           "same graph and that they weren't reset");
  }
  g_ptr_array_add (list, it);
}

static const MusterReason *
find_same (GPtrArray *list, const MusterReason *reason)
{
  for (guint i = 0; i < list->len; i++) {
    const MusterReason *it = g_ptr_array_index (list, i);
    if (strcmp (it->component, reason->component) == 0 &&
        (strcmp (it->component, "task") != 0 || g_strcmp0 (it->owner, reason->owner) == 0))
      return it;
  }
  return NULL;
}

/* Its age, if an announcement has it; else 0: now. */
static gint64
age_us (const MusterReason *reason, const MusterAnnouncement *chief)
{
  if (chief == NULL)
    return 0;
  if (strcmp (reason->state, "lost") == 0 && strcmp (reason->component, "chief") == 0)
    return MAX (chief->lost_age_us, 0);
  if (strcmp (reason->state, "over") == 0 || strcmp (reason->component, "chief") == 0)
    return MAX (chief->phase_age_us, 0);
  return 0;
}

/* Keeps `since` of reasons whose state hasn't changed. */
static void
keep_since (MusterReasons *self, GPtrArray *list, const MusterAnnouncement *chief)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean same_chief = chief == NULL || chief->epoch == self->epoch;
  for (guint i = 0; i < list->len; i++) {
    MusterReason *it = g_ptr_array_index (list, i);
    const MusterReason *before = find_same (self->list, it);
    gboolean stays = before != NULL && strcmp (before->state, it->state) == 0 &&
                     (same_chief || strcmp (it->component, "chief") != 0);
    it->since_us = stays ? before->since_us : now_us - age_us (it, chief);
  }
  if (chief != NULL)
    self->epoch = chief->epoch;
}

void
muster_reasons_update (MusterReasons *self, const MusterSituation *situation)
{
  g_return_if_fail (self != NULL && situation != NULL && situation->version != 0);
  if (situation->version == self->version)
    return;
  self->version = situation->version;
  const MusterReadiness *readiness = situation->readiness;
  GPtrArray *list = list_new ();
  add_server (self, list, situation);
  add_job (list, situation);
  add_chief (list, situation);
  add_graph (list, readiness);
  add_tasks (list, situation->tasks);
  keep_tasks (self, list, situation);
  add_variables (list, situation);
  keep_since (self, list,
              readiness != NULL && readiness->keeps_announcements ? readiness->chief : NULL);
  g_ptr_array_unref (self->list);
  self->list = list;
}

GPtrArray *
muster_reasons_list (MusterReasons *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->list;
}

const MusterReason *
muster_reasons_first (GPtrArray *reasons)
{
  for (guint i = 0; reasons != NULL && i < reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (reasons, i);
    if (!it->is_well)
      return it;
  }
  return NULL;
}

const MusterReason *
muster_reasons_find (GPtrArray *reasons, const char *component)
{
  g_return_val_if_fail (component != NULL, NULL);
  for (guint i = 0; reasons != NULL && i < reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (reasons, i);
    if (strcmp (it->component, component) == 0)
      return it;
  }
  return NULL;
}

GPtrArray *
muster_reasons_copy (MusterReasons *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  GPtrArray *copy = g_ptr_array_copy (self->list, copy_reason, NULL);
  g_ptr_array_set_free_func (copy, (GDestroyNotify)muster_reason_free);
  return copy;
}
