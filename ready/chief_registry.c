// SPDX-License-Identifier: Apache-2.0
/* The chiefs of a server's models: who may claim, which phase each announced, when a lease is
 * lost. may_claim () has the rules: a living chief yields only to a higher epoch, or to a claim
 * that takes over. overwrites_nobody () keeps another model from its variables. */
#include "ready/chief_registry_private.h"

#include "base/safe_text_private.h"
#include "graph/graph_nodes_private.h"
#include "ready/chief_gate_private.h"
#include "ready/lease_look_private.h"
#include "ready/model_log_private.h"

#include <string.h>

#define MAX_MODELS 10000
#define MAX_NAME   256
#define MAX_DETAIL 4096
/* Leaves space for later epochs, however often the next is requested. */
#define MAX_EPOCH (G_MAXINT64 / 2)
/* What a checkpoint's age is at most; it may be older than the clock. */
#define LONGEST_AGE_US (G_MAXINT64 / 4)

/* Maximum length of names in errors. */
#define SHOWN_NAME 64

typedef struct {
  MusterAnnouncement chief; /* without ages, which are computed from the instants below */
  gint64 phase_us;
  gint64 durable_us;
  gint64 saves_us;
  gint64 goodput_us;
  gint64 lost_us;
  gint64 heard_us;   /* when its lease was renewed */
  gint64 doubted_us; /* see muster_lease_look () */
  gint64 highest;    /* highest epoch ever seen */
  guint64 claim;     /* number of the claim in the registry */
  MusterChiefPhase
      reset_phase; /* the phase before a reset, which the chief may repeat without knowing of it */
  gboolean is_elsewhere; /* its variables aren't the server's */
  gboolean has_left;
  gboolean is_unreported; /* its lease has expired, and listeners haven't been notified */
  MusterGraph *graph;     /* (owned) (nullable) of its chief, while somebody may need it */
} Model;

struct _MusterChiefRegistry {
  MusterClock *clock; /* (owned) */
  gint64 lease_us;
  MusterModelChanged changed; /* (nullable) */
  gpointer user_data;

  GMutex lock;
  GHashTable
      *models;      /* (element-type utf8 Model) owned; the keys are the values'; guarded by lock */
  guint64 n_claims; /* guarded by lock */
  gint64 forgotten; /* the highest epoch of a model that isn't kept any more; guarded by lock */
};

static void
model_free (gpointer data)
{
  Model *model = data;
  muster_announcement_clear (&model->chief);
  g_clear_pointer (&model->graph, muster_graph_unref);
  g_free (model);
}

MusterChiefRegistry *
muster_chief_registry_new (MusterClock *clock, gint64 lease_us)
{
  MusterChiefRegistry *self = g_new0 (MusterChiefRegistry, 1);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->lease_us = lease_us;
  g_mutex_init (&self->lock);
  self->models = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, model_free);
  return self;
}

void
muster_chief_registry_free (MusterChiefRegistry *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->models);
  g_mutex_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

void
muster_chief_registry_set_listener (MusterChiefRegistry *self, MusterModelChanged changed,
                                    gpointer user_data)
{
  self->changed = changed;
  self->user_data = user_data;
}

gint64
muster_chief_registry_lease_us (MusterChiefRegistry *self)
{
  return self->lease_us;
}

static void
notify (MusterChiefRegistry *self, const char *name, MusterModelChange change)
{
  if (self->changed != NULL)
    self->changed (name, change, self->user_data);
}

/* --- what comes from outside --- */

static gboolean
check_text (const char *what, const char *text, gsize max, GError **error)
{
  gsize size = strlen (text);
  if (size > max) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the %s has %" G_GSIZE_FORMAT " bytes, over the limit of %" G_GSIZE_FORMAT,
                        what, size, max);
  }
  gboolean is_printable = g_utf8_validate_len (text, size, NULL);
  for (const char *at = text; is_printable && *at != '\0'; at = g_utf8_next_char (at))
    is_printable = muster_is_printable (g_utf8_get_char (at));
  if (is_printable)
    return TRUE;
  g_autofree char *start = g_strndup (text, SHOWN_NAME);
  g_autofree char *shown = g_strescape (start, NULL);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the %s '%s' isn't printable UTF-8",
                      what, shown);
}

