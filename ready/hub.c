// SPDX-License-Identifier: Apache-2.0
#include "ready/hub.h"

#include "base/hash.h"
#include "graph/graph_difference.h"
#include "ready/chief_gate.h"
#include "ready/countdown.h"
#include "ready/rate_limiter.h"
#include "ready/readiness.h"

/* A question that takes longer than this has failed: it must not keep the others waiting. */
#define QUESTION_TIMEOUT (60 * MUSTER_SECOND)
/* Between two looks at a master that can't tell of changes, once everybody has heard that the model
 * is ready: only that it no longer is would be news. */
#define POLL_SETTLED (10 * MUSTER_SECOND)

/* Between two looks at a master that can't tell of changes: one poller for all askers may look more
 * often than each of them would. */
#define MUSTER_HUB_POLL_CEILING MUSTER_SECOND

/* Its first block never changes. What is said to be the thread's is the hub's thread's alone; all
 * else is guarded by the hub's lock. */
typedef struct {
  MusterGraph *graph;     /* (owned) (nullable) */
  MusterSession *session; /* (owned) (nullable) only where there is no graph to compare */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  char *model;            /* (owned) (nullable) */

  guint index;  /* among the hub's questions */
  GQueue told;  /* (element-type MusterAsker) owned; they have heard the present turn */
  GQueue fresh; /* (element-type MusterAsker) owned; they haven't, in the order to be told */
  GList link;   /* on the agenda */
  gboolean is_on_agenda;
  gboolean is_stale;   /* something changed since the ops were run */
  gboolean is_unheard; /* something changed since the board was looked at */
  gint64 looked_us;    /* when the ops were last run, … */
  gint64 look_us;      /* … and are to be run again, where changes must be polled */
  MusterCountdown countdown;
  MusterHunch hunch;   /* the same, where a change is suspected */
  gboolean is_settled; /* nobody waits for the answer to change */

  MusterTurn ops;        /* the thread's: what the ops said last */
  MusterTurn turn;       /* the thread's: the present answer, once known */
  gboolean is_known;     /* the thread's */
  gint64 told_us;        /* the thread's: the instant from which the turn's ages count */
  MusterGraph *compared; /* the thread's (owned) (nullable): the chief's graph, from which … */
  char *difference;      /* the thread's (owned) (nullable): … this one differs so */
} MusterQuestion;

struct _MusterAsker {
  gatomicrefcount refs;
  MusterQuestion *question; /* (not owned) (nullable) NULL once it has ended; guarded by lock */
  MusterSession *session;   /* (owned) */
  MusterTurnFunc func;
  gpointer user_data;
  GQueue *queue; /* (not owned) which holds it by link; guarded by lock */
  GList link;
  gboolean left; /* guarded by lock */
};

struct _MusterReadinessHub {
  MusterMaster *master; /* (owned) */
  MusterBoard *board;   /* (not owned) (nullable) */
  MusterClock *clock;   /* (owned) */
  gulong changed_id;    /* 0: the master can't tell of changes */
  GThread *thread;
  GCancellable *stop; /* (owned) ends the question that is being run */
  guint64 round;      /* the thread's */

