// SPDX-License-Identifier: Apache-2.0
/* Answers the questions of all waiting clients: is the gate open, is the model ready? Clients
 * that ask the same share one question. A thread runs its ops when a variable's value has come or
 * gone, or when a poll is due, and passes each change on. */
#include "ready/hub_private.h"

#include "graph/graph_difference_private.h"
#include "ready/chief_gate_private.h"
#include "ready/watch_key_private.h"

/* Timeout of a question, so that it doesn't block the others. */
#define PROBE_TIMEOUT (60 * MUSTER_SECOND)

struct _MusterSubscriber {
  gatomicrefcount refs;
  MusterWatchKey *watch_key; /* (not owned) (nullable) NULL once it has ended; guarded by lock */
  MusterSession *session;    /* (owned) (nullable) NULL: there are no ops to run */
  MusterReadinessFunc func;
  gpointer user_data;
  GQueue *queue; /* (not owned) which holds it by link; guarded by lock */
  GList link;
  gboolean left; /* guarded by lock */
};

typedef struct {
  MusterModelFunc func;
  gpointer data;
} ModelWatcher;

struct _MusterReadinessHub {
  MusterMaster *master;          /* (owned) */
  MusterChiefRegistry *registry; /* (not owned) (nullable) */
  MusterMemberRegistry *members; /* (not owned) (nullable) */
  MusterClock *clock;            /* (owned) */
  gulong changed_id;             /* 0: the master doesn't report changes */
  GThread *thread;
  GCancellable *stop;     /* (owned) cancels the running question */
  guint64 round;          /* the thread's */
  gint64 changed_us;      /* the thread's: of the change that is being reported; 0: of none */
  GArray *model_watchers; /* (owned) (element-type ModelWatcher) */

  GMutex lock;
  GCond wake;                      /* signals that there is work */
  GCond delivered;                 /* signals that a subscriber's function has returned */
  GCancellable *pause_cancellable; /* (owned) (nullable) cancels the pause between two polls;
                                      guarded by lock */
  gboolean stopping;               /* guarded by lock */
  GPtrArray *watch_keys;           /* (element-type MusterWatchKey) guarded by lock */
  GHashTable *by_key; /* (element-type MusterWatchKey) owned: the same, as a set; guarded by lock */
  GQueue pending;     /* (element-type MusterWatchKey) those with pending work; guarded by lock */
  GQueue ended; /* (element-type MusterSubscriber) owned: notified of their end, not unsubscribed;
                   guarded by lock */
  MusterSubscriber
      *speaking; /* (not owned) (nullable) whose function is running; guarded by lock */
};

/* --- questions --- */

static gboolean
watch_key_has_subscribers (const MusterWatchKey *self)
{
  return self->notified.length + self->fresh.length > 0;
}

/* All below with the lock held. */

static MusterWatchKey *
add_watch_key (MusterReadinessHub *self, const MusterWatchKey *what)
{
  MusterWatchKey *watch_key = muster_watch_key_new (what, muster_clock_now_us (self->clock));
  watch_key->index = self->watch_keys->len;
  g_ptr_array_add (self->watch_keys, watch_key);
  g_hash_table_add (self->by_key, watch_key);
  return watch_key;
}

static void
remove_watch_key (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  MusterWatchKey *last = self->watch_keys->pdata[self->watch_keys->len - 1];
  last->index = watch_key->index;
  g_ptr_array_remove_index_fast (self->watch_keys, watch_key->index);
  g_hash_table_remove (self->by_key, watch_key);
}

static void
add_pending (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  if (!watch_key->is_pending)
    g_queue_push_tail_link (&self->pending, &watch_key->link);
  watch_key->is_pending = TRUE;
}

/* The same because of a change. */
static void
add_changed (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  if (watch_key->changed_us == 0)
    watch_key->changed_us = muster_clock_now_us (self->clock);
  add_pending (self, watch_key);
}

/* Wakes the hub's thread. */
static void
wake_up (MusterReadinessHub *self)
{
  g_cond_signal (&self->wake);
  if (self->pause_cancellable != NULL)
    g_cancellable_cancel (self->pause_cancellable);
}

/* --- polls --- */

/* A client that knows that a model is ready doesn't wait for the opposite. */
void
muster_readiness_hub_may_have_changed (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean is_wanted = FALSE;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len && self->changed_id == 0; i++) {
    MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    is_wanted = muster_poll_plan_suspect (&watch_key->polls, now_us) || is_wanted;
  }
  if (is_wanted)
    wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* Marks watch keys whose poll is due as pending; returns when the next poll is due. */