/* Checks an optional text. */
static gboolean
check_optional (const char *what, const char *text, gsize max, GError **error)
{
  return text == NULL || check_text (what, text, max, error);
}

gboolean
muster_chief_registry_check_name (const char *what, const char *name, GError **error)
{
  if (name != NULL && *name != '\0')
    return check_text (what, name, MAX_NAME, error);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the %s is empty; use a name", what);
}

gboolean
muster_chief_registry_check_text (const char *what, const char *text, GError **error)
{
  return check_text (what, text, MAX_DETAIL, error);
}

static gboolean
refuse_epoch (gint64 epoch, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid epoch %" G_GINT64_FORMAT " (use 1 to %" G_GINT64_FORMAT
                      ", or 0 for the next)",
                      epoch, MAX_EPOCH);
}

static gboolean
check_claim (const MusterClaim *claim, const char *who, GError **error)
{
  if (!muster_chief_registry_check_name ("model's name", claim->model, error) ||
      !check_optional ("chief's task", claim->task, MAX_NAME, error) ||
      !check_optional ("chief's process", who, MAX_NAME, error))
    return FALSE;
  return claim->epoch >= 0 || refuse_epoch (claim->epoch, error);
}

static gboolean
check_announcement (const MusterAnnouncement *announced, GError **error)
{
  if (!check_optional ("announcement's detail", announced->detail, MAX_DETAIL, error) ||
      !check_optional ("checkpoint's name", announced->durable, MAX_DETAIL, error) ||
      !check_optional ("name in the directory", announced->holder, MAX_DETAIL, error) ||
      !check_optional ("reason of its end", announced->ended, MAX_DETAIL, error) ||
      (announced->saves != NULL &&
       !check_optional ("checkpoint's name", announced->saves->saving, MAX_DETAIL, error)))
    return FALSE;
  if (announced->phase >= MUSTER_CHIEF_UNKNOWN && announced->phase <= MUSTER_CHIEF_OVER)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "unknown phase %d: this server is older than the chief",
                      (int)announced->phase);
}

/* --- one model; all with the lock held --- */

static void
lose (Model *model, gint64 when_us)
{
  model->chief.alive = FALSE;
  model->lost_us = when_us;
}

/* Nobody continues a job that is over, and a model that isn't prepared only its own chief, which
 * claims it with its graph again if it has left. A graph may hold as much as the variables. */
static void
drop_unneeded_graph (Model *model)
{
  if (model->chief.phase == MUSTER_CHIEF_OVER || (model->has_left && !model->chief.prepared))
    g_clear_pointer (&model->graph, muster_graph_unref);
}

/* When to look at its lease again. */
static gint64
look_at_lease (MusterChiefRegistry *self, Model *model, gint64 now_us)
{
  return muster_lease_look (self->lease_us, model->heard_us, now_us, &model->doubted_us);
}

static Model *
find (MusterChiefRegistry *self, const char *name, gint64 now_us)
{
  Model *model = g_hash_table_lookup (self->models, name);
  if (model != NULL && model->chief.alive && look_at_lease (self, model, now_us) <= now_us) {
    lose (model, muster_deadline_after (model->heard_us, self->lease_us));
    model->is_unreported = TRUE;
  }
  return model;
}

static MusterAnnouncement *
describe (const Model *model, gint64 now_us)
{
  MusterAnnouncement *chief = muster_announcement_copy (&model->chief);
  chief->phase_age_us = now_us - model->phase_us;
  chief->durable_age_us = chief->durable_step >= 0 ? now_us - model->durable_us : 0;
  chief->lost_age_us = chief->alive ? 0 : now_us - model->lost_us;
  if (chief->saves != NULL)
    muster_save_status_add_age (chief->saves, now_us - model->saves_us);
  if (chief->saves != NULL && !chief->alive)
    g_clear_pointer (&chief->saves->saving, g_free); /* it will never end */
  if (chief->goodput != NULL)
    chief->goodput->age_us += now_us - model->goodput_us;
  return chief;
}