  GMutex lock;
  GCond wake;           /* there is something to do */
  GCond told;           /* a call of an asker's function has returned */
  GCancellable *nap;    /* (owned) (nullable) ends the pause between two looks; guarded by lock */
  gboolean stopping;    /* guarded by lock */
  GPtrArray *questions; /* (element-type MusterQuestion) guarded by lock */
  GHashTable
      *by_what; /* (element-type MusterQuestion) owned: the same, as a set; guarded by lock */
  GQueue
      agenda;   /* (element-type MusterQuestion) those with something to be done; guarded by lock */
  GQueue ended; /* (element-type MusterAsker) owned: told of their end, not left; guarded by lock */
  MusterAsker *speaking; /* (not owned) (nullable) whose function runs now; guarded by lock */
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
muster_question_hash (gconstpointer data)
{
  const MusterQuestion *question = data;
  guint hash = question->graph != NULL ? (guint)muster_graph_hash (question->graph)
                                       : g_direct_hash (question->session);
  hash = hash * 31 + hash_text (question->gate_op);
  hash = hash * 31 + hash_text (question->ready_op);
  return hash * 31 + hash_text (question->model);
}

static gboolean
muster_question_equal (gconstpointer a, gconstpointer b)
{
  const MusterQuestion *one = a;
  const MusterQuestion *other = b;
  if (g_strcmp0 (one->gate_op, other->gate_op) != 0 ||
      g_strcmp0 (one->ready_op, other->ready_op) != 0 || g_strcmp0 (one->model, other->model) != 0)
    return FALSE;
  if (one->graph == NULL || other->graph == NULL)
    return one->graph == other->graph && one->session == other->session;
  return muster_graph_equal (one->graph, other->graph);
}

static void
muster_question_free (gpointer data)
{
  MusterQuestion *question = data;
  g_clear_pointer (&question->graph, muster_graph_unref);
  g_clear_object (&question->session);
  g_free (question->gate_op);
  g_free (question->ready_op);
  g_free (question->model);
  muster_turn_clear (&question->ops);
  muster_turn_clear (&question->turn);
  g_clear_pointer (&question->compared, muster_graph_unref);
  g_free (question->difference);
  g_free (question);
}

static gboolean
muster_question_has_askers (const MusterQuestion *self)
{
  return self->told.length + self->fresh.length > 0;
}

/* All below with the lock held. */

/* A question that nobody has asked yet: what is copied, of which the first block is looked at. */
static MusterQuestion *
muster_hub_add_question (MusterReadinessHub *self, const MusterQuestion *what)
{
  MusterQuestion *question = g_new0 (MusterQuestion, 1);
  question->graph = what->graph != NULL ? muster_graph_ref (what->graph) : NULL;
  question->session = what->graph == NULL ? g_object_ref (what->session) : NULL;
  question->gate_op = g_strdup (what->gate_op);
  question->ready_op = g_strdup (what->ready_op);
  question->model = g_strdup (what->model);
  question->link.data = question;
  question->is_stale = TRUE;
  question->index = self->questions->len;
  muster_countdown_start (&question->countdown, muster_clock_now_us (self->clock),
                          MUSTER_WAIT_FOREVER, MUSTER_HUB_POLL_CEILING);
  muster_hunch_init (&question->hunch);
  g_ptr_array_add (self->questions, question);
  g_hash_table_add (self->by_what, question);
  return question;
}

static void
muster_hub_forget_question (MusterReadinessHub *self, MusterQuestion *question)
{
  MusterQuestion *last = self->questions->pdata[self->questions->len - 1];
  last->index = question->index;
  g_ptr_array_remove_index_fast (self->questions, question->index);
  g_hash_table_remove (self->by_what, question);
}

static void
muster_hub_put_on_agenda (MusterReadinessHub *self, MusterQuestion *question)
{
  if (!question->is_on_agenda)
    g_queue_push_tail_link (&self->agenda, &question->link);
  question->is_on_agenda = TRUE;
}

/* There is something to do for the hub's thread. */
static void
muster_hub_wake_up (MusterReadinessHub *self)
{
  g_cond_signal (&self->wake);
  if (self->nap != NULL)
    g_cancellable_cancel (self->nap);
}

/* --- looks --- */

/* When to look again at a master that can't tell of changes: after a look, or when it begins or
 * ends to matter little. */
static void
muster_hub_plan_look (MusterReadinessHub *self, MusterQuestion *question, gboolean has_just_run)
{
  const MusterAnnouncement *chief = question->turn.chief;
  gboolean was_settled = question->is_settled;
  gint64 now_us = muster_clock_now_us (self->clock);
  question->is_settled =
      question->turn.is_ready || (chief != NULL && chief->phase == MUSTER_CHIEF_OVER);
  if (!has_just_run && question->is_settled == was_settled)
    return;
  if (question->is_settled != was_settled) { /* what comes now begins anew */
    gint64 cost_us = question->countdown.costs_us[0];
    muster_countdown_start (&question->countdown, now_us, MUSTER_WAIT_FOREVER,
                            MUSTER_HUB_POLL_CEILING);
    muster_countdown_looked (&question->countdown, cost_us);
  }
  if (question->is_settled) {
    question->look_us = muster_deadline_after (now_us, POLL_SETTLED);
  } else {
    question->look_us =
        muster_countdown_next_us (&question->countdown, now_us, muster_clock_random (self->clock));
  }
}

/* TRUE for an answer so old that nobody who comes in should hear it. */
static gboolean
muster_hub_is_old (MusterReadinessHub *self, const MusterQuestion *question, gint64 now_us)
{
  return self->changed_id == 0 && now_us - question->looked_us > MUSTER_HUB_POLL_CEILING;
}

/* Nobody who has heard that a model is ready waits for it not to be. */
void
muster_readiness_hub_may_have_changed (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gboolean is_wanted = FALSE;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len && self->changed_id == 0; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    if (question->is_settled)
      continue;
    muster_hunch_note (&question->hunch, now_us);
    is_wanted = TRUE;
  }
  if (is_wanted)
    muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
}

