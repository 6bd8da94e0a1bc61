// SPDX-License-Identifier: Apache-2.0
#include "ready/hub.h"

#include "graph/graph_difference.h"
#include "ready/chief_gate.h"
#include "ready/hub_private.h"
#include "ready/readiness.h"

/* A question that takes longer than this has failed: it must not keep the others waiting. */
#define QUESTION_TIMEOUT (60 * MUSTER_SECOND)

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