/* What a claimant is told. graph (nullable) is its own. */
static MusterAnnouncement *
describe_before (const Model *model, MusterGraph *graph, gint64 now_us)
{
  MusterAnnouncement *chief = describe (model, now_us);
  chief->same_graph = graph != NULL && model->graph != NULL &&
                      (graph == model->graph || muster_graph_equal (graph, model->graph));
  return chief;
}

#define END_IT                                                                                     \
  "; end it first (SIGTERM), so that it saves: else what it has trained since its last "           \
  "checkpoint is lost"

static gboolean
refuse_for (const Model *model, gint64 now_us, const char *what, const char *remedy, GError **error)
{
  g_autoptr (MusterAnnouncement) chief = describe (model, now_us);
  g_autofree char *text = muster_announcement_describe (chief);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "%s '%s': its chief is %s, of epoch %" G_GINT64_FORMAT "%s", what,
                      chief->model, text, chief->epoch, remedy);
}

static gboolean
refuse_old_epoch (const Model *model, gint64 epoch, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "'%s' was already claimed with epoch %" G_GINT64_FORMAT
                      "; epoch %" G_GINT64_FORMAT " belongs to a chief that was replaced",
                      model->chief.model, model->highest, epoch);
}

static gboolean
refuse_over (const Model *model, GError **error)
{
  g_autofree char *step = model->chief.step >= 0
                              ? g_strdup_printf (" at step %" G_GINT64_FORMAT, model->chief.step)
                              : g_strdup ("");
  return muster_fail (
      error, MUSTER_ERROR_OUT_OF_RANGE,
      "the job '%s' is over: it ended%s; to train further, use `muster train --overwrite`",
      model->chief.model, step);
}

/* The rules. */
static gboolean
may_claim (const Model *model, const MusterClaim *claim, const char *who, gint64 now_us,
           GError **error)
{
  if (claim->epoch != 0 && claim->epoch < model->highest)
    return refuse_old_epoch (model, claim->epoch, error);
  if (claim->epoch > MAX (MAX_EPOCH, model->highest))
    return refuse_epoch (claim->epoch, error);
  const gboolean is_over = model->chief.phase == MUSTER_CHIEF_OVER;
  const gboolean is_held = model->chief.alive && claim->epoch <= model->highest;
  if (claim->take_over)
    return !claim->spares_living || is_over || !is_held || g_strcmp0 (model->chief.who, who) == 0 ||
           refuse_for (model, now_us, "can't claim", END_IT, error);
  if (is_over)
    return refuse_over (model, error);
  return !is_held || refuse_for (model, now_us, "can't claim", "", error);
}

/* TRUE if the lost chief is back: its announcement is still valid, unless a reset cleared it. */
static gboolean
is_returning_chief (const Model *model, const MusterClaim *claim, const char *who)
{
  return !model->chief.alive && model->chief.phase != MUSTER_CHIEF_UNKNOWN &&
         claim->epoch == model->chief.epoch && g_strcmp0 (model->chief.who, who) == 0;
}

static void
set_text (char **text, const char *value)
{
  char *copy = g_strdup (value != NULL ? value : "");
  g_free (*text);
  *text = copy;
}

static void
set_nullable (char **text, const char *value)
{
  char *copy = value != NULL && *value != '\0' ? g_strdup (value) : NULL;
  g_free (*text);
  *text = copy;
}

