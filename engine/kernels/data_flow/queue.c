// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/data_flow/queue.h"

#include "base/error.h"
#include "base/memory_account_private.h"
#include "engine/kernels/data_flow/queue_batch.h"
#include "engine/kernels/data_flow/queue_heap.h"
#include "engine/run/randoms.h"

#include <string.h>

typedef enum { SIDE_IN, SIDE_OUT, N_SIDES } Side;
typedef enum { PUT, PUT_MANY, CLOSE, TAKE, TAKE_MANY } Action;
typedef enum { STUCK, MOVED, COMPLETE } Outcome;

/* The maximum capacity kept for an empty queue. */
#define MAX_SPARE 1024

struct _MusterQueue {
  MusterQueueSpec spec; /* (owned) constant */
  char *name;           /* (owned) */
  GMutex lock;          /* guards all below */
  gboolean is_closed, is_removed;
  MusterTensor **ring; /* (owned) room elements with all their components; a power of two. A
                          priority queue's is a heap that begins at 0 */
  gsize capacity, first, n;
  GQueue waiting[N_SIDES]; /* of Attempt, by their links */
  MusterPhilox random;     /* a shuffle queue's */
  guint32 words[4];        /* unused random words; the next one is the last */
  guint n_words;
};

/* An enqueue or dequeue of a kernel. Guarded by the queue's lock while it waits; otherwise only the
 * kernel uses it. */
typedef struct {
  MusterQueue *queue;
  MusterKernel *kernel;
  Action action;
  gboolean up_to;
  gint64 total, left;   /* elements requested, and those left to transfer */
  MusterTensor **tuple; /* (owned) (nullable) the input of an enqueue */
  GPtrArray
      *taken;    /* (owned) (nullable) the output of a dequeue: tensors, component by component */
  GError *error; /* (owned) (nullable) */
  gboolean is_waiting;
  GList link;
} Attempt;

static Side
side_of (Action action)
{
  return action >= TAKE ? SIDE_OUT : SIDE_IN;
}

/* The tensors of the i-th element from the front. */
static MusterTensor **
element_at (MusterQueue *self, gsize i)
{
  return self->ring + ((self->first + i) & (self->capacity - 1)) * self->spec.n_components;
}

static gsize
ring_bytes (const MusterQueue *self, gsize capacity)
{
  return capacity * self->spec.n_components * sizeof (MusterTensor *);
}

/* What was taken from the queue goes back whether there is room or not. */
static void
grow_ring (MusterQueue *self)
{
  const guint size = self->spec.n_components;
  if (self->n < self->capacity)
    return;
  const gsize capacity = MAX (self->capacity * 2, 8);
  MusterTensor **ring = g_new0 (MusterTensor *, capacity * size);
  muster_memory_add (MUSTER_MEMORY_RESOURCES, ring_bytes (self, capacity - self->capacity));
  for (gsize i = 0; i < self->n; i++)
    memcpy (ring + i * size, element_at (self, i), size * sizeof *ring);
  g_free (self->ring);
  self->ring = ring;
  self->capacity = capacity;
  self->first = 0;
}

/* Makes room for an element, within the limit of memory. */
static gboolean
reserve (MusterQueue *self, GError **error)
{
  const gsize n_bytes = ring_bytes (self, MAX (self->capacity, 4));
  if (self->n < self->capacity)
    return TRUE;
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, n_bytes, error))
    return FALSE;
  muster_memory_release (MUSTER_MEMORY_RESOURCES, n_bytes);
  grow_ring (self);
  return TRUE;
}

static void
drop_ring (MusterQueue *self)
{
  g_clear_pointer (&self->ring, g_free);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, ring_bytes (self, self->capacity));
  self->capacity = self->first = 0;
}

static void
push_back (MusterQueue *self, MusterTensor *const *tensors /* (transfer full) of each */)
{
  grow_ring (self);
  memcpy (element_at (self, self->n++), tensors, self->spec.n_components * sizeof *tensors);
  if (self->spec.kind == MUSTER_QUEUE_PRIORITY)
    muster_queue_heap_push (self->ring, self->n, self->spec.n_components);
}

