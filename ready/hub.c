// SPDX-License-Identifier: Apache-2.0
#include "ready/hub.h"

#include "ready/countdown.h"
#include "ready/readiness.h"

/* Between two looks at a master that can't tell of changes: one poller for all askers may look more
 * often than each of them would. */
#define POLL_CEILING MUSTER_SECOND

/* A question that takes longer than this has failed: it must not keep the others waiting. */
#define QUESTION_TIMEOUT (60 * MUSTER_SECOND)

typedef struct {
  MusterGraph *graph;     /* (owned) (nullable) */
  MusterSession *session; /* (owned) (nullable) only where there is no graph to compare */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  GPtrArray *askers;      /* (element-type MusterAsker) owned references, in the order they came */
  MusterTurn turn;        /* the present answer, once known */
  gboolean known;
  gboolean stale; /* something changed since turn was asked for */
  MusterCountdown countdown;
  gint64 look_us; /* when to look again, where changes must be polled */
} Question;

struct _MusterAsker {
  gatomicrefcount refs;
  Question *question;     /* (not owned) (nullable) NULL once it has ended; guarded by lock */
  MusterSession *session; /* (owned) */
  MusterTurnFunc func;
  gpointer user_data;
  gboolean told; /* the present turn; guarded by lock */
  gboolean left; /* guarded by lock */
};

struct _MusterReadinessHub {
  MusterMaster *master; /* (owned) */
  MusterClock *clock;   /* (owned) */
  gulong changed_id;    /* 0: the master can't tell of changes */
  GThread *thread;
  GCancellable *stop; /* (owned) ends the question that is being run */

  GMutex lock;
  GCond wake;           /* there is something to do */
  GCond told;           /* a call of an asker's function has returned */
  GCancellable *nap;    /* (owned) (nullable) ends the pause between two looks; guarded by lock */
  gboolean stopping;    /* guarded by lock */
  GPtrArray *questions; /* (element-type Question) owned; guarded by lock */
  GPtrArray *ended; /* (element-type MusterAsker) told of their end, not left; guarded by lock */
  MusterAsker *speaking; /* (not owned) (nullable) whose function runs now; guarded by lock */
};

static gpointer hub_thread (gpointer data);

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

static void
question_free (Question *question)
{
  g_clear_pointer (&question->graph, muster_graph_unref);
  g_clear_object (&question->session);
  g_free (question->gate_op);
  g_free (question->ready_op);
  g_ptr_array_unref (question->askers);
  muster_turn_clear (&question->turn);
  g_free (question);
}

/* With the lock held. */
static void
wake_up (MusterReadinessHub *self)
{
  g_cond_signal (&self->wake);
  if (self->nap != NULL)
    g_cancellable_cancel (self->nap);
}

/* On a step's thread: it must not be held up. */
static void
readiness_changed (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len; i++)
    ((Question *)self->questions->pdata[i])->stale = TRUE;
  wake_up (self);
  g_mutex_unlock (&self->lock);
}

MusterReadinessHub *
muster_readiness_hub_new (MusterMaster *master, MusterClock *clock)
{
  MusterReadinessHub *self = g_new0 (MusterReadinessHub, 1);
  self->master = g_object_ref (master);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->stop = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->wake);
  g_cond_init (&self->told);
  self->questions = g_ptr_array_new_with_free_func ((GDestroyNotify)question_free);
  self->ended = g_ptr_array_new_with_free_func ((GDestroyNotify)asker_unref);
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

  g_ptr_array_unref (self->questions);
  g_ptr_array_unref (self->ended);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->wake);
  g_cond_clear (&self->told);
  g_object_unref (self->stop);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_free (self);
}

static gboolean
is_question (const Question *question, MusterSession *session, const char *gate_op,
             const char *ready_op)
{
  if (g_strcmp0 (question->gate_op, gate_op) != 0 || g_strcmp0 (question->ready_op, ready_op) != 0)
    return FALSE;
  MusterGraph *graph = muster_session_graph (session);
  if (graph == NULL || question->graph == NULL)
    return graph == question->graph && question->session == session;
  return muster_graph_equal (graph, question->graph);
}

