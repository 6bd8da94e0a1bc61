// SPDX-License-Identifier: Apache-2.0
/* ThreadSanitizer cannot see the synchronisation inside Debian's GLib and gRPC,
 * which are not instrumented (GLib's GMutex and abseil's Mutex are futexes).
 * These definitions stand before the libraries' own in the executable, call
 * them, and tell TSan what each one orders. Linked with --config=tsan only. */
#include <dlfcn.h>
#include <gio/gio.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <sanitizer/tsan_interface.h>

#define NEXT(name) ((__typeof__ (&name))(dlsym (RTLD_NEXT, #name)))
#define NEXT_ONCE(name)                                                                            \
  static __typeof__ (&name) cached_;                                                               \
  __typeof__ (&name) next_ = __atomic_load_n (&cached_, __ATOMIC_RELAXED);                         \
  if (next_ == NULL)                                                                               \
  __atomic_store_n (&cached_, next_ = NEXT (name), __ATOMIC_RELAXED)

/* As mutexes, so that TSan also sees locks taken in an order that can deadlock, and that one reader
 * is not ordered by another. */
#define LOCK(name, Type, flags)                                                                    \
  void name (Type *m)                                                                              \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    __tsan_mutex_pre_lock (m, flags);                                                              \
    next_ (m);                                                                                     \
    __tsan_mutex_post_lock (m, flags, 1);                                                          \
  }
#define TRYLOCK(name, Type, flags)                                                                 \
  gboolean name (Type *m)                                                                          \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    __tsan_mutex_pre_lock (m, (flags) | __tsan_mutex_try_lock);                                    \
    gboolean got = next_ (m);                                                                      \
    __tsan_mutex_post_lock (                                                                       \
        m, (flags) | (got ? __tsan_mutex_try_lock : __tsan_mutex_try_lock_failed), 1);             \
    return got;                                                                                    \
  }
#define UNLOCK(name, Type, flags)                                                                  \
  void name (Type *m)                                                                              \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    __tsan_mutex_pre_unlock (m, flags);                                                            \
    next_ (m);                                                                                     \
    __tsan_mutex_post_unlock (m, flags);                                                           \
  }
#define CLEAR(name, Type)                                                                          \
  void name (Type *m)                                                                              \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    next_ (m);                                                                                     \
    __tsan_mutex_destroy (m, 0);                                                                   \
  }

LOCK (g_mutex_lock, GMutex, 0)
TRYLOCK (g_mutex_trylock, GMutex, 0)
UNLOCK (g_mutex_unlock, GMutex, 0)
CLEAR (g_mutex_clear, GMutex)
LOCK (g_rec_mutex_lock, GRecMutex, __tsan_mutex_write_reentrant)
TRYLOCK (g_rec_mutex_trylock, GRecMutex, __tsan_mutex_write_reentrant)
UNLOCK (g_rec_mutex_unlock, GRecMutex, 0)
CLEAR (g_rec_mutex_clear, GRecMutex)
LOCK (g_rw_lock_writer_lock, GRWLock, 0)
UNLOCK (g_rw_lock_writer_unlock, GRWLock, 0)
LOCK (g_rw_lock_reader_lock, GRWLock, __tsan_mutex_read_lock)
UNLOCK (g_rw_lock_reader_unlock, GRWLock, __tsan_mutex_read_lock)
CLEAR (g_rw_lock_clear, GRWLock)

void
g_cond_wait (GCond *c, GMutex *m)
{
  NEXT_ONCE (g_cond_wait);
  __tsan_mutex_pre_unlock (m, 0);
  __tsan_mutex_post_unlock (m, 0);
  next_ (c, m);
  __tsan_mutex_pre_lock (m, 0);
  __tsan_mutex_post_lock (m, 0, 1);
}

gboolean
g_cond_wait_until (GCond *c, GMutex *m, gint64 until)
{
  NEXT_ONCE (g_cond_wait_until);
  __tsan_mutex_pre_unlock (m, 0);
  __tsan_mutex_post_unlock (m, 0);
  gboolean woken = next_ (c, m, until);
  __tsan_mutex_pre_lock (m, 0);
  __tsan_mutex_post_lock (m, 0, 1);
  return woken;
}

void
g_async_queue_push (GAsyncQueue *q, gpointer data)
{
  NEXT_ONCE (g_async_queue_push);
  __tsan_release (q);
  next_ (q, data);
}