/* Those whose time to be looked at again has come go on the agenda; returns when the next one's
 * will. */
static gint64
plan_agenda (MusterReadinessHub *self)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = MUSTER_WAIT_FOREVER;
  for (guint i = 0; i < self->questions->len; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    gint64 look_us = MIN (question->look_us, question->hunch.due_us);
    if (look_us <= now_us) {
      question->is_stale = TRUE;
      muster_hub_put_on_agenda (self, question);
    }
    next_us = MIN (next_us, look_us);
  }
  return next_us;
}

/* The thread waits until there may be something to do, the lock let go meanwhile. */
static void
muster_hub_rest (MusterReadinessHub *self)
{
  if (self->changed_id != 0 || self->questions->len == 0) {
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

static MusterAsker *
asker_ref (MusterAsker *asker)
{
  g_atomic_ref_count_inc (&asker->refs);
  return asker;
}

static void
asker_unref (MusterAsker *asker)
{
  if (!g_atomic_ref_count_dec (&asker->refs))
    return;
  g_object_unref (asker->session);
  g_free (asker);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAsker, asker_unref)

/* With the lock held: moves the asker, and the reference by which a queue holds it; NULL: to
 * none. */
static void
put_asker (MusterAsker *asker, GQueue *queue)
{
  if (asker->queue != NULL)
    g_queue_unlink (asker->queue, &asker->link);
  asker->queue = queue;
  if (queue != NULL)
    g_queue_push_tail_link (queue, &asker->link);
}

/* --- from outside --- */

/* On a step's thread: it must not be held up. */
static void
readiness_changed (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    question->is_stale = TRUE;
    muster_hub_put_on_agenda (self, question);
  }
  muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
}

void
muster_readiness_hub_model_changed (MusterReadinessHub *self, const char *model)
{
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    if (g_strcmp0 (question->model, model) != 0)
      continue;
    question->is_unheard = TRUE;
    muster_hub_put_on_agenda (self, question);
  }
  muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
}

MusterReadinessHub *
muster_readiness_hub_new (MusterMaster *master, MusterBoard *board, MusterClock *clock)
{
  MusterReadinessHub *self = g_new0 (MusterReadinessHub, 1);
  self->master = g_object_ref (master);
  self->board = board;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->stop = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->wake);
  g_cond_init (&self->told);
  self->questions = g_ptr_array_new ();
  self->by_what = g_hash_table_new_full (muster_question_hash, muster_question_equal,
                                         muster_question_free, NULL);
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
  muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->stop);
  g_thread_join (self->thread);

  while (self->ended.length > 0) {
    MusterAsker *asker = self->ended.head->data;
    put_asker (asker, NULL);
    asker_unref (asker);
  }
  g_ptr_array_unref (self->questions);
  g_hash_table_unref (self->by_what);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->wake);
  g_cond_clear (&self->told);
  g_object_unref (self->stop);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_free (self);
}

MusterAsker *
muster_readiness_hub_ask (MusterReadinessHub *self, MusterSession *session,
                          const MusterWatchFor *what, MusterTurnFunc func, gpointer user_data)
{
  MusterAsker *asker = g_new0 (MusterAsker, 1);
  g_atomic_ref_count_init (&asker->refs);
  asker->session = g_object_ref (session);
  asker->func = func;
  asker->user_data = user_data;
  asker->link.data = asker;
  const MusterQuestion key = {
      .graph = muster_session_graph (session),
      .session = session,
      .gate_op = (char *)what->ready_for_local_init_op,
      .ready_op = (char *)what->ready_op,
      .model = self->board != NULL ? (char *)what->model : NULL,
  };
  gint64 now_us = muster_clock_now_us (self->clock);
  if (key.graph != NULL)
    (void)muster_graph_hash (key.graph); /* made here, not under the lock */

  g_mutex_lock (&self->lock);
  MusterQuestion *question = g_hash_table_lookup (self->by_what, &key);
  if (question == NULL)
    question = muster_hub_add_question (self, &key);
  else if (muster_hub_is_old (self, question, now_us))
    question->is_stale = TRUE; /* nobody comes in on an old answer */
  asker->question = question;
  put_asker (asker, &question->fresh);
  muster_hub_put_on_agenda (self, question);
  muster_hub_wake_up (self);
  g_mutex_unlock (&self->lock);
  return asker;
}