/* With the lock held. Few questions are ever open at once: a walk finds one. */
static Question *
find_question (MusterReadinessHub *self, MusterSession *session, const char *gate_op,
               const char *ready_op)
{
  for (guint i = 0; i < self->questions->len; i++)
    if (is_question (self->questions->pdata[i], session, gate_op, ready_op))
      return self->questions->pdata[i];

  MusterGraph *graph = muster_session_graph (session);
  Question *question = g_new0 (Question, 1);
  question->graph = graph != NULL ? muster_graph_ref (graph) : NULL;
  question->session = graph == NULL ? g_object_ref (session) : NULL;
  question->gate_op = g_strdup (gate_op);
  question->ready_op = g_strdup (ready_op);
  question->askers = g_ptr_array_new_with_free_func ((GDestroyNotify)asker_unref);
  question->stale = TRUE;
  muster_countdown_start (&question->countdown, muster_clock_now_us (self->clock),
                          MUSTER_WAIT_FOREVER, POLL_CEILING);
  g_ptr_array_add (self->questions, question);
  return question;
}

MusterAsker *
muster_readiness_hub_ask (MusterReadinessHub *self, MusterSession *session, const char *gate_op,
                          const char *ready_op, MusterTurnFunc func, gpointer user_data)
{
  MusterAsker *asker = g_new0 (MusterAsker, 1);
  g_atomic_ref_count_init (&asker->refs);
  asker->session = g_object_ref (session);
  asker->func = func;
  asker->user_data = user_data;

  g_mutex_lock (&self->lock);
  asker->question = find_question (self, session, gate_op, ready_op);
  g_ptr_array_add (asker->question->askers, asker);
  wake_up (self);
  g_mutex_unlock (&self->lock);
  return asker;
}

/* With the lock held: takes the asker off its question; a question that nobody asks is forgotten.
 */
static void
remove_asker (MusterReadinessHub *self, MusterAsker *asker)
{
  Question *question = asker->question;
  asker->question = NULL;
  if (question == NULL) {
    g_ptr_array_remove_fast (self->ended, asker);
    return;
  }
  g_ptr_array_remove (question->askers, asker);
  /* The hub's thread may be running the question: it forgets it itself when it is done. */
  wake_up (self);
}

void
muster_readiness_hub_leave (MusterReadinessHub *self, MusterAsker *asker)
{
  g_mutex_lock (&self->lock);
  asker->left = TRUE;
  while (self->speaking == asker && g_thread_self () != self->thread)
    g_cond_wait (&self->told, &self->lock);
  remove_asker (self, asker);
  g_mutex_unlock (&self->lock);
}

guint
muster_readiness_hub_n_askers (MusterReadinessHub *self)
{
  guint n = 0;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->questions->len; i++)
    n += ((Question *)self->questions->pdata[i])->askers->len;
  g_mutex_unlock (&self->lock);
  return n;
}

static gboolean
turns_equal (const MusterTurn *a, const MusterTurn *b)
{
  if (a->gate_open != b->gate_open || a->is_ready != b->is_ready ||
      g_strcmp0 (a->why_gate, b->why_gate) != 0 ||
      g_strcmp0 (a->why_not_ready, b->why_not_ready) != 0)
    return FALSE;
  if (a->missing == NULL || b->missing == NULL)
    return a->missing == b->missing;
  return g_strv_equal ((const char *const *)a->missing, (const char *const *)b->missing);
}

/* With the lock held, which is let go while the asker's function runs. */
static void
tell (MusterReadinessHub *self, MusterAsker *asker, const MusterTurn *turn, const GError *error)
{
  if (asker->left)
    return;
  self->speaking = asker;
  g_mutex_unlock (&self->lock);
  asker->func (turn, error, asker->user_data);
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
  asker_ref (asker);
  g_ptr_array_add (self->ended, asker_ref (asker));
  g_ptr_array_remove (asker->question->askers, asker);
  asker->question = NULL;
  tell (self, asker, NULL, error);
  asker_unref (asker);
}

/* Tells the present turn to those who haven't heard it. A list of its own, since they may leave and
 * others come while one is being told. */
static void
tell_all (MusterReadinessHub *self, Question *question)
{
  g_autoptr (GPtrArray) to_tell = g_ptr_array_new_with_free_func ((GDestroyNotify)asker_unref);
  for (guint i = 0; i < question->askers->len; i++) {
    MusterAsker *asker = question->askers->pdata[i];
    if (!asker->told)
      g_ptr_array_add (to_tell, asker_ref (asker));
    asker->told = TRUE;
  }
  for (guint i = 0; i < to_tell->len && !self->stopping; i++)
    tell (self, to_tell->pdata[i], &question->turn, NULL);
}