static void
push_front (MusterQueue *self, MusterTensor *const *tensors /* (transfer full) of each */)
{
  grow_ring (self);
  self->first = (self->first + self->capacity - 1) & (self->capacity - 1);
  self->n++;
  memcpy (element_at (self, 0), tensors, self->spec.n_components * sizeof *tensors);
}

/* Like TensorFlow, uses all four words of a block, one for each draw. */
static gsize
draw (MusterQueue *self)
{
  if (self->n_words == 0) {
    muster_philox_next (&self->random, self->words);
    self->n_words = G_N_ELEMENTS (self->words);
  }
  return self->words[G_N_ELEMENTS (self->words) - self->n_words--] % self->n;
}

/* Moves one element to the attempt: the first or, in a shuffle queue, a random one, whose position
 * the last one takes. */
static void
take_one (MusterQueue *self, Attempt *attempt)
{
  const gboolean shuffles = self->spec.kind == MUSTER_QUEUE_SHUFFLE;
  const gboolean sorts = self->spec.kind == MUSTER_QUEUE_PRIORITY;
  const guint size = self->spec.n_components;
  if (sorts)
    muster_queue_heap_pop (self->ring, self->n, size);
  MusterTensor **from = element_at (self, shuffles ? draw (self) : sorts ? self->n - 1 : 0);
  if (attempt->taken == NULL)
    attempt->taken = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  for (guint c = 0; c < size; c++)
    g_ptr_array_add (attempt->taken, from[c]);
  self->n--;
  if (shuffles)
    memmove (from, element_at (self, self->n), size * sizeof *from);
  else if (!sorts)
    self->first = (self->first + 1) & (self->capacity - 1);
  attempt->left--;
  if (self->n > 0 || self->capacity <= MAX_SPARE)
    return;
  drop_ring (self);
}

/* Returns an attempt's elements to the queue. */
static void
put_back (MusterQueue *self, Attempt *attempt)
{
  const guint size = self->spec.n_components;
  if (attempt->taken == NULL)
    return;
  for (guint i = attempt->taken->len; i > 0; i -= size) {
    MusterTensor **tensors = (MusterTensor **)attempt->taken->pdata + i - size;
    if (self->spec.kind == MUSTER_QUEUE_SHUFFLE || self->spec.kind == MUSTER_QUEUE_PRIORITY)
      push_back (self, tensors);
    else
      push_front (self, tensors);
  }
  g_ptr_array_set_free_func (attempt->taken, NULL);
  g_clear_pointer (&attempt->taken, g_ptr_array_unref);
}

/* The progress of an attempt, with the lock held. */

static Outcome
fail_attempt (Attempt *attempt, MusterError code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  attempt->error = g_error_new_valist (MUSTER_ERROR, (int)code, format, args);
  va_end (args);
  return COMPLETE;
}

static Outcome
fail_cancelled (Attempt *attempt)
{
  return fail_attempt (attempt, MUSTER_ERROR_CANCELLED, "%s operation was cancelled",
                       side_of (attempt->action) == SIDE_IN ? "Enqueue" : "Dequeue");
}

static gboolean
push_slice (MusterQueue *self, Attempt *attempt)
{
  const guint size = self->spec.n_components;
  g_autofree MusterTensor **slices = g_new0 (MusterTensor *, size);
  for (guint c = 0; c < size; c++) {
    slices[c] =
        muster_queue_slice (attempt->tuple[c], attempt->total - attempt->left, &attempt->error);
    if (slices[c] != NULL)
      continue;
    while (c > 0)
      muster_tensor_unref (slices[--c]);
    return FALSE;
  }
  push_back (self, slices);
  return TRUE;
}

static Outcome
put (MusterQueue *self, Attempt *attempt)
{
  Outcome outcome = STUCK;
  if (self->is_closed) /* as in TensorFlow, a padding queue has the errors of its base class */
    return fail_attempt (attempt, MUSTER_ERROR_CANCELLED, "%s '%s' is closed.",
                         muster_queue_kind_name (self->spec.kind == MUSTER_QUEUE_PADDING
                                                     ? MUSTER_QUEUE_FIFO
                                                     : self->spec.kind),
                         self->name);
  for (; attempt->left > 0 && self->n < (gsize)self->spec.capacity; attempt->left--) {
    outcome = MOVED;
    if (!reserve (self, &attempt->error))
      return COMPLETE;
    if (attempt->action == PUT_MANY) {
      if (!push_slice (self, attempt))
        return COMPLETE;
      continue;
    }
    for (guint c = 0; c < self->spec.n_components; c++)
      muster_tensor_ref (attempt->tuple[c]);
    push_back (self, attempt->tuple);
  }
  return attempt->left == 0 ? COMPLETE : outcome;
}

