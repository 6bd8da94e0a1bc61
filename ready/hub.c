// SPDX-License-Identifier: Apache-2.0
#include "ready/hub.h"

#include "base/hash.h"
#include "graph/graph_difference.h"
#include "ready/chief_gate.h"
#include "ready/countdown.h"
#include "ready/rate_limiter.h"
#include "ready/readiness.h"

/* A question that takes longer than this has failed: it must not keep the others waiting. */
#define PROBE_TIMEOUT (60 * MUSTER_SECOND)
/* Between two looks at a master that can't tell of changes, once everybody has heard that the model
 * is ready: only that it no longer is would be news. */
#define POLL_SETTLED (10 * MUSTER_SECOND)

/* Between two looks at a master that can't tell of changes: one poller for all askers may look more
 * often than each of them would. */
#define MAX_POLL_INTERVAL_US MUSTER_SECOND

/* Its first block never changes. What is said to be the thread's is the hub's thread's alone; all
 * else is guarded by the hub's lock. */
typedef struct {
  MusterGraph *graph;     /* (owned) (nullable) */
  MusterSession *session; /* (owned) (nullable) only where there is no graph to compare */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  char *model;            /* (owned) (nullable) */

  guint index;     /* among the hub's questions */
  GQueue notified; /* (element-type MusterSubscriber) owned; they have heard the present turn */
  GQueue fresh; /* (element-type MusterSubscriber) owned; they haven't, in the order to be told */
  GList link;   /* on the agenda */
  gboolean is_on_agenda;
  gboolean is_stale;          /* something changed since the ops were run */
  gboolean has_chief_changed; /* something changed since the board was looked at */
  gint64 polled_us;           /* when the ops were last run, … */
  gint64 poll_us;             /* … and are to be run again, where changes must be polled */
  MusterCountdown countdown;
  MusterRateLimiter limiter; /* the same, where a change is suspected */
  gboolean is_settled;       /* nobody waits for the answer to change */

  MusterReadiness ops;       /* the thread's: what the ops said last */
  MusterReadiness readiness; /* the thread's: the present answer, once known */
  gboolean is_known;         /* the thread's */
  gint64 reported_us;        /* the thread's: the instant from which the turn's ages count */
  MusterGraph *compared; /* the thread's (owned) (nullable): the chief's graph, from which … */
  char *difference;      /* the thread's (owned) (nullable): … this one differs so */
} WatchKey;

struct _MusterSubscriber {
  gatomicrefcount refs;
  WatchKey *watch_key;    /* (not owned) (nullable) NULL once it has ended; guarded by lock */
  MusterSession *session; /* (owned) */
  MusterReadinessFunc func;
  gpointer user_data;
  GQueue *queue; /* (not owned) which holds it by link; guarded by lock */
  GList link;
  gboolean left; /* guarded by lock */
};

struct _MusterReadinessHub {
  MusterMaster *master;          /* (owned) */
  MusterChiefRegistry *registry; /* (not owned) (nullable) */
  MusterClock *clock;            /* (owned) */
  gulong changed_id;             /* 0: the master can't tell of changes */
  GThread *thread;
  GCancellable *stop; /* (owned) ends the question that is being run */
  guint64 round;      /* the thread's */

  GMutex lock;
  GCond wake;            /* there is something to do */
  GCond delivered;       /* a call of an asker's function has returned */
  GCancellable *nap;     /* (owned) (nullable) ends the pause between two looks; guarded by lock */
  gboolean stopping;     /* guarded by lock */
  GPtrArray *watch_keys; /* (element-type WatchKey) guarded by lock */
  GHashTable *by_what;   /* (element-type WatchKey) owned: the same, as a set; guarded by lock */
  GQueue agenda; /* (element-type WatchKey) those with something to be done; guarded by lock */
  GQueue ended;  /* (element-type MusterSubscriber) owned: told of their end, not left; guarded by
                    lock */
  MusterSubscriber *speaking; /* (not owned) (nullable) whose function runs now; guarded by lock */
};

/* --- questions --- */

/* With an address as the seed, so that nobody asks questions that all collide. */
static guint
hash_text (const char *text)
{
  static const char seed;
  return text != NULL ? (guint)muster_hash_bytes (text, strlen (text), (guint64)(guintptr)&seed)
                      : 0;
}

/* For a table of them. Two are one question where the graphs are the same bytes; without a graph,
 * where the session is the same. */