/* Sets the phase, as for a chief of which nothing else is known. */
static void
begin_phase (Model *model, MusterChiefPhase phase, gint64 now_us)
{
  model->reset_phase = MUSTER_CHIEF_UNKNOWN;
  model->chief.phase = phase;
  model->phase_us = now_us;
  model->chief.step = -1;
  model->chief.prepared = model->chief.is_ready = FALSE;
  model->chief.failed = FALSE;
  model->chief.drain = MUSTER_DRAIN_NONE;
  g_clear_pointer (&model->chief.detail, g_free);
  g_clear_pointer (&model->chief.holder, g_free);
  g_clear_pointer (&model->chief.ended, g_free);
}

/* Of another chief; what it announced of the job's time is told to the next one. */
static void
forget_saves (Model *model, const MusterClaim *claim, const char *who)
{
  if (claim->epoch == 0 || claim->epoch != model->chief.epoch ||
      g_strcmp0 (model->chief.who, who) != 0)
    g_clear_pointer (&model->chief.saves, muster_save_status_free);
}

static void
grant (MusterChiefRegistry *self, Model *model, const MusterClaim *claim, const char *who,
       MusterGraph *graph, gint64 now_us)
{
  if (!is_returning_chief (model, claim, who))
    begin_phase (model, MUSTER_CHIEF_STARTING, now_us);
  forget_saves (model, claim, who);
  model->highest = claim->epoch != 0 ? claim->epoch : model->highest + 1;
  model->chief.epoch = model->highest;
  set_text (&model->chief.task, claim->task);
  set_text (&model->chief.who, who);
  model->chief.alive = TRUE;
  model->has_left = FALSE;
  model->is_unreported = FALSE;
  model->heard_us = now_us;
  model->claim = ++self->n_claims;
  g_clear_pointer (&model->graph, muster_graph_unref);
  model->graph = graph != NULL ? muster_graph_ref (graph) : NULL;
}

/* What may be forgotten: neither a living chief nor a model whose variables a job still wants. Jobs
 * that are over are the last: they can't be started again while they are known. */
static guint
rank (const Model *model)
{
  if (model->chief.alive)
    return 0;
  if (model->chief.phase == MUSTER_CHIEF_OVER)
    return 1;
  return model->chief.prepared ? 0 : 2;
}

/* The one to forget, which was lost first; NULL if none may be. */
static Model *
find_dispensable (MusterChiefRegistry *self, gint64 now_us)
{
  Model *found = NULL;
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    Model *model = find (self, name, now_us);
    const guint order = rank (model), best = found != NULL ? rank (found) : 0;
    if (order > best || (order == best && order > 0 && model->lost_us < found->lost_us))
      found = model;
  }
  return found;
}

/* Sets *forgotten (transfer full) to the name of the model that made room. */
static gboolean
make_room (MusterChiefRegistry *self, const char *name, gint64 now_us, char **forgotten,
           GError **error)
{
  if (g_hash_table_size (self->models) < MAX_MODELS)
    return TRUE;
  const Model *model = find_dispensable (self, now_us);
  if (model == NULL)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "can't keep the model '%s': models are limited to %d", name, MAX_MODELS);
  self->forgotten = MAX (self->forgotten, model->highest);
  *forgotten = g_strdup (model->chief.model);
  g_hash_table_remove (self->models, *forgotten);
  return TRUE;
}

/* Whether a model that isn't kept may be claimed: it may be one that was forgotten. */
static gboolean
may_claim_new (MusterChiefRegistry *self, const MusterClaim *claim, GError **error)
{
  if (claim->epoch > MAX (MAX_EPOCH, self->forgotten))
    return refuse_epoch (claim->epoch, error);
  if (claim->epoch == 0 || claim->epoch >= self->forgotten)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "can't claim '%s' with epoch %" G_GINT64_FORMAT
                      ": the server has forgotten models with epochs up to %" G_GINT64_FORMAT
                      ", so the epoch may be a replaced chief's; claim the next (0)",
                      claim->model, claim->epoch, self->forgotten);
}