#define POP(name)                                                                                  \
  gpointer name (GAsyncQueue *q)                                                                   \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    gpointer data = next_ (q);                                                                     \
    __tsan_acquire (q);                                                                            \
    return data;                                                                                   \
  }
POP (g_async_queue_pop)
POP (g_async_queue_try_pop)

gpointer
g_async_queue_timeout_pop (GAsyncQueue *q, guint64 timeout)
{
  NEXT_ONCE (g_async_queue_timeout_pop);
  gpointer data = next_ (q, timeout);
  __tsan_acquire (q);
  return data;
}

/* Thread pools: the function runs after the push, and before free(wait) returns. */
typedef struct {
  GFunc func;
  gpointer data;
} Pool;
static void
run_in_pool (gpointer data, gpointer user_data)
{
  Pool *pool = user_data;
  __tsan_acquire (pool);
  pool->func (data, pool->data);
  __tsan_release (pool);
}
GThreadPool *
g_thread_pool_new (GFunc func, gpointer user_data, gint max, gboolean exclusive, GError **error)
{
  NEXT_ONCE (g_thread_pool_new);
  Pool *pool = g_new (Pool, 1); /* as long-lived as the process */
  static GPtrArray *kept;
  static GMutex lock;
  g_mutex_lock (&lock);
  if (kept == NULL)
    kept = g_ptr_array_new ();
  g_ptr_array_add (kept, pool);
  g_mutex_unlock (&lock);
  pool->func = func;
  pool->data = user_data;
  return next_ (run_in_pool, pool, max, exclusive, error);
}
gboolean
g_thread_pool_push (GThreadPool *p, gpointer data, GError **error)
{
  NEXT_ONCE (g_thread_pool_push);
  __tsan_release (((struct {
                    GFunc f;
                    gpointer u;
                  } *)p)
                      ->u);
  return next_ (p, data, error);
}
void
g_thread_pool_free (GThreadPool *p, gboolean immediate, gboolean wait)
{
  NEXT_ONCE (g_thread_pool_free);
  void *pool = ((struct {
                 GFunc f;
                 gpointer u;
               } *)p)
                   ->u;
  next_ (p, immediate, wait);
  __tsan_acquire (pool);
}

/* GTask: run_in_thread -> worker -> return -> callback. The task is the address. */
typedef struct {
  GTaskThreadFunc func;
} InThread;
static void
task_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  __tsan_acquire (task);
  GTaskThreadFunc func = g_object_get_data (G_OBJECT (task), "muster-tsan-func");
  func (task, source, data, cancellable);
  __tsan_release (task);
}
void
g_task_run_in_thread (GTask *task, GTaskThreadFunc func)
{
  NEXT_ONCE (g_task_run_in_thread);
  g_object_set_data (G_OBJECT (task), "muster-tsan-func", (gpointer)func);
  __tsan_release (task);
  next_ (task, task_in_thread);
}
#define RETURN(name, T)                                                                            \
  void name (GTask *task, T v)                                                                     \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    __tsan_release (task);                                                                         \
    next_ (task, v);                                                                               \
  }
RETURN (g_task_return_int, gssize)
RETURN (g_task_return_boolean, gboolean)
RETURN (g_task_return_error, GError *)
#define PROPAGATE(name, T)                                                                         \
  T name (GTask *task, GError **e)                                                                 \
  {                                                                                                \
    NEXT_ONCE (name);                                                                              \
    __tsan_acquire (task);                                                                         \
    return next_ (task, e);                                                                        \
  }
PROPAGATE (g_task_propagate_int, gssize)
PROPAGATE (g_task_propagate_boolean, gboolean)
PROPAGATE (g_task_propagate_pointer, gpointer)
void
g_task_return_pointer (GTask *task, gpointer result, GDestroyNotify destroy)
{
  NEXT_ONCE (g_task_return_pointer);
  __tsan_release (task);
  next_ (task, result, destroy);
}

/* Sources: attach/invoke -> dispatch, per context-less idle. One address for all
 * (over-approximates: hides races between unrelated sources, invents none). */