static guint
watch_key_hash (gconstpointer data)
{
  const WatchKey *watch_key = data;
  guint hash = watch_key->graph != NULL ? (guint)muster_graph_hash (watch_key->graph)
                                        : g_direct_hash (watch_key->session);
  hash = hash * 31 + hash_text (watch_key->gate_op);
  hash = hash * 31 + hash_text (watch_key->ready_op);
  return hash * 31 + hash_text (watch_key->model);
}

static gboolean
watch_key_equal (gconstpointer a, gconstpointer b)
{
  const WatchKey *one = a;
  const WatchKey *other = b;
  if (g_strcmp0 (one->gate_op, other->gate_op) != 0 ||
      g_strcmp0 (one->ready_op, other->ready_op) != 0 || g_strcmp0 (one->model, other->model) != 0)
    return FALSE;
  if (one->graph == NULL || other->graph == NULL)
    return one->graph == other->graph && one->session == other->session;
  return muster_graph_equal (one->graph, other->graph);
}

static void
watch_key_free (gpointer data)
{
  WatchKey *watch_key = data;
  g_clear_pointer (&watch_key->graph, muster_graph_unref);
  g_clear_object (&watch_key->session);
  g_free (watch_key->gate_op);
  g_free (watch_key->ready_op);
  g_free (watch_key->model);
  muster_readiness_clear (&watch_key->ops);
  muster_readiness_clear (&watch_key->readiness);
  g_clear_pointer (&watch_key->compared, muster_graph_unref);
  g_free (watch_key->difference);
  g_free (watch_key);
}

static gboolean
watch_key_has_subscribers (const WatchKey *self)
{
  return self->notified.length + self->fresh.length > 0;
}

/* All below with the lock held. */

/* A question that nobody has asked yet: what is copied, of which the first block is looked at. */
static WatchKey *
add_watch_key (MusterReadinessHub *self, const WatchKey *what)
{
  WatchKey *watch_key = g_new0 (WatchKey, 1);
  watch_key->graph = what->graph != NULL ? muster_graph_ref (what->graph) : NULL;
  watch_key->session = what->graph == NULL ? g_object_ref (what->session) : NULL;
  watch_key->gate_op = g_strdup (what->gate_op);
  watch_key->ready_op = g_strdup (what->ready_op);
  watch_key->model = g_strdup (what->model);
  watch_key->link.data = watch_key;
  watch_key->is_stale = TRUE;
  watch_key->index = self->watch_keys->len;
  muster_countdown_start (&watch_key->countdown, muster_clock_now_us (self->clock),
                          MUSTER_WAIT_FOREVER, MAX_POLL_INTERVAL_US);
  muster_rate_limiter_init (&watch_key->limiter);
  g_ptr_array_add (self->watch_keys, watch_key);
  g_hash_table_add (self->by_what, watch_key);
  return watch_key;
}

static void
remove_watch_key (MusterReadinessHub *self, WatchKey *watch_key)
{
  WatchKey *last = self->watch_keys->pdata[self->watch_keys->len - 1];
  last->index = watch_key->index;
  g_ptr_array_remove_index_fast (self->watch_keys, watch_key->index);
  g_hash_table_remove (self->by_what, watch_key);
}

static void
put_on_agenda (MusterReadinessHub *self, WatchKey *watch_key)
{
  if (!watch_key->is_on_agenda)
    g_queue_push_tail_link (&self->agenda, &watch_key->link);
  watch_key->is_on_agenda = TRUE;
}

/* There is something to do for the hub's thread. */
static void
wake_up (MusterReadinessHub *self)
{
  g_cond_signal (&self->wake);
  if (self->nap != NULL)
    g_cancellable_cancel (self->nap);
}

/* --- looks --- */

/* When to look again at a master that can't tell of changes: after a look, or when it begins or
 * ends to matter little. */