static Model *
add (MusterChiefRegistry *self, const MusterClaim *claim, gint64 now_us, char **forgotten,
     GError **error)
{
  if (!may_claim_new (self, claim, error) ||
      !make_room (self, claim->model, now_us, forgotten, error))
    return NULL;
  Model *model = g_new0 (Model, 1);
  model->chief = (MusterAnnouncement)MUSTER_ANNOUNCEMENT_INIT;
  model->chief.model = g_strdup (claim->model);
  model->lost_us = now_us;
  model->highest = self->forgotten;
  g_hash_table_insert (self->models, model->chief.model, model);
  return model;
}

/* The name of a variable that both have, the first in alphabetical order; NULL: none. */
static const char *
find_shared (MusterGraph *graph, MusterGraph *other)
{
  GHashTable *others = muster_graph_variables (other);
  const char *found = NULL;
  GHashTableIter iter;
  gpointer key, name;
  g_hash_table_iter_init (&iter, muster_graph_variables (graph));
  while (g_hash_table_iter_next (&iter, &key, &name))
    if (g_hash_table_contains (others, key) && (found == NULL || strcmp (name, found) < 0))
      found = name;
  return found;
}

static gboolean
refuse_shared (const MusterClaim *claim, const char *variable, const Model *other, gint64 now_us,
               GError **error)
{
  g_autoptr (MusterAnnouncement) chief = describe (other, now_us);
  g_autofree char *text = muster_announcement_describe (chief);
  g_autofree char *shown = muster_safe_text (variable, -1, SHOWN_NAME);
  return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                      "the variable '%s' of '%s' is also one of '%s', whose chief is %s; models on "
                      "one master share variables of the same name: use another master, or end "
                      "that job first (SIGTERM)",
                      shown, claim->model, chief->model, text);
}

/* Another model with variables of the same names would lose its values when this one is prepared,
 * so it keeps them while its chief lives. */
static gboolean
overwrites_nobody (MusterChiefRegistry *self, const MusterClaim *claim, MusterGraph *graph,
                   gint64 now_us, GError **error)
{
  GHashTableIter iter;
  gpointer name;
  if (graph == NULL || (claim->take_over && !claim->spares_living))
    return TRUE;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    const Model *other = find (self, name, now_us);
    if (!other->chief.alive || other->chief.phase == MUSTER_CHIEF_OVER || other->graph == NULL ||
        strcmp (name, claim->model) == 0)
      continue;
    const char *variable = find_shared (graph, other->graph);
    if (variable != NULL)
      return refuse_shared (claim, variable, other, now_us, error);
  }
  return TRUE;
}

/* The model, if the claim is granted; *stood is what a claimant is told of it. */
static Model *
admit (MusterChiefRegistry *self, const MusterClaim *claim, const char *who, MusterGraph *graph,
       gint64 now_us, MusterAnnouncement **stood, char **forgotten, GError **error)
{
  Model *model = find (self, claim->model, now_us);
  if ((model != NULL && !may_claim (model, claim, who, now_us, error)) ||
      !overwrites_nobody (self, claim, graph, now_us, error))
    return NULL;
  if (model == NULL)
    return add (self, claim, now_us, forgotten, error);
  *stood = describe_before (model, graph, now_us);
  return model;
}

gint64
muster_chief_registry_claim (MusterChiefRegistry *self, const MusterClaim *claim, const char *who,
                             MusterGraph *graph, MusterAnnouncement **before, GError **error)
{
  if (before != NULL)
    *before = NULL;
  if (!check_claim (claim, who, error))
    return 0;
  g_autoptr (MusterAnnouncement) stood = NULL;
  g_autofree char *forgotten = NULL;
  gboolean was_lost = FALSE; /* and nobody was told yet */
  gint64 epoch = 0;
  gint64 now_us = muster_clock_now_us (self->clock);
  if (graph != NULL) { /* computed here, without the lock */
    (void)muster_graph_hash (graph);
    (void)muster_graph_variables (graph);
  }
  g_mutex_lock (&self->lock);
  Model *model = admit (self, claim, who, graph, now_us, &stood, &forgotten, error);
  if (model != NULL) {
    was_lost = model->is_unreported;
    grant (self, model, claim, who != NULL ? who : "", graph, now_us);
    epoch = model->chief.epoch;
  }
  g_mutex_unlock (&self->lock);
  if (was_lost && stood != NULL)
    muster_model_log_lost (stood);
  if (forgotten != NULL)
    notify (self, forgotten, MUSTER_MODEL_CHANGED);
  if (epoch != 0)
    notify (self, claim->model, MUSTER_MODEL_CLAIMED);
  if (before != NULL)
    *before = g_steal_pointer (&stood);
  return epoch;
}

