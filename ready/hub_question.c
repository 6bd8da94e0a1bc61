// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "ready/hub_private.h"

/* With an address as the seed, so that nobody asks questions that all collide. */
static guint
hash_text (const char *text)
{
  static const char seed;
  return text != NULL ? (guint)muster_hash_bytes (text, strlen (text), (guint64)(guintptr)&seed)
                      : 0;
}

guint
muster_question_hash (gconstpointer data)
{
  const MusterQuestion *question = data;
  guint hash = question->graph != NULL ? (guint)muster_graph_hash (question->graph)
                                       : g_direct_hash (question->session);
  hash = hash * 31 + hash_text (question->gate_op);
  hash = hash * 31 + hash_text (question->ready_op);
  return hash * 31 + hash_text (question->model);
}

gboolean
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

void
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

gboolean
muster_question_has_askers (const MusterQuestion *self)
{
  return self->told.length + self->fresh.length > 0;
}

MusterQuestion *
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

void
muster_hub_forget_question (MusterReadinessHub *self, MusterQuestion *question)
{
  MusterQuestion *last = self->questions->pdata[self->questions->len - 1];
  last->index = question->index;
  g_ptr_array_remove_index_fast (self->questions, question->index);
  g_hash_table_remove (self->by_what, question);
}

void
muster_hub_put_on_agenda (MusterReadinessHub *self, MusterQuestion *question)
{
  if (!question->is_on_agenda)
    g_queue_push_tail_link (&self->agenda, &question->link);
  question->is_on_agenda = TRUE;
}

void
muster_hub_wake_up (MusterReadinessHub *self)
{
  g_cond_signal (&self->wake);
  if (self->nap != NULL)
    g_cancellable_cancel (self->nap);
}