static gint64
add_due (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = MUSTER_WAIT_FOREVER;
  for (guint i = 0; i < self->watch_keys->len; i++) {
    MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    gint64 poll_us = muster_poll_plan_due_us (&watch_key->polls);
    if (poll_us <= now_us) {
      watch_key->is_stale = TRUE;
      add_pending (self, watch_key);
    }
    next_us = MIN (next_us, poll_us);
  }
  return next_us;
}

/* Waits for work; releases the lock meanwhile. */
static void
wait_for_work (MusterReadinessHub *self)
{
  if (self->changed_id != 0 || self->watch_keys->len == 0) {
    g_cond_wait (&self->wake, &self->lock);
    return;
  }
  gint64 wake_us = add_due (self);
  if (self->pending.length > 0)
    return;
  g_autoptr (GCancellable) pause_cancellable = g_cancellable_new ();
  self->pause_cancellable = pause_cancellable;
  g_mutex_unlock (&self->lock);
  /* Cancelled when there is work: not a failure. */
  (void)muster_clock_wait_until (self->clock, wake_us, pause_cancellable, NULL);
  g_mutex_lock (&self->lock);
  self->pause_cancellable = NULL;
}

static gpointer hub_thread (gpointer data);

/* --- askers and questions --- */

static MusterSubscriber *
subscriber_ref (MusterSubscriber *subscriber)
{
  g_atomic_ref_count_inc (&subscriber->refs);
  return subscriber;
}

static void
subscriber_unref (MusterSubscriber *subscriber)
{
  if (!g_atomic_ref_count_dec (&subscriber->refs))
    return;
  g_clear_object (&subscriber->session);
  g_free (subscriber);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSubscriber, subscriber_unref)

/* With the lock held: moves the subscriber, and the reference held by its queue; NULL: to none. */
static void
put_subscriber (MusterSubscriber *subscriber, GQueue *queue)
{
  if (subscriber->queue != NULL)
    g_queue_unlink (subscriber->queue, &subscriber->link);
  subscriber->queue = queue;
  if (queue != NULL)
    g_queue_push_tail_link (queue, &subscriber->link);
}

/* --- from outside --- */

/* Runs on a step's thread: must not block. */
static void
readiness_changed (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    watch_key->is_stale = TRUE;
    add_changed (self, watch_key);
  }
  wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* A change that waiters don't need to know only affects new subscribers. */
static void
note_model (MusterReadinessHub *self, const char *model, MusterModelChange change)
{
  gboolean is_change = change == MUSTER_MODEL_CLAIMED || change == MUSTER_MODEL_CHANGED;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    if (g_strcmp0 (watch_key->model, model) != 0)
      continue;
    watch_key->has_chief_changed = TRUE;
    watch_key->has_graph_changed |= change == MUSTER_MODEL_CLAIMED;
    if (is_change)
      add_changed (self, watch_key);
  }
  if (is_change)
    wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* The registry's listener. */
static void
on_model_changed (const char *model, MusterModelChange change, gpointer data)
{
  MusterReadinessHub *self = data;
  note_model (self, model, change);
  if (change == MUSTER_MODEL_PROGRESSED)
    return;
  for (guint i = 0; i < self->model_watchers->len; i++) {
    const ModelWatcher *watcher = &g_array_index (self->model_watchers, ModelWatcher, i);
    watcher->func (model, watcher->data);
  }
}

void
muster_readiness_hub_set_members (MusterReadinessHub *self, MusterMemberRegistry *members)
{
  self->members = members;
}

void
muster_readiness_hub_members_changed (MusterReadinessHub *self, const char *model)
{
  note_model (self, model, MUSTER_MODEL_CHANGED);
}

gboolean
muster_readiness_hub_waits_for_tasks (MusterReadinessHub *self, const char *model)
{
  MusterMemberCounts counts = {0};
  if (self->members != NULL)
    muster_member_registry_count (self->members, model, &counts);
  return counts.n_tasks < counts.min_tasks;
}

void
muster_readiness_hub_watch_models (MusterReadinessHub *self, MusterModelFunc func,
                                   gpointer user_data)
{
  const ModelWatcher watcher = {func, user_data};
  g_array_append_val (self->model_watchers, watcher);
}