void
muster_readiness_hub_leave (MusterReadinessHub *self, MusterAsker *asker)
{
  g_mutex_lock (&self->lock);
  asker->left = TRUE;
  while (self->speaking == asker && g_thread_self () != self->thread)
    g_cond_wait (&self->told, &self->lock);
  /* The hub's thread may be running the question: it forgets one that nobody asks itself. */
  MusterQuestion *question = g_steal_pointer (&asker->question);
  put_asker (asker, NULL);
  if (question != NULL && !muster_question_has_askers (question)) {
    muster_hub_put_on_agenda (self, question);
    muster_hub_wake_up (self);
  }
  g_mutex_unlock (&self->lock);
  asker_unref (asker);
}

guint
muster_readiness_hub_n_askers (MusterReadinessHub *self)
{
  guint n = 0;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len; i++) {
    const MusterQuestion *question = self->questions->pdata[i];
    n += question->told.length + question->fresh.length;
  }
  g_mutex_unlock (&self->lock);
  return n;
}

/* --- on the hub's thread, the lock held but where it says otherwise --- */

/* The lock is let go while the asker's function runs. */
static void
tell (MusterReadinessHub *self, MusterAsker *asker, const MusterTurn *turn, const GError *error)
{
  if (asker->left)
    return;
  self->speaking = asker;
  g_mutex_unlock (&self->lock);
  asker->func (turn, self->round, error, asker->user_data);
  g_mutex_lock (&self->lock);
  self->speaking = NULL;
  g_cond_broadcast (&self->told);
}

/* Ends one asker: from here on it is no longer asked for, only its owner's leave is awaited (which
 * may be under way, or done). */
static void
end_asker (MusterReadinessHub *self, MusterAsker *asker, const GError *error)
{
  if (asker->question == NULL)
    return;
  g_autoptr (MusterAsker) held = asker_ref (asker);
  asker->question = NULL;
  put_asker (asker, &self->ended);
  tell (self, asker, NULL, error);
}

/* Tells the present turn to those who haven't heard it. Some may leave and others come meanwhile.
 */
static void
tell_fresh (MusterReadinessHub *self, MusterQuestion *question)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  muster_turn_grow_older (&question->turn, now_us - question->told_us);
  question->told_us = now_us;
  self->round++;
  /* Who comes meanwhile has a round of its own. */
  for (guint n = question->fresh.length; n > 0 && question->fresh.length > 0 && !self->stopping;
       n--) {
    g_autoptr (MusterAsker) asker = asker_ref (question->fresh.head->data);
    put_asker (asker, &question->told);
    tell (self, asker, &question->turn, NULL);
  }
}

/* All are to be told what is new, those who have waited longest first. */
static void
take_turn (MusterReadinessHub *self, MusterQuestion *question, MusterTurn *turn)
{
  gboolean is_news = !question->is_known || muster_turn_is_news (&question->turn, turn);
  muster_turn_clear (&question->turn);
  question->turn = *turn;
  *turn = (MusterTurn){0};
  question->told_us = muster_clock_now_us (self->clock);
  question->is_known = TRUE;
  if (!is_news)
    return;
  while (question->fresh.length > 0)
    put_asker (question->fresh.head->data, &question->told);
  while (question->told.length > 0)
    put_asker (question->told.head->data, &question->fresh);
}

/* Runs the ops in the first asker's session, the lock let go meanwhile. FALSE for a failure, which
 * is that session's: its asker hears it, and the next one's session is used. */