/* --- announcing --- */

static gboolean
is_current_chief (const Model *model, const MusterAnnouncement *announced)
{
  if (announced->epoch != model->chief.epoch)
    return FALSE;
  return announced->who == NULL || *announced->who == '\0' || *model->chief.who == '\0' ||
         g_str_equal (announced->who, model->chief.who);
}

static gboolean
may_announce (const Model *model, const MusterAnnouncement *announced, gint64 now_us,
              GError **error)
{
  if (!is_current_chief (model, announced))
    return refuse_for (model, now_us, "lost the lease on", "", error);
  if (model->chief.phase == MUSTER_CHIEF_OVER && announced->phase != MUSTER_CHIEF_OVER &&
      announced->phase != MUSTER_CHIEF_UNKNOWN) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "the job '%s' is over; only its end can be announced", model->chief.model);
  }
  return TRUE;
}

/* A chief renews its lease by repeating its last announcement, and may not know of a reset yet;
 * that it prepares the model (again) is always accepted. */
static gboolean
is_reset_phase (const Model *model, MusterChiefPhase phase)
{
  return phase == model->reset_phase && !muster_chief_phase_is_preparing (phase);
}

static void
apply_phase (Model *model, const MusterAnnouncement *announced, gint64 now_us)
{
  if (announced->phase == MUSTER_CHIEF_UNKNOWN || is_reset_phase (model, announced->phase))
    return;
  model->reset_phase = MUSTER_CHIEF_UNKNOWN;
  if (announced->phase != model->chief.phase ||
      muster_chief_has_session (announced) != muster_chief_has_session (&model->chief))
    model->phase_us = now_us;
  model->chief.phase = announced->phase;
  set_nullable (&model->chief.detail, announced->detail);
  gboolean is_prepared = announced->phase == MUSTER_CHIEF_PREPARED ||
                         announced->phase == MUSTER_CHIEF_TRAINING ||
                         (announced->phase == MUSTER_CHIEF_OVER && model->chief.prepared);
  if (announced->phase == MUSTER_CHIEF_OVER || !is_prepared || !model->chief.prepared)
    model->chief.is_ready = FALSE; /* it is determined again, or no longer */
  model->chief.prepared = is_prepared;
}

static void
apply_announcement (Model *model, const MusterAnnouncement *announced, gint64 now_us)
{
  apply_phase (model, announced, now_us);
  drop_unneeded_graph (model);
  if (announced->step >= 0)
    model->chief.step = announced->step;
  if (announced->holder != NULL && *announced->holder != '\0')
    set_nullable (&model->chief.holder, announced->holder);
  model->chief.failed |= announced->failed;
  if (announced->ended != NULL && *announced->ended != '\0')
    set_nullable (&model->chief.ended, announced->ended);
  if (announced->drain != MUSTER_DRAIN_NONE)
    model->chief.drain = announced->drain;
  if (announced->durable_step >= 0 && (announced->durable_step != model->chief.durable_step ||
                                       g_strcmp0 (announced->durable, model->chief.durable) != 0)) {
    model->chief.durable_step = announced->durable_step;
    model->durable_us = now_us - CLAMP (announced->durable_age_us, 0, LONGEST_AGE_US);
    set_nullable (&model->chief.durable, announced->durable);
  }
  if (announced->saves != NULL) {
    muster_save_status_free (model->chief.saves);
    model->chief.saves = muster_save_status_copy (announced->saves);
    model->saves_us = now_us;
  }
  if (announced->goodput != NULL) {
    g_free (model->chief.goodput);
    model->chief.goodput = muster_goodput_copy (announced->goodput);
    model->goodput_us = now_us;
  }
  if (model->has_left)
    return;
  model->chief.alive = TRUE;
  model->heard_us = now_us;
}