static char sources;
typedef struct {
  GSourceFunc func;
  gpointer data;
  GDestroyNotify notify;
} Source;
static gboolean
dispatch (gpointer d)
{
  Source *s = d;
  __tsan_acquire (&sources);
  return s->func (s->data);
}
static void
destroy (gpointer d)
{
  Source *s = d;
  if (s->notify != NULL)
    s->notify (s->data);
  g_free (s);
}
static Source *
wrap (GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  Source *s = g_new (Source, 1);
  *s = (Source){func, data, notify};
  __tsan_release (&sources);
  return s;
}
guint
g_idle_add_full (gint priority, GSourceFunc func, gpointer data, GDestroyNotify notify)
{
  NEXT_ONCE (g_idle_add_full);
  return next_ (priority, dispatch, wrap (func, data, notify), destroy);
}
guint
g_idle_add (GSourceFunc func, gpointer data)
{
  return g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, func, data, NULL);
}
void
g_main_context_invoke_full (GMainContext *c, gint priority, GSourceFunc func, gpointer data,
                            GDestroyNotify notify)
{
  NEXT_ONCE (g_main_context_invoke_full);
  next_ (c, priority, dispatch, wrap (func, data, notify), destroy);
}
void
g_main_context_invoke (GMainContext *c, GSourceFunc func, gpointer data)
{
  g_main_context_invoke_full (c, G_PRIORITY_DEFAULT, func, data, NULL);
}

/* GCancellable: what is done before a connect is seen by the callback, and what is done before a
 * cancellation or by its callbacks is seen by whom a disconnect lets go on. */
gulong
g_cancellable_connect (GCancellable *c, GCallback callback, gpointer data, GDestroyNotify notify)
{
  NEXT_ONCE (g_cancellable_connect);
  __tsan_acquire (c); /* it calls back at once where it has been cancelled */
  __tsan_release (c);
  return next_ (c, callback, data, notify);
}
void
g_cancellable_cancel (GCancellable *c)
{
  NEXT_ONCE (g_cancellable_cancel);
  if (c == NULL)
    return;
  __tsan_release (c);
  __tsan_acquire (c);
  next_ (c);
  __tsan_release (c);
}
void
g_cancellable_disconnect (GCancellable *c, gulong id)
{
  NEXT_ONCE (g_cancellable_disconnect);
  next_ (c, id);
  if (c != NULL)
    __tsan_acquire (c);
}

/* Reference counts: whoever drops the last one sees what the others did before they dropped theirs.
 */
#undef g_object_ref
gpointer
g_object_ref (gpointer o)
{
  NEXT_ONCE (g_object_ref);
  return next_ (o);
}
void
g_object_unref (gpointer o)
{
  NEXT_ONCE (g_object_unref);
  __tsan_release (o);
  __tsan_acquire (o);
  next_ (o);
}
void
g_bytes_unref (GBytes *bytes)
{
  NEXT_ONCE (g_bytes_unref);
  if (bytes == NULL)
    return;
  __tsan_release (bytes);
  __tsan_acquire (bytes);
  next_ (bytes);
}
#undef g_atomic_ref_count_dec
gboolean
g_atomic_ref_count_dec (gatomicrefcount *count)
{
  NEXT_ONCE (g_atomic_ref_count_dec);
  __tsan_release (count);
  gboolean is_last = next_ (count);
  if (is_last)
    __tsan_acquire (count);
  return is_last;
}

/* What was made once is seen by who finds it made: the macro's atomic read acquires, and so does
 * the function where it waited for another thread to make it. */
#undef g_once_init_enter
gboolean
g_once_init_enter (volatile void *location)
{
  NEXT_ONCE (g_once_init_enter);
  gboolean is_mine = next_ (location);
  if (!is_mine)
    __tsan_acquire ((void *)location);
  return is_mine;
}
#undef g_once_init_leave
void
g_once_init_leave (volatile void *location, gsize result)
{
  NEXT_ONCE (g_once_init_leave);
  __tsan_release ((void *)location);
  next_ (location, result);
}

typedef struct {
  GOnce *once;
  GThreadFunc func;
  gpointer data;
} Once;
static gpointer
run_once (gpointer data)
{
  Once *it = data;
  gpointer result = it->func (it->data);
  __tsan_release ((void *)&it->once->status);
  return result;
}
gpointer
g_once_impl (GOnce *once, GThreadFunc func, gpointer data)
{
  NEXT_ONCE (g_once_impl);
  Once it = {once, func, data};
  gpointer result = next_ (once, run_once, &it);
  __tsan_acquire ((void *)&once->status);
  return result;
}

/* A class, its parents and its interfaces are set up on the thread that first makes an object of
 * it; all who make one later see that. The lock itself must stay unseen: it would order those
 * threads in all they do. */