static void
plan_poll (MusterReadinessHub *self, WatchKey *watch_key, gboolean has_just_run)
{
  const MusterAnnouncement *chief = watch_key->readiness.chief;
  gboolean was_settled = watch_key->is_settled;
  gint64 now_us = muster_clock_now_us (self->clock);
  watch_key->is_settled =
      watch_key->readiness.is_ready || (chief != NULL && chief->phase == MUSTER_CHIEF_OVER);
  if (!has_just_run && watch_key->is_settled == was_settled)
    return;
  if (watch_key->is_settled != was_settled) { /* what comes now begins anew */
    gint64 cost_us = watch_key->countdown.costs_us[0];
    muster_countdown_start (&watch_key->countdown, now_us, MUSTER_WAIT_FOREVER,
                            MAX_POLL_INTERVAL_US);
    muster_countdown_polled (&watch_key->countdown, cost_us);
  }
  if (watch_key->is_settled) {
    watch_key->poll_us = muster_deadline_after (now_us, POLL_SETTLED);
  } else {
    watch_key->poll_us =
        muster_countdown_next_us (&watch_key->countdown, now_us, muster_clock_random (self->clock));
  }
}

/* TRUE for an answer so old that nobody who comes in should hear it. */
static gboolean
is_old (MusterReadinessHub *self, const WatchKey *watch_key, gint64 now_us)
{
  return self->changed_id == 0 && now_us - watch_key->polled_us > MAX_POLL_INTERVAL_US;
}

/* Nobody who has heard that a model is ready waits for it not to be. */
void
muster_readiness_hub_may_have_changed (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean is_wanted = FALSE;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len && self->changed_id == 0; i++) {
    WatchKey *watch_key = self->watch_keys->pdata[i];
    if (watch_key->is_settled)
      continue;
    muster_rate_limiter_note_change (&watch_key->limiter, now_us);
    is_wanted = TRUE;
  }
  if (is_wanted)
    wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* Those whose time to be looked at again has come go on the agenda; returns when the next one's
 * will. */
static gint64
plan_agenda (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = MUSTER_WAIT_FOREVER;
  for (guint i = 0; i < self->watch_keys->len; i++) {
    WatchKey *watch_key = self->watch_keys->pdata[i];
    gint64 poll_us = MIN (watch_key->poll_us, watch_key->limiter.due_us);
    if (poll_us <= now_us) {
      watch_key->is_stale = TRUE;
      put_on_agenda (self, watch_key);
    }
    next_us = MIN (next_us, poll_us);
  }
  return next_us;
}

/* The thread waits until there may be something to do, the lock let go meanwhile. */
static void
wait_for_work (MusterReadinessHub *self)
{
  if (self->changed_id != 0 || self->watch_keys->len == 0) {
    g_cond_wait (&self->wake, &self->lock);
    return;
  }
  gint64 wake_us = plan_agenda (self);
  if (self->agenda.length > 0)
    return;
  g_autoptr (GCancellable) nap = g_cancellable_new ();
  self->nap = nap;
  g_mutex_unlock (&self->lock);
  /* Cut short by whoever has something to do for the thread: no failure. */
  (void)muster_clock_wait_until (self->clock, wake_us, nap, NULL);
  g_mutex_lock (&self->lock);
  self->nap = NULL;
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
  g_object_unref (subscriber->session);
  g_free (subscriber);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSubscriber, subscriber_unref)

/* With the lock held: moves the asker, and the reference by which a queue holds it; NULL: to
 * none. */
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

/* On a step's thread: it must not be held up. */
static void
readiness_changed (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    WatchKey *watch_key = self->watch_keys->pdata[i];
    watch_key->is_stale = TRUE;
    put_on_agenda (self, watch_key);
  }
  wake_up (self);
  g_mutex_unlock (&self->lock);
}