gboolean
muster_chief_registry_announce (MusterChiefRegistry *self, const MusterAnnouncement *announcement,
                                GError **error)
{
  if (!muster_chief_registry_check_name ("model's name", announcement->model, error) ||
      !check_announcement (announcement, error))
    return FALSE;
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean has_changed = FALSE;
  gboolean is_accepted = FALSE;
  g_autoptr (MusterAnnouncement) before = NULL, after = NULL;
  MusterModelChange change = MUSTER_MODEL_PROGRESSED;
  g_mutex_lock (&self->lock);
  Model *model = find (self, announcement->model, now_us);
  if (model == NULL)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "'%s' is not claimed on this server (it may have restarted); claim it first",
                 announcement->model);
  else
    is_accepted = may_announce (model, announcement, now_us, error);
  if (is_accepted) {
    g_autoptr (MusterAnnouncement) stood = muster_announcement_copy (&model->chief);
    apply_announcement (model, announcement, now_us);
    has_changed = model->is_unreported || !muster_announcement_equal (stood, &model->chief);
    if (model->is_unreported || muster_chief_changed (stood, &model->chief))
      change = MUSTER_MODEL_CHANGED;
    model->is_unreported = FALSE;
    if (has_changed && muster_model_log_is_on ()) {
      before = g_steal_pointer (&stood);
      after = muster_announcement_copy (&model->chief);
    }
  }
  g_mutex_unlock (&self->lock);
  if (after != NULL)
    muster_model_log_change (before, after);
  if (has_changed)
    notify (self, announcement->model, change);
  return is_accepted;
}

void
muster_chief_registry_release (MusterChiefRegistry *self, const char *model, gint64 epoch)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean has_changed = FALSE;
  g_mutex_lock (&self->lock);
  Model *found = find (self, model, now_us);
  if (found != NULL && found->chief.epoch == epoch) {
    has_changed = found->chief.alive || found->is_unreported;
    if (found->chief.alive)
      lose (found, now_us);
    found->has_left = TRUE;
    found->is_unreported = FALSE;
    drop_unneeded_graph (found);
  }
  g_mutex_unlock (&self->lock);
  if (has_changed)
    notify (self, model, MUSTER_MODEL_CHANGED);
}

void
muster_chief_registry_set_ready (MusterChiefRegistry *self, const char *model, gint64 epoch,
                                 gboolean is_ready)
{
  gboolean has_changed = FALSE;
  g_mutex_lock (&self->lock);
  Model *found = g_hash_table_lookup (self->models, model);
  if (found != NULL && found->chief.epoch == epoch && found->chief.prepared &&
      found->chief.phase != MUSTER_CHIEF_OVER) {
    has_changed = found->chief.is_ready != is_ready;
    found->chief.is_ready = is_ready;
  }
  g_mutex_unlock (&self->lock);
  if (!has_changed)
    return;
  muster_model_log_ready (model, epoch, is_ready);
  notify (self, model, MUSTER_MODEL_READY);
}

void
muster_chief_registry_set_elsewhere (MusterChiefRegistry *self, const char *model,
                                     gboolean is_elsewhere)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  Model *found = g_hash_table_lookup (self->models, model);
  if (found != NULL)
    found->is_elsewhere = is_elsewhere;
}

gboolean
muster_chief_registry_is_elsewhere (MusterChiefRegistry *self, const char *model)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const Model *found = g_hash_table_lookup (self->models, model);
  return found != NULL && found->is_elsewhere;
}

/* --- all models --- */