static Outcome
close_queue (MusterQueue *self, Attempt *attempt)
{
  if (self->is_closed)
    return fail_attempt (attempt, MUSTER_ERROR_CANCELLED, "Queue '%s' is already closed.",
                         self->name);
  self->is_closed = TRUE;
  return COMPLETE;
}

/* Handles a closed queue with too few elements: the attempt's elements go back, and then it gets
 * all that are left, if it accepts fewer, or none. Returns COMPLETE with an error, MOVED while
 * pending enqueues may add elements, STUCK to continue. */
static Outcome
dequeue_closed (MusterQueue *self, Attempt *attempt)
{
  const gsize n_before = self->n;
  put_back (self, attempt);
  if (attempt->up_to && self->n > 0) {
    attempt->total = attempt->left = (gint64)MIN (self->n, (gsize)attempt->total);
    return STUCK;
  }
  if (attempt->up_to && !g_queue_is_empty (&self->waiting[SIDE_IN]))
    return MOVED;
  return fail_attempt (
      attempt, MUSTER_ERROR_OUT_OF_RANGE,
      "%s '%s' is closed and has insufficient elements (requested %" G_GINT64_FORMAT
      ", current size %" G_GSIZE_FORMAT ")",
      muster_queue_kind_name (attempt->action == TAKE && self->spec.kind == MUSTER_QUEUE_PADDING
                                  ? MUSTER_QUEUE_FIFO
                                  : self->spec.kind),
      self->name, attempt->left, n_before);
}

static Outcome
take (MusterQueue *self, Attempt *attempt)
{
  Outcome outcome = STUCK;
  if (self->is_closed && (gint64)self->n < attempt->left) {
    outcome = dequeue_closed (self, attempt);
    if (outcome != STUCK)
      return outcome;
  }
  /* A priority queue waits until it can dequeue the whole batch. */
  if (self->spec.kind == MUSTER_QUEUE_PRIORITY && (gint64)self->n < attempt->left)
    return STUCK;
  const gsize keep = self->is_closed ? 0 : (gsize)self->spec.min_after_dequeue;
  for (; attempt->left > 0 && self->n > keep; outcome = MOVED)
    take_one (self, attempt);
  return attempt->left == 0 ? COMPLETE : outcome;
}

static Outcome
advance (MusterQueue *self, Attempt *attempt)
{
  if (self->is_removed) /* CANCELLED, not a closed queue's OUT_OF_RANGE */
    return fail_cancelled (attempt);
  switch (attempt->action) {
  case PUT:
  case PUT_MANY:
    return put (self, attempt);
  case CLOSE:
    return close_queue (self, attempt);
  default:
    return take (self, attempt);
  }
}

/* Removes an attempt, which must not be used afterwards. Call with the lock held. */
static void
leave (MusterQueue *self, Attempt *attempt)
{
  g_queue_unlink (&self->waiting[side_of (attempt->action)], &attempt->link);
  attempt->is_waiting = FALSE;
  muster_kernel_resume (attempt->kernel, g_steal_pointer (&attempt->error));
}

/* Serves one side as far as possible; returns TRUE if an element was moved. Call with the lock
 * held. */
static gboolean
serve (MusterQueue *self, Side side)
{
  gboolean moved = FALSE;
  for (;;) {
    Attempt *attempt = g_queue_peek_head (&self->waiting[side]);
    const Outcome outcome = attempt != NULL ? advance (self, attempt) : STUCK;
    if (outcome != COMPLETE)
      return moved || outcome == MOVED;
    leave (self, attempt);
    moved = TRUE;
  }
}

/* With the lock held. */
static void
serve_all (MusterQueue *self)
{
  gboolean moved;
  do {
    moved = serve (self, SIDE_IN);
    moved = serve (self, SIDE_OUT) || moved;
  } while (moved);
}