static gboolean
run_ops (MusterReadinessHub *self, MusterQuestion *question)
{
  GQueue *first = question->told.length > 0 ? &question->told : &question->fresh;
  g_autoptr (MusterAsker) asker = asker_ref (first->head->data);
  question->is_stale = FALSE;
  question->looked_us = muster_clock_now_us (self->clock);
  gboolean was_hunch = muster_hunch_take (&question->hunch, question->looked_us);
  g_mutex_unlock (&self->lock);

  g_autoptr (GError) error = NULL;
  g_auto (MusterTurn) ops = {0};
  /* A deadline of a step is on the machine's clock, whatever clock the hub naps on. */
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), QUESTION_TIMEOUT);
  gboolean answered = muster_readiness_turn (asker->session, question->gate_op, question->ready_op,
                                             deadline_us, self->stop, &ops, &error);
  gint64 ended_us = muster_clock_now_us (self->clock);
  if (answered) {
    muster_turn_clear (&question->ops);
    question->ops = ops;
    ops = (MusterTurn){0};
  }

  g_mutex_lock (&self->lock);
  muster_countdown_looked (&question->countdown, ended_us - question->looked_us);
  if (was_hunch)
    muster_hunch_looked (&question->hunch, ended_us, ended_us - question->looked_us);
  if (!answered && !self->stopping) {
    question->is_stale = TRUE;
    end_asker (self, asker, error);
  }
  return answered;
}

/* Without the lock. */
static void
compare_graphs (MusterReadinessHub *self, MusterQuestion *question, MusterTurn *turn)
{
  g_autoptr (MusterGraph) graph = muster_board_graph (self->board, question->model);
  if (graph != question->compared) {
    g_clear_pointer (&question->difference, g_free);
    g_clear_pointer (&question->compared, muster_graph_unref);
    if (graph != NULL && question->graph != NULL)
      question->difference = muster_graph_difference (question->graph, graph);
    question->compared = g_steal_pointer (&graph);
  }
  turn->graph_difference = g_strdup (question->difference);
}

/* Hears what is announced of the model, the lock let go meanwhile, and makes a turn of it and of
 * what the ops said. FALSE if they must be run again first. */
static gboolean
hear_board (MusterReadinessHub *self, MusterQuestion *question, gboolean has_just_run,
            MusterTurn *turn)
{
  question->is_unheard = FALSE;
  g_mutex_unlock (&self->lock);
  MusterAnnouncement *chief = muster_board_look (self->board, question->model);
  gboolean is_news = muster_chief_is_news (question->turn.chief, chief);
  muster_turn_announce (turn, &question->ops, TRUE, chief);
  compare_graphs (self, question, turn);
  g_mutex_lock (&self->lock);
  /* A master that can't tell of changes may have changed before its chief said so. */
  return has_just_run || self->changed_id != 0 || !is_news || muster_chief_decides (chief);
}

/* Finds the present answer; FALSE if there is none yet. */
static gboolean
find_answer (MusterReadinessHub *self, MusterQuestion *question)
{
  gboolean was_stale = question->is_stale;
  g_auto (MusterTurn) turn = {0};
  if (was_stale && !run_ops (self, question))
    return FALSE;
  if (question->model == NULL) {
    muster_turn_announce (&turn, &question->ops, FALSE, NULL);
  } else if (!hear_board (self, question, was_stale, &turn)) {
    question->is_stale = TRUE;
    return FALSE;
  }
  take_turn (self, question, &turn);
  muster_hub_plan_look (self, question, was_stale);
  return TRUE;
}

/* Does what is to be done about one question. */
static void
attend (MusterReadinessHub *self, MusterQuestion *question)
{
  if (!muster_question_has_askers (question)) {
    muster_hub_forget_question (self, question);
    return;
  }
  gboolean is_answered = TRUE;
  if (question->is_stale || question->is_unheard)
    is_answered = find_answer (self, question);
  if (is_answered)
    tell_fresh (self, question);
  if (!is_answered || !muster_question_has_askers (question) || question->fresh.length > 0)
    muster_hub_put_on_agenda (self, question);
}

static void
end_all (MusterReadinessHub *self)
{
  g_autoptr (GError) error = g_error_new_literal (
      MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "Watching readiness was ended: the server is stopping");
  for (guint i = 0; i < self->questions->len; i++) {
    MusterQuestion *question = self->questions->pdata[i];
    while (question->told.length > 0)
      end_asker (self, question->told.head->data, error);
    while (question->fresh.length > 0)
      end_asker (self, question->fresh.head->data, error);
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
      muster_hub_rest (self);
      continue;
    }
    MusterQuestion *question = next->data;
    question->is_on_agenda = FALSE;
    attend (self, question);
  }
  end_all (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}