MusterReadinessHub *
muster_readiness_hub_new (MusterMaster *master, MusterChiefRegistry *registry, MusterClock *clock)
{
  MusterReadinessHub *self = g_new0 (MusterReadinessHub, 1);
  self->master = g_object_ref (master);
  self->registry = registry;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->stop = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->wake);
  g_cond_init (&self->delivered);
  self->model_watchers = g_array_new (FALSE, FALSE, sizeof (ModelWatcher));
  self->watch_keys = g_ptr_array_new ();
  self->by_key = g_hash_table_new_full (muster_watch_key_hash, muster_watch_key_equal,
                                        muster_watch_key_free, NULL);
  g_queue_init (&self->pending);
  g_queue_init (&self->ended);
  self->changed_id = muster_master_on_readiness_changed (master, readiness_changed, self);
  if (registry != NULL)
    muster_chief_registry_set_listener (registry, on_model_changed, self);
  self->thread = g_thread_new ("readiness hub", hub_thread, self);
  return self;
}

void
muster_readiness_hub_free (MusterReadinessHub *self)
{
  if (self == NULL)
    return;
  if (self->changed_id != 0)
    muster_master_off_readiness_changed (self->master, self->changed_id);
  if (self->registry != NULL)
    muster_chief_registry_set_listener (self->registry, NULL, NULL);

  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  wake_up (self);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->stop);
  g_thread_join (self->thread);

  while (self->ended.length > 0) {
    MusterSubscriber *subscriber = self->ended.head->data;
    put_subscriber (subscriber, NULL);
    subscriber_unref (subscriber);
  }
  g_array_unref (self->model_watchers);
  g_ptr_array_unref (self->watch_keys);
  g_hash_table_unref (self->by_key);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->wake);
  g_cond_clear (&self->delivered);
  g_object_unref (self->stop);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_free (self);
}

MusterSubscriber *
muster_readiness_hub_subscribe (MusterReadinessHub *self, MusterSession *session,
                                const MusterWatchFor *what, MusterReadinessFunc func,
                                gpointer user_data)
{
  MusterSubscriber *subscriber = g_new0 (MusterSubscriber, 1);
  g_atomic_ref_count_init (&subscriber->refs);
  subscriber->session = session != NULL ? g_object_ref (session) : NULL;
  subscriber->func = func;
  subscriber->user_data = user_data;
  subscriber->link.data = subscriber;
  const MusterWatchKey key = {
      .graph = session != NULL ? muster_session_graph (session) : NULL,
      .session = session,
      .gate_op = (char *)what->ready_for_local_init_op,
      .ready_op = (char *)what->ready_op,
      .model = self->registry != NULL ? (char *)what->model : NULL,
  };
  gint64 now_us = muster_clock_now_us (self->clock);
  if (key.graph != NULL)
    (void)muster_graph_hash (key.graph); /* computed here, not under the lock */

  g_mutex_lock (&self->lock);
  MusterWatchKey *watch_key = g_hash_table_lookup (self->by_key, &key);
  if (watch_key == NULL)
    watch_key = add_watch_key (self, &key);
  else if (self->changed_id == 0 && muster_poll_plan_is_old (&watch_key->polls, now_us))
    watch_key->is_stale = TRUE; /* new subscribers mustn't get an old answer */
  subscriber->watch_key = watch_key;
  put_subscriber (subscriber, &watch_key->fresh);
  add_pending (self, watch_key);
  wake_up (self);
  g_mutex_unlock (&self->lock);
  return subscriber;
}

void
muster_readiness_hub_unsubscribe (MusterReadinessHub *self, MusterSubscriber *subscriber)
{
  g_mutex_lock (&self->lock);
  subscriber->left = TRUE;
  while (self->speaking == subscriber && g_thread_self () != self->thread)
    g_cond_wait (&self->delivered, &self->lock);
  /* The hub's thread may be running the question; it removes one without subscribers itself. */
  MusterWatchKey *watch_key = g_steal_pointer (&subscriber->watch_key);
  put_subscriber (subscriber, NULL);
  if (watch_key != NULL && !watch_key_has_subscribers (watch_key)) {
    add_pending (self, watch_key);
    wake_up (self);
  }
  g_mutex_unlock (&self->lock);
  subscriber_unref (subscriber);
}

gint64
muster_readiness_hub_changed_us (MusterReadinessHub *self)
{
  return self->changed_us;
}

guint
muster_readiness_hub_n_subscribers (MusterReadinessHub *self)
{
  guint n = 0;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    const MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    n += watch_key->notified.length + watch_key->fresh.length;
  }
  g_mutex_unlock (&self->lock);
  return n;
}

/* --- on the hub's thread, the lock held but where it says otherwise --- */