static void
attempt_clear (Attempt *attempt)
{
  for (guint c = 0; attempt->tuple != NULL && c < attempt->queue->spec.n_components; c++)
    muster_tensor_unref (attempt->tuple[c]);
  g_clear_pointer (&attempt->tuple, g_free);
  g_clear_pointer (&attempt->taken, g_ptr_array_unref);
  g_clear_error (&attempt->error);
}

/* Sets the outputs. Returns the elements to the queue if that fails, or if is_wanted is FALSE. */
static gboolean
set_attempt_outputs (Attempt *attempt, gboolean is_wanted, GError **error)
{
  MusterQueue *self = attempt->queue;
  gboolean ok = is_wanted;
  if (side_of (attempt->action) == SIDE_IN)
    return is_wanted;
  if (is_wanted && attempt->action == TAKE)
    for (guint c = 0; c < self->spec.n_components; c++)
      muster_kernel_set_output (attempt->kernel, (int)c,
                                muster_tensor_ref (g_ptr_array_index (attempt->taken, c)));
  else if (is_wanted)
    ok = muster_queue_batch (
        &self->spec, attempt->taken != NULL ? (MusterTensor *const *)attempt->taken->pdata : NULL,
        attempt->total, attempt->kernel, error);
  if (ok || attempt->taken == NULL)
    return ok;
  g_mutex_lock (&self->lock);
  put_back (self, attempt);
  serve_all (self);
  g_mutex_unlock (&self->lock);
  return FALSE;
}

/* Completes a kernel that waited. */
static gboolean
finish (MusterKernel *k G_GNUC_UNUSED, gpointer data, gboolean is_wanted, GError **error)
{
  Attempt *attempt = data;
  const gboolean ok = set_attempt_outputs (attempt, is_wanted, error);
  attempt_clear (attempt);
  g_free (attempt);
  return ok;
}

/* With the lock held. */
static void
cancel_attempt (MusterQueue *self, Attempt *attempt)
{
  put_back (self, attempt);
  (void)fail_cancelled (attempt);
  leave (self, attempt);
}

static void
cancel (MusterKernel *k G_GNUC_UNUSED, gpointer data)
{
  Attempt *attempt = data;
  MusterQueue *self = attempt->queue;
  g_mutex_lock (&self->lock);
  if (attempt->is_waiting) {
    cancel_attempt (self, attempt);
    serve_all (self);
  }
  g_mutex_unlock (&self->lock);
}

/* Makes the kernel wait. Call with the lock held. */
static void
enqueue_attempt (MusterQueue *self, const Attempt *attempt)
{
  Attempt *waiting = g_memdup2 (attempt, sizeof *attempt);
  waiting->link.data = waiting;
  waiting->is_waiting = TRUE;
  muster_kernel_suspend_to_finish (waiting->kernel, cancel, finish, waiting);
  g_queue_push_tail_link (&self->waiting[side_of (waiting->action)], &waiting->link);
}

/* Completes the attempt (transfer full) or makes it wait. */
static gboolean
try_immediately (MusterQueue *self, Attempt *attempt, GError **error)
{
  Outcome outcome = STUCK;
  g_mutex_lock (&self->lock);
  if (g_queue_is_empty (&self->waiting[side_of (attempt->action)]))
    outcome = advance (self, attempt);
  if (outcome != COMPLETE)
    enqueue_attempt (self, attempt);
  if (outcome != STUCK)
    serve_all (self);
  g_mutex_unlock (&self->lock);
  if (outcome != COMPLETE)
    return TRUE;
  gboolean ok = attempt->error == NULL;
  if (ok)
    ok = set_attempt_outputs (attempt, TRUE, error);
  else
    g_propagate_error (error, g_steal_pointer (&attempt->error));
  attempt_clear (attempt);
  return ok;
}

static gboolean
put_tuple (MusterQueue *self, MusterKernel *k, Action action, MusterTensor *const *tuple, gint64 n,
           GError **error)
{
  const guint size = self->spec.n_components;
  Attempt attempt = {.queue = self, .kernel = k, .action = action, .total = n, .left = n};
  attempt.tuple = g_new (MusterTensor *, size);
  for (guint c = 0; c < size; c++)
    attempt.tuple[c] = muster_tensor_keep (tuple[c]);
  return try_immediately (self, &attempt, error);
}