guint64
muster_chief_registry_n_claims (MusterChiefRegistry *self)
{
  g_mutex_lock (&self->lock);
  guint64 n_claims = self->n_claims;
  g_mutex_unlock (&self->lock);
  return n_claims;
}

guint
muster_chief_registry_n_models (MusterChiefRegistry *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return g_hash_table_size (self->models);
}

gboolean
muster_chief_registry_knows (MusterChiefRegistry *self, const char *model)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return g_hash_table_contains (self->models, model);
}

static void
notify_all (MusterChiefRegistry *self, GPtrArray *names)
{
  for (guint i = 0; i < names->len; i++)
    notify (self, names->pdata[i], MUSTER_MODEL_CHANGED);
}

/* Without a graph, the variables' containers aren't known, unless there is nothing to lose. */
static gboolean
loses_variables (const Model *model, const char *const *containers)
{
  if (model->is_elsewhere || containers == NULL)
    return !model->is_elsewhere;
  return model->graph != NULL ? muster_graph_has_variable_in (model->graph, containers)
                              : model->chief.prepared && model->chief.phase != MUSTER_CHIEF_OVER;
}

void
muster_chief_registry_reset (MusterChiefRegistry *self, guint64 n_claims,
                             const char *const *containers)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  gint64 now_us = muster_clock_now_us (self->clock);
  GHashTableIter iter;
  gpointer value;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Model *model = value;
    if (model->claim > n_claims || !loses_variables (model, containers))
      continue;
    MusterChiefPhase reset_phase = model->chief.phase;
    if (reset_phase == MUSTER_CHIEF_UNKNOWN)
      reset_phase = model->reset_phase; /* a reset after a reset */
    begin_phase (model, MUSTER_CHIEF_UNKNOWN, now_us);
    model->reset_phase = reset_phase;
    drop_unneeded_graph (model);
    g_ptr_array_add (names, g_strdup (model->chief.model));
  }
  g_mutex_unlock (&self->lock);
  notify_all (self, names);
}

MusterAnnouncement *
muster_chief_registry_find (MusterChiefRegistry *self, const char *model)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  g_mutex_lock (&self->lock);
  Model *found = find (self, model, now_us);
  MusterAnnouncement *chief = found != NULL ? describe (found, now_us) : NULL;
  g_mutex_unlock (&self->lock);
  return chief;
}

MusterGraph *
muster_chief_registry_graph (MusterChiefRegistry *self, const char *model)
{
  g_mutex_lock (&self->lock);
  const Model *found = g_hash_table_lookup (self->models, model);
  MusterGraph *graph =
      found != NULL && found->graph != NULL ? muster_graph_ref (found->graph) : NULL;
  g_mutex_unlock (&self->lock);
  return graph;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const MusterAnnouncement *const *one = a;
  const MusterAnnouncement *const *other = b;
  return strcmp ((*one)->model, (*other)->model);
}

GPtrArray *
muster_chief_registry_list (MusterChiefRegistry *self)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_announcement_free);
  gint64 now_us = muster_clock_now_us (self->clock);
  GHashTableIter iter;
  gpointer name;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_ptr_array_add (all, describe (find (self, name, now_us), now_us));
  g_mutex_unlock (&self->lock);
  g_ptr_array_sort (all, compare_names);
  return all;
}

gint64
muster_chief_registry_expire (MusterChiefRegistry *self)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) lost =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_announcement_free);
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = MUSTER_WAIT_FOREVER;
  GHashTableIter iter;
  gpointer name;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    Model *model = find (self, name, now_us);
    if (model->is_unreported) {
      g_ptr_array_add (names, g_strdup (name));
      g_ptr_array_add (lost, describe (model, now_us));
    }
    model->is_unreported = FALSE;
    if (model->chief.alive)
      next_us = MIN (next_us, look_at_lease (self, model, now_us));
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < lost->len; i++)
    muster_model_log_lost (lost->pdata[i]);
  notify_all (self, names);
  return next_us;
}