/* Releases the lock while the subscriber's function runs. */
static void
notify (MusterReadinessHub *self, MusterSubscriber *subscriber, const MusterReadiness *readiness,
        const GError *error)
{
  if (subscriber->left)
    return;
  self->speaking = subscriber;
  g_mutex_unlock (&self->lock);
  subscriber->func (readiness, self->round, error, subscriber->user_data);
  g_mutex_lock (&self->lock);
  self->speaking = NULL;
  g_cond_broadcast (&self->delivered);
}

/* Ends one subscription: it isn't notified any more, and only its unsubscribe remains (which may be
 * running, or done). */
static void
end_subscriber (MusterReadinessHub *self, MusterSubscriber *subscriber, const GError *error)
{
  if (subscriber->watch_key == NULL)
    return;
  g_autoptr (MusterSubscriber) held = subscriber_ref (subscriber);
  subscriber->watch_key = NULL;
  put_subscriber (subscriber, &self->ended);
  notify (self, subscriber, NULL, error);
}

/* Notifies the subscribers that don't have the current answer. Some may leave and others come
 * meanwhile. */
static void
notify_new (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  self->round++;
  /* Subscribers that come meanwhile have their own round. */
  for (guint n = watch_key->fresh.length; n > 0 && watch_key->fresh.length > 0 && !self->stopping;
       n--) {
    g_autoptr (MusterSubscriber) subscriber = subscriber_ref (watch_key->fresh.head->data);
    put_subscriber (subscriber, &watch_key->notified);
    notify (self, subscriber, &watch_key->current, NULL);
  }
}

/* Updates the ages of an earlier answer. */
static void
age_answer (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  muster_readiness_add_age (&watch_key->current, now_us - watch_key->reported_us);
  watch_key->reported_us = now_us;
}

/* Marks all subscribers for notification, the longest waiting first. */
static void
refresh_subscribers (MusterWatchKey *watch_key)
{
  while (watch_key->fresh.length > 0)
    put_subscriber (watch_key->fresh.head->data, &watch_key->notified);
  while (watch_key->notified.length > 0)
    put_subscriber (watch_key->notified.head->data, &watch_key->fresh);
}

/* Without the lock. */
static void
find_ops (MusterWatchKey *watch_key)
{
  muster_ready_op_find (&watch_key->gate, watch_key->gate_op, watch_key->graph);
  muster_ready_op_find (&watch_key->ready, watch_key->ready_op, watch_key->graph);
  watch_key->has_ops = TRUE;
}

/* Runs the ops in the first subscriber's session, without the lock. FALSE for a failure, which is
 * that session's: its subscriber gets it, and the next one's session is used. */
static gboolean
run_ops (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  GQueue *first = watch_key->notified.length > 0 ? &watch_key->notified : &watch_key->fresh;
  g_autoptr (MusterSubscriber) subscriber = subscriber_ref (first->head->data);
  watch_key->is_stale = FALSE;
  if (self->changed_id == 0)
    muster_poll_plan_begin (&watch_key->polls, muster_clock_now_us (self->clock));
  g_mutex_unlock (&self->lock);

  g_autoptr (GError) error = NULL;
  g_auto (MusterReadiness) ops = {0};
  /* A step's deadline is on the machine's clock, whatever the hub's clock. */
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PROBE_TIMEOUT);
  if (!watch_key->has_ops)
    find_ops (watch_key);
  ops.gate_open = ops.is_ready = subscriber->session == NULL;
  const gboolean is_answered =
      subscriber->session == NULL ||
      muster_readiness_probe (subscriber->session, &watch_key->gate, &watch_key->ready, deadline_us,
                              self->stop, &ops, &error);
  if (is_answered) {
    muster_readiness_clear (&watch_key->ops);
    watch_key->ops = ops;
    ops = (MusterReadiness){0};
  }

  g_mutex_lock (&self->lock);
  if (self->changed_id == 0)
    muster_poll_plan_end (&watch_key->polls, muster_clock_now_us (self->clock));
  if (!is_answered && !self->stopping) {
    watch_key->is_stale = TRUE;
    end_subscriber (self, subscriber, error);
  }
  return is_answered;
}

/* Without the lock. */
static void
compare_graphs (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  g_autoptr (MusterGraph) chiefs = muster_chief_registry_graph (self->registry, watch_key->model);
  g_clear_pointer (&watch_key->difference, g_free);
  if (chiefs != NULL && watch_key->graph != NULL)
    watch_key->difference = muster_graph_difference (watch_key->graph, chiefs);
}