gboolean
muster_queue_enqueue (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                      GError **error)
{
  return put_tuple (self, k, PUT, tuple, 1, error);
}

gboolean
muster_queue_enqueue_many (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                           GError **error)
{
  const gint64 n = muster_tensor_dims (tuple[0])[0];
  return n == 0 || (muster_queue_take_slices (tuple, self->spec.n_components, k, error) &&
                    put_tuple (self, k, PUT_MANY, tuple, n, error));
}

gboolean
muster_queue_dequeue (MusterQueue *self, MusterKernel *k, GError **error)
{
  Attempt attempt = {.queue = self, .kernel = k, .action = TAKE, .total = 1, .left = 1};
  return try_immediately (self, &attempt, error);
}

gboolean
muster_queue_dequeue_many (MusterQueue *self, MusterKernel *k, gint32 n, gboolean up_to,
                           GError **error)
{
  Attempt attempt = {
      .queue = self, .kernel = k, .action = TAKE_MANY, .up_to = up_to, .total = n, .left = n};
  if (n == 0)
    return muster_queue_batch (&self->spec, NULL, 0, k, error);
  return try_immediately (self, &attempt, error);
}

gboolean
muster_queue_close (MusterQueue *self, MusterKernel *k, gboolean cancel_pending, GError **error)
{
  Attempt attempt = {.queue = self, .kernel = k, .action = CLOSE};
  if (!cancel_pending)
    return try_immediately (self, &attempt, error);
  g_mutex_lock (&self->lock);
  self->is_closed = TRUE;
  while (!g_queue_is_empty (&self->waiting[SIDE_IN]))
    cancel_attempt (self, g_queue_peek_head (&self->waiting[SIDE_IN]));
  serve_all (self);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

gint32
muster_queue_size (MusterQueue *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return (gint32)MIN (self->n, G_MAXINT32);
}

gboolean
muster_queue_is_closed (MusterQueue *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->is_closed;
}

const MusterQueueSpec *
muster_queue_spec (const MusterQueue *self)
{
  return &self->spec;
}

MusterQueue *
muster_queue_new (const char *name, MusterQueueSpec *spec)
{
  MusterQueue *self = g_new0 (MusterQueue, 1);
  self->name = g_strdup (name);
  self->spec = *spec;
  *spec = (MusterQueueSpec){0};
  g_mutex_init (&self->lock);
  for (int side = 0; side < N_SIDES; side++)
    g_queue_init (&self->waiting[side]);
  const gboolean is_seeded = self->spec.seed != 0 || self->spec.seed2 != 0;
  if (self->spec.kind == MUSTER_QUEUE_SHUFFLE)
    self->random =
        muster_philox_new (is_seeded ? (guint64)self->spec.seed : muster_randoms_chance (),
                           is_seeded ? (guint64)self->spec.seed2 : muster_randoms_chance ());
  return self;
}

static void
queue_destroy (MusterQueue *self)
{
  for (gsize i = 0; i < self->n; i++)
    for (guint c = 0; c < self->spec.n_components; c++)
      muster_tensor_unref (element_at (self, i)[c]);
  drop_ring (self);
  g_free (self->name);
  muster_queue_spec_clear (&self->spec);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gboolean
queue_fits (gpointer queue, const MusterNode *node, GError **error)
{
  const MusterQueue *self = queue;
  return muster_queue_spec_fits (&self->spec, self->name, node, error);
}

/* Called when the container is removed, after which no element will arrive. */
static void
queue_cancel (gpointer queue)
{
  MusterQueue *self = queue;
  g_mutex_lock (&self->lock);
  self->is_closed = self->is_removed = TRUE;
  for (int side = 0; side < N_SIDES; side++)
    while (!g_queue_is_empty (&self->waiting[side]))
      cancel_attempt (self, g_queue_peek_head (&self->waiting[side]));
  g_mutex_unlock (&self->lock);
}

static void
queue_free (gpointer queue)
{
  queue_destroy (queue);
}

const MusterResourceType muster_queue_type = {.kind = "tensorflow::QueueInterface",
                                              .fits = queue_fits,
                                              .cancel = queue_cancel,
                                              .free = queue_free};
