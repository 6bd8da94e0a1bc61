// SPDX-License-Identifier: Apache-2.0
/* Finds dead connections that nobody closed: a router between client and server forgot them, or
 * answers for a machine that is gone. Where TCP's own questions are answered, only a call shows it.
 */
#include "rpc/client/rpc_call_private.h"

#include "base/log_private.h"

/* A server without this method refuses it, which is an answer. Handlers of muster's never block. */
#define QUESTION "/grpc.health.v1.Health/Check"
#define DEAD     "the connection is dead; the server answers on another one"

const MusterRpcSilence muster_rpc_silence = {
    .call_us = 5 * MUSTER_SECOND,
    .stream_us = 15 * MUSTER_SECOND,
    .answer_us = 3 * MUSTER_SECOND,
    .again_us = MUSTER_SECOND,
};

typedef struct {
  MusterRpcClient *client;   /* (owned) */
  MusterRpcChannel *suspect; /* (owned) */
  guint n_heard;             /* of the suspect's, when the examination began */
  MusterRpcChannel *other;   /* (owned) (nullable) */
  enum { FIRST, ON_OTHER, AGAIN } stage;
  MusterRpcUnary question;
  MusterRpcTag answered;
} Examination;

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gboolean
is_answered (const Examination *self)
{
  return self->question.outcome.status != GRPC_STATUS_DEADLINE_EXCEEDED &&
         self->question.outcome.status != GRPC_STATUS_UNAVAILABLE;
}

static void
examination_free (Examination *self)
{
  g_mutex_lock (&self->client->lock);
  self->client->is_examined = FALSE;
  self->client->examine_us = is_answered (self) ? now_us () + self->client->silence.stream_us : 0;
  g_mutex_unlock (&self->client->lock);
  muster_rpc_unary_clear (&self->question);
  g_clear_pointer (&self->other, muster_rpc_channel_unref);
  muster_rpc_channel_unref (self->suspect);
  muster_rpc_client_unref (self->client);
  g_free (self);
}

static void
ask (Examination *self, MusterRpcChannel *channel)
{
  MusterRpcClient *client = self->client;
  const gint64 at_us = now_us ();
  const gint64 most_us =
      self->stage == AGAIN ? client->silence.again_us : client->silence.answer_us;
  const MusterRpcOptions options = {.deadline_us = at_us + most_us,
                                    .wait_for_ready = self->stage == ON_OTHER};
  grpc_call *call = muster_rpc_channel_new_call (channel, QUESTION, options.deadline_us, at_us,
                                                 muster_rpc_client_pump (client));
  muster_rpc_unary_clear (&self->question);
  self->question = (MusterRpcUnary){0};
  muster_rpc_unary_start (&self->question, client, muster_rpc_channel_ref (channel), call,
                          muster_grpc_buffer_from_rope (NULL), &options, &self->answered);
}

void
muster_rpc_channel_fail (grpc_call *call)
{
  grpc_call_cancel_with_status (call, GRPC_STATUS_UNAVAILABLE, DEAD, NULL);
}

/* Its calls fail. Those that begin on it hereafter, too (muster_rpc_channel_enter ()). */
static void
declare_dead (MusterRpcChannel *self)
{
  g_mutex_lock (&self->lock);
  self->is_dead = TRUE;
  for (GList *open = self->open.head; open != NULL; open = open->next)
    muster_rpc_channel_fail (open->data);
  g_mutex_unlock (&self->lock);
}

/* FALSE if it was replaced meanwhile. */
static gboolean
replace (MusterRpcClient *self, MusterRpcChannel *suspect, MusterRpcChannel *other)
{
  g_mutex_lock (&self->channel_lock);
  const gboolean is_current = self->channel == suspect;
  if (is_current)
    g_atomic_pointer_set (&self->channel, muster_rpc_channel_ref (other));
  g_mutex_unlock (&self->channel_lock);
  if (is_current)
    muster_rpc_channel_unref (suspect); /* the client's reference */
  return is_current;
}

/* Nothing has come on the suspect, not even the answer. UNAVAILABLE: the connection is closed by
 * now, and its calls have failed. */
static gboolean
is_silent (const Examination *self)
{
  return self->question.outcome.status == GRPC_STATUS_DEADLINE_EXCEEDED &&
         __atomic_load_n (&self->suspect->n_heard, __ATOMIC_RELAXED) == self->n_heard;
}

static void
judge (Examination *self)
{
  if (!is_silent (self) || !replace (self->client, self->suspect, self->other))
    return;
  muster_log (
      G_LOG_LEVEL_MESSAGE, "connection-dead", "MUSTER_ADDRESS", self->client->address, "MESSAGE",
      "the connection to '%s' is dead; the server answers on another one, which replaces it",
      self->client->address);
  declare_dead (self->suspect);
}

/* The question of this stage has ended. Between the first two, a server that was stopped may have
 * gone on: then it answers the third. */
static void
on_answered (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  Examination *self = owner;
  if (self->stage == FIRST && is_silent (self)) {
    self->stage = ON_OTHER;
    self->other = muster_rpc_client_open_channel (self->client, TRUE);
    ask (self, self->other);
  } else if (self->stage == ON_OTHER && is_answered (self)) {
    self->stage = AGAIN;
    ask (self, self->suspect);
  } else {
    if (self->stage == AGAIN)
      judge (self);
    examination_free (self);
  }
}

/* FALSE if it was examined lately, or is being examined. */
static gboolean
begin (MusterRpcClient *self)
{
  g_mutex_lock (&self->lock);
  const gboolean is_due = !self->is_examined && now_us () >= self->examine_us;
  self->is_examined |= is_due;
  g_mutex_unlock (&self->lock);
  return is_due;
}

void
muster_rpc_client_note_silence (MusterRpcClient *self, MusterRpcChannel *channel)
{
  if (grpc_channel_check_connectivity_state (channel->channel, 0) != GRPC_CHANNEL_READY ||
      !begin (self))
    return;
  Examination *examination = g_new0 (Examination, 1);
  examination->client = muster_rpc_client_ref (self);
  examination->suspect = muster_rpc_channel_ref (channel);
  examination->n_heard = __atomic_load_n (&channel->n_heard, __ATOMIC_RELAXED);
  examination->answered = (MusterRpcTag){.done = on_answered, .owner = examination};
  ask (examination, channel);
}