static void
take_turn (Question *question, MusterTurn *turn)
{
  if (question->known && turns_equal (&question->turn, turn))
    return;
  muster_turn_clear (&question->turn);
  question->turn = *turn;
  *turn = (MusterTurn){0};
  question->known = TRUE;
  for (guint i = 0; i < question->askers->len; i++)
    ((MusterAsker *)question->askers->pdata[i])->told = FALSE;
}

/* Runs the question in the first asker's session, the lock let go meanwhile. FALSE for a failure,
 * which is that session's: its asker hears it, and the next one's session is used. */
static gboolean
run_question (MusterReadinessHub *self, Question *question)
{
  MusterAsker *asker = asker_ref (question->askers->pdata[0]);
  question->stale = FALSE;
  g_mutex_unlock (&self->lock);

  g_autoptr (GError) error = NULL;
  g_auto (MusterTurn) turn = {0};
  gint64 started_us = muster_clock_now_us (self->clock);
  /* A deadline of a step is on the machine's clock, whatever clock the hub naps on. */
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), QUESTION_TIMEOUT);
  gboolean answered = muster_readiness_turn (asker->session, question->gate_op, question->ready_op,
                                             deadline_us, self->stop, &turn, &error);
  gint64 ended_us = muster_clock_now_us (self->clock);

  g_mutex_lock (&self->lock);
  muster_countdown_looked (&question->countdown, ended_us - started_us);
  question->look_us =
      muster_countdown_next_us (&question->countdown, ended_us, muster_clock_random (self->clock));
  if (answered) {
    take_turn (question, &turn);
  } else if (!self->stopping) {
    question->stale = TRUE;
    end_asker (self, asker, error);
  }
  asker_unref (asker);
  return answered;
}

static gboolean
has_untold (const Question *question)
{
  for (guint i = 0; i < question->askers->len; i++)
    if (!((MusterAsker *)question->askers->pdata[i])->told)
      return TRUE;
  return FALSE;
}

/* Does what is to be done about one question; FALSE if there was nothing. */
static gboolean
attend (MusterReadinessHub *self, Question *question)
{
  if (question->askers->len == 0) {
    g_ptr_array_remove (self->questions, question);
    return TRUE;
  }
  gboolean is_due = self->changed_id == 0 && question->look_us <= muster_clock_now_us (self->clock);
  if (question->stale || is_due) {
    if (run_question (self, question))
      tell_all (self, question);
    return TRUE;
  }
  if (has_untold (question)) {
    tell_all (self, question);
    return TRUE;
  }
  return FALSE;
}

/* One round over all questions; FALSE if nothing was to be done. The list may grow meanwhile, and
 * only this thread takes from it. */
static gboolean
attend_all (MusterReadinessHub *self)
{
  gboolean did_something = FALSE;
  for (guint i = self->questions->len; i > 0 && !self->stopping; i--)
    did_something |= attend (self, self->questions->pdata[i - 1]);
  return did_something;
}

static gint64
next_look (MusterReadinessHub *self)
{
  gint64 next_us = MUSTER_WAIT_FOREVER;
  for (guint i = 0; i < self->questions->len; i++)
    next_us = MIN (next_us, ((Question *)self->questions->pdata[i])->look_us);
  return next_us;
}

/* With the lock held: waits until there may be something to do. */
static void
rest (MusterReadinessHub *self)
{
  if (self->changed_id != 0 || self->questions->len == 0) {
    g_cond_wait (&self->wake, &self->lock);
    return;
  }
  g_autoptr (GCancellable) nap = g_cancellable_new ();
  gint64 wake_us = next_look (self);
  self->nap = nap;
  g_mutex_unlock (&self->lock);
  /* Cut short by whoever has something to do for the thread: no failure. */
  (void)muster_clock_wait_until (self->clock, wake_us, nap, NULL);
  g_mutex_lock (&self->lock);
  self->nap = NULL;
}

static void
end_all (MusterReadinessHub *self)
{
  g_autoptr (GError) error = g_error_new_literal (
      MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "Watching readiness was ended: the server is stopping");
  for (guint i = 0; i < self->questions->len; i++) {
    Question *question = self->questions->pdata[i];
    while (question->askers->len > 0)
      end_asker (self, question->askers->pdata[0], error);
  }
}

static gpointer
hub_thread (gpointer data)
{
  MusterReadinessHub *self = data;
  g_mutex_lock (&self->lock);
  while (!self->stopping)
    if (!attend_all (self) && !self->stopping)
      rest (self);
  end_all (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}