__attribute__ ((no_sanitize_thread)) static void
see_class (GType type)
{
  static GMutex lock;
  static GHashTable *seen;
  static __thread guint depth; /* setting up one class may make an object of another */
  if (type == 0)
    return;
  see_class (g_type_parent (type));
  if (depth++ == 0)
    NEXT (g_mutex_lock) (&lock);
  if (seen == NULL)
    seen = g_hash_table_new (NULL, NULL);
  gpointer class_of_type = g_type_class_ref (type);
  gboolean is_first = g_hash_table_add (seen, class_of_type);
  if (is_first)
    __tsan_release (class_of_type);
  if (--depth == 0)
    NEXT (g_mutex_unlock) (&lock);
  __tsan_acquire (class_of_type);
}
gpointer
g_object_new (GType type, const char *first_property, ...)
{
  see_class (type);
  va_list properties;
  va_start (properties, first_property);
  gpointer object = g_object_new_valist (type, first_property, properties);
  va_end (properties);
  return object;
}

/* gRPC: what is done before a batch is started is seen by whom its tag is given. */
grpc_call_error
grpc_call_start_batch (grpc_call *call, const grpc_op *ops, size_t n, void *tag, void *reserved)
{
  NEXT_ONCE (grpc_call_start_batch);
  __tsan_release (tag);
  return next_ (call, ops, n, tag, reserved);
}
grpc_event
grpc_completion_queue_next (grpc_completion_queue *cq, gpr_timespec until, void *reserved)
{
  NEXT_ONCE (grpc_completion_queue_next);
  grpc_event event = next_ (cq, until, reserved);
  if (event.type == GRPC_OP_COMPLETE)
    __tsan_acquire (event.tag);
  return event;
}
grpc_call_error
grpc_server_request_call (grpc_server *server, grpc_call **call, grpc_call_details *details,
                          grpc_metadata_array *metadata, grpc_completion_queue *bound,
                          grpc_completion_queue *notify, void *tag)
{
  NEXT_ONCE (grpc_server_request_call);
  __tsan_release (tag);
  return next_ (server, call, details, metadata, bound, notify, tag);
}
void
grpc_server_shutdown_and_notify (grpc_server *server, grpc_completion_queue *cq, void *tag)
{
  NEXT_ONCE (grpc_server_shutdown_and_notify);
  __tsan_release (tag);
  next_ (server, cq, tag);
}
grpc_event
grpc_completion_queue_pluck (grpc_completion_queue *cq, void *tag, gpr_timespec until,
                             void *reserved)
{
  NEXT_ONCE (grpc_completion_queue_pluck);
  grpc_event event = next_ (cq, tag, until, reserved);
  if (event.type == GRPC_OP_COMPLETE)
    __tsan_acquire (tag);
  return event;
}
grpc_call_error
grpc_server_request_registered_call (grpc_server *server, void *method, grpc_call **call,
                                     gpr_timespec *deadline, grpc_metadata_array *metadata,
                                     grpc_byte_buffer **payload, grpc_completion_queue *bound,
                                     grpc_completion_queue *notify, void *tag)
{
  NEXT_ONCE (grpc_server_request_registered_call);
  __tsan_release (tag);
  return next_ (server, method, call, deadline, metadata, payload, bound, notify, tag);
}

/* What guards a server: it is set before any call is judged by it, and destroyed, on a thread of
 * gRPC's, after the last one. */
static void
judge (void *state, grpc_auth_context *context, const grpc_metadata *metadata, size_t n,
       grpc_process_auth_metadata_done_cb done, void *user_data)
{
  grpc_auth_metadata_processor *real = state;
  __tsan_acquire (real);
  real->process (real->state, context, metadata, n, done, user_data);
  __tsan_release (real);
}
static void
destroy_judge (void *state)
{
  grpc_auth_metadata_processor *real = state;
  __tsan_acquire (real);
  real->destroy (real->state);
  g_free (real);
}
void
grpc_server_credentials_set_auth_metadata_processor (grpc_server_credentials *credentials,
                                                     grpc_auth_metadata_processor processor)
{
  NEXT_ONCE (grpc_server_credentials_set_auth_metadata_processor);
  grpc_auth_metadata_processor *real = g_memdup2 (&processor, sizeof processor);
  __tsan_release (real);
  next_ (credentials, (grpc_auth_metadata_processor){judge, destroy_judge, real});
}