void
muster_readiness_hub_model_changed (MusterReadinessHub *self, const char *model)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    WatchKey *watch_key = self->watch_keys->pdata[i];
    if (g_strcmp0 (watch_key->model, model) != 0)
      continue;
    watch_key->has_chief_changed = TRUE;
    put_on_agenda (self, watch_key);
  }
  wake_up (self);
  g_mutex_unlock (&self->lock);
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
  self->watch_keys = g_ptr_array_new ();
  self->by_what = g_hash_table_new_full (watch_key_hash, watch_key_equal, watch_key_free, NULL);
  g_queue_init (&self->agenda);
  g_queue_init (&self->ended);
  self->changed_id = muster_master_on_readiness_changed (master, readiness_changed, self);
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
  g_ptr_array_unref (self->watch_keys);
  g_hash_table_unref (self->by_what);
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
  subscriber->session = g_object_ref (session);
  subscriber->func = func;
  subscriber->user_data = user_data;
  subscriber->link.data = subscriber;
  const WatchKey key = {
      .graph = muster_session_graph (session),
      .session = session,
      .gate_op = (char *)what->ready_for_local_init_op,
      .ready_op = (char *)what->ready_op,
      .model = self->registry != NULL ? (char *)what->model : NULL,
  };
  gint64 now_us = muster_clock_now_us (self->clock);
  if (key.graph != NULL)
    (void)muster_graph_hash (key.graph); /* made here, not under the lock */

  g_mutex_lock (&self->lock);
  WatchKey *watch_key = g_hash_table_lookup (self->by_what, &key);
  if (watch_key == NULL)
    watch_key = add_watch_key (self, &key);
  else if (is_old (self, watch_key, now_us))
    watch_key->is_stale = TRUE; /* nobody comes in on an old answer */
  subscriber->watch_key = watch_key;
  put_subscriber (subscriber, &watch_key->fresh);
  put_on_agenda (self, watch_key);
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
  /* The hub's thread may be running the question: it forgets one that nobody asks itself. */
  WatchKey *watch_key = g_steal_pointer (&subscriber->watch_key);
  put_subscriber (subscriber, NULL);
  if (watch_key != NULL && !watch_key_has_subscribers (watch_key)) {
    put_on_agenda (self, watch_key);
    wake_up (self);
  }
  g_mutex_unlock (&self->lock);
  subscriber_unref (subscriber);
}

guint
muster_readiness_hub_n_subscribers (MusterReadinessHub *self)
{
  guint n = 0;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->watch_keys->len; i++) {
    const WatchKey *watch_key = self->watch_keys->pdata[i];
    n += watch_key->notified.length + watch_key->fresh.length;
  }
  g_mutex_unlock (&self->lock);
  return n;
}

/* --- on the hub's thread, the lock held but where it says otherwise --- */

/* The lock is let go while the asker's function runs. */
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

/* Ends one asker: from here on it is no longer asked for, only its owner's leave is awaited (which
 * may be under way, or done). */
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

/* Tells the present turn to those who haven't heard it. Some may leave and others come meanwhile.
 */
static void
notify_new (MusterReadinessHub *self, WatchKey *watch_key)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  muster_readiness_add_age (&watch_key->readiness, now_us - watch_key->reported_us);
  watch_key->reported_us = now_us;
  self->round++;
  /* Who comes meanwhile has a round of its own. */
  for (guint n = watch_key->fresh.length; n > 0 && watch_key->fresh.length > 0 && !self->stopping;
       n--) {
    g_autoptr (MusterSubscriber) subscriber = subscriber_ref (watch_key->fresh.head->data);
    put_subscriber (subscriber, &watch_key->notified);
    notify (self, subscriber, &watch_key->readiness, NULL);
  }
}

/* All are to be told what is new, those who have waited longest first. */
static void
take_readiness (MusterReadinessHub *self, WatchKey *watch_key, MusterReadiness *readiness)
{
  gboolean is_news =
      !watch_key->is_known || muster_readiness_changed (&watch_key->readiness, readiness);
  muster_readiness_clear (&watch_key->readiness);
  watch_key->readiness = *readiness;
  *readiness = (MusterReadiness){0};
  watch_key->reported_us = muster_clock_now_us (self->clock);
  watch_key->is_known = TRUE;
  if (!is_news)
    return;
  while (watch_key->fresh.length > 0)
    put_subscriber (watch_key->fresh.head->data, &watch_key->notified);
  while (watch_key->notified.length > 0)
    put_subscriber (watch_key->notified.head->data, &watch_key->fresh);
}

/* Runs the ops in the first asker's session, the lock let go meanwhile. FALSE for a failure, which
 * is that session's: its asker hears it, and the next one's session is used. */