/* Called before the registry is read: a later change causes another read. */
static gboolean
take_graph_change (MusterWatchKey *watch_key)
{
  gboolean has_changed = watch_key->has_graph_changed && watch_key->model != NULL;
  watch_key->has_chief_changed = watch_key->has_graph_changed = FALSE;
  return has_changed;
}

/* After it: plans the next poll, if the master is polled. */
static void
plan_poll (MusterReadinessHub *self, MusterWatchKey *watch_key, gboolean has_run)
{
  const MusterReadiness *current = &watch_key->current;
  gboolean is_settled =
      current->is_ready || (current->chief != NULL && current->chief->phase == MUSTER_CHIEF_OVER);
  if (self->changed_id == 0)
    muster_poll_plan_next (&watch_key->polls, muster_clock_now_us (self->clock), is_settled,
                           has_run, muster_clock_random (self->clock));
}

/* A job that waits for tasks isn't ready. Without the lock. */
static void
take_tasks (MusterReadinessHub *self, const MusterWatchKey *watch_key, MusterReadiness *now)
{
  MusterMemberCounts counts;
  if (self->members == NULL || watch_key->model == NULL ||
      (now->chief != NULL && now->chief->phase == MUSTER_CHIEF_OVER))
    return;
  muster_member_registry_count (self->members, watch_key->model, &counts);
  muster_readiness_hold_for_tasks (now, counts.n_tasks, counts.min_tasks);
}

/* Computes the current answer, from the ops first and then the registry, so that a chief that has
 * started meanwhile decides. FALSE if there is none yet. */
static gboolean
find_answer (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  gboolean has_run = watch_key->is_stale;
  if (has_run && !run_ops (self, watch_key))
    return FALSE;
  gboolean has_graph_changed = take_graph_change (watch_key);
  g_mutex_unlock (&self->lock);
  if (has_graph_changed)
    compare_graphs (self, watch_key);
  g_auto (MusterReadiness) now = {0};
  gboolean is_announced = watch_key->model != NULL;
  MusterAnnouncement *chief =
      is_announced ? muster_chief_registry_find (self->registry, watch_key->model) : NULL;
  muster_readiness_apply_chief (&now, &watch_key->ops, is_announced, chief);
  now.graph_difference = g_strdup (watch_key->difference);
  take_tasks (self, watch_key, &now);
  gboolean is_change =
      watch_key->current.version == 0 || muster_readiness_changed (&watch_key->current, &now);
  g_mutex_lock (&self->lock);
  /* A master that doesn't report changes may have changed before its chief announced it. */
  if (is_change && !has_run && self->changed_id == 0 && !muster_chief_decides (chief)) {
    watch_key->is_stale = TRUE;
    return FALSE;
  }
  muster_readiness_keep (&watch_key->current, &now, is_change);
  watch_key->reported_us = muster_clock_now_us (self->clock);
  self->changed_us = is_change ? watch_key->changed_us : 0;
  watch_key->changed_us = 0;
  if (is_change)
    refresh_subscribers (watch_key);
  plan_poll (self, watch_key, has_run);
  return TRUE;
}

/* Processes one watch key. */
static void
process (MusterReadinessHub *self, MusterWatchKey *watch_key)
{
  if (!watch_key_has_subscribers (watch_key)) {
    remove_watch_key (self, watch_key);
    return;
  }
  gboolean is_answered = TRUE;
  self->changed_us = 0;
  if (watch_key->is_stale || watch_key->has_chief_changed)
    is_answered = find_answer (self, watch_key);
  else
    age_answer (self, watch_key);
  if (is_answered)
    notify_new (self, watch_key);
  if (!is_answered || !watch_key_has_subscribers (watch_key) || watch_key->fresh.length > 0)
    add_pending (self, watch_key);
}

static void
end_all (MusterReadinessHub *self)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED,
                                                  "the watch ended: the server is stopping");
  for (guint i = 0; i < self->watch_keys->len; i++) {
    MusterWatchKey *watch_key = self->watch_keys->pdata[i];
    while (watch_key->notified.length > 0)
      end_subscriber (self, watch_key->notified.head->data, error);
    while (watch_key->fresh.length > 0)
      end_subscriber (self, watch_key->fresh.head->data, error);
  }
}

static gpointer
hub_thread (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  while (!self->stopping) {
    GList *next = g_queue_pop_head_link (&self->pending);
    if (next == NULL) {
      wait_for_work (self);
      continue;
    }
    MusterWatchKey *watch_key = next->data;
    watch_key->is_pending = FALSE;
    process (self, watch_key);
  }
  end_all (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}