static gboolean
run_ops (MusterReadinessHub *self, WatchKey *watch_key)
{
  GQueue *first = watch_key->notified.length > 0 ? &watch_key->notified : &watch_key->fresh;
  g_autoptr (MusterSubscriber) subscriber = subscriber_ref (first->head->data);
  watch_key->is_stale = FALSE;
  watch_key->polled_us = muster_clock_now_us (self->clock);
  gboolean was_limited = muster_rate_limiter_begin_poll (&watch_key->limiter, watch_key->polled_us);
  g_mutex_unlock (&self->lock);

  g_autoptr (GError) error = NULL;
  g_auto (MusterReadiness) ops = {0};
  /* A deadline of a step is on the machine's clock, whatever clock the hub naps on. */
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PROBE_TIMEOUT);
  gboolean answered =
      muster_readiness_probe (subscriber->session, watch_key->gate_op, watch_key->ready_op,
                              deadline_us, self->stop, &ops, &error);
  gint64 ended_us = muster_clock_now_us (self->clock);
  if (answered) {
    muster_readiness_clear (&watch_key->ops);
    watch_key->ops = ops;
    ops = (MusterReadiness){0};
  }

  g_mutex_lock (&self->lock);
  muster_countdown_polled (&watch_key->countdown, ended_us - watch_key->polled_us);
  if (was_limited)
    muster_rate_limiter_end_poll (&watch_key->limiter, ended_us, ended_us - watch_key->polled_us);
  if (!answered && !self->stopping) {
    watch_key->is_stale = TRUE;
    end_subscriber (self, subscriber, error);
  }
  return answered;
}

/* Without the lock. */
static void
compare_graphs (MusterReadinessHub *self, WatchKey *watch_key, MusterReadiness *readiness)
{
  g_autoptr (MusterGraph) graph = muster_chief_registry_graph (self->registry, watch_key->model);
  if (graph != watch_key->compared) {
    g_clear_pointer (&watch_key->difference, g_free);
    g_clear_pointer (&watch_key->compared, muster_graph_unref);
    if (graph != NULL && watch_key->graph != NULL)
      watch_key->difference = muster_graph_difference (watch_key->graph, graph);
    watch_key->compared = g_steal_pointer (&graph);
  }
  readiness->graph_difference = g_strdup (watch_key->difference);
}

/* Hears what is announced of the model, the lock let go meanwhile, and makes a turn of it and of
 * what the ops said. FALSE if they must be run again first. */
static gboolean
read_registry (MusterReadinessHub *self, WatchKey *watch_key, gboolean has_just_run,
               MusterReadiness *readiness)
{
  watch_key->has_chief_changed = FALSE;
  g_mutex_unlock (&self->lock);
  MusterAnnouncement *chief = muster_chief_registry_find (self->registry, watch_key->model);
  gboolean is_news = muster_chief_changed (watch_key->readiness.chief, chief);
  muster_readiness_apply_chief (readiness, &watch_key->ops, TRUE, chief);
  compare_graphs (self, watch_key, readiness);
  g_mutex_lock (&self->lock);
  /* A master that can't tell of changes may have changed before its chief said so. */
  return has_just_run || self->changed_id != 0 || !is_news || muster_chief_decides (chief);
}

/* Finds the present answer; FALSE if there is none yet. */
static gboolean
find_answer (MusterReadinessHub *self, WatchKey *watch_key)
{
  gboolean was_stale = watch_key->is_stale;
  g_auto (MusterReadiness) readiness = {0};
  if (was_stale && !run_ops (self, watch_key))
    return FALSE;
  if (watch_key->model == NULL) {
    muster_readiness_apply_chief (&readiness, &watch_key->ops, FALSE, NULL);
  } else if (!read_registry (self, watch_key, was_stale, &readiness)) {
    watch_key->is_stale = TRUE;
    return FALSE;
  }
  take_readiness (self, watch_key, &readiness);
  plan_poll (self, watch_key, was_stale);
  return TRUE;
}

/* Does what is to be done about one question. */
static void
attend (MusterReadinessHub *self, WatchKey *watch_key)
{
  if (!watch_key_has_subscribers (watch_key)) {
    remove_watch_key (self, watch_key);
    return;
  }
  gboolean is_answered = TRUE;
  if (watch_key->is_stale || watch_key->has_chief_changed)
    is_answered = find_answer (self, watch_key);
  if (is_answered)
    notify_new (self, watch_key);
  if (!is_answered || !watch_key_has_subscribers (watch_key) || watch_key->fresh.length > 0)
    put_on_agenda (self, watch_key);
}

static void
end_all (MusterReadinessHub *self)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED,
                                                  "the watch ended: the server is stopping");
  for (guint i = 0; i < self->watch_keys->len; i++) {
    WatchKey *watch_key = self->watch_keys->pdata[i];
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
    GList *next = g_queue_pop_head_link (&self->agenda);
    if (next == NULL) {
      wait_for_work (self);
      continue;
    }
    WatchKey *watch_key = next->data;
    watch_key->is_on_agenda = FALSE;
    attend (self, watch_key);
  }
  end_all (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}
