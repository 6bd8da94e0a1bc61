// SPDX-License-Identifier: Apache-2.0
/* Manages the child process that runs TensorFlow's server. A thread starts it, waits for its
 * end, and restarts it at the same port, which a bound socket holds in the meantime. */
#include "tensorflow/runtime_private.h"

#include "base/blocking_private.h"
#include "base/log_private.h"
#include "base/wait_private.h"
#include "rpc/address_private.h"
#include "rpc/fork_private.h"
#include "session/cluster/cluster_spec_private.h"
#include "tensorflow/admission_private.h"
#include "tensorflow/read_line_private.h"
#include "tensorflow/server_def_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_LIMIT (120 * MUSTER_SECOND)
#define FIRST_PAUSE MUSTER_SECOND
#define LAST_PAUSE  (30 * MUSTER_SECOND)
/* A process that ran this long is restarted at once. */
#define GOOD_UPTIME (10 * MUSTER_SECOND)
#define EXIT_LIMIT  (5 * MUSTER_SECOND)
#define EXIT_POLL   (5 * MUSTER_MILLISECOND)
/* Between two reports of connections that were refused. */
#define REFUSED_PAUSE (10 * MUSTER_SECOND)
/* Of sending the ServerDef to a child that reads nothing. */
#define SEND_LIMIT (5 * MUSTER_SECOND)
/* The child of a command that was killed holds the port for a moment. */
#define PORT_LIMIT (5 * MUSTER_SECOND)
#define PORT_POLL  (20 * MUSTER_MILLISECOND)
/* The helper's file descriptor of the socket. */
#define HELPER_FD 3

typedef enum {
  STARTING,
  SERVING,
  RESTING, /* waiting to restart; failure has the reason */
  OVER,    /* the first start failed; failure has the reason */
} State;

struct _MusterRuntime {
  gatomicrefcount refs;
  char *library, *helper; /* (owned) */
  char **directories;     /* (owned) (nullable) */
  MusterClock *clock;     /* (owned) */
  gint64 start_limit_us;
  MusterRuntimeReport report;
  gpointer user_data;
  GBytes *definition;         /* (owned) its ServerDef */
  MusterAdmission *admission; /* (owned) (nullable) of a cluster's task */
  int reserved; /* of one alone: bound to the port but never listening, to reserve it */
  guint16 port;
  char *place;        /* (owned) (nullable) of a cluster's task: "ps:0, 'HOST:PORT'" */
  GCancellable *stop; /* (owned) */
  GThread *keeper;    /* (owned) */
  GMutex lock;
  GCond changed;     /* signals a change of state */
  State state;       /* guarded by lock */
  GError *failure;   /* guarded by lock: (owned) (nullable) */
  char *version;     /* (owned) (nullable) guarded by lock: set once, when the server runs */
  const char *doing; /* guarded by lock: static; the current phase of the start */
  gint64 since_us;   /* guarded by lock: when that phase began */
  int pid;           /* guarded by lock */
  guint n_starts;    /* guarded by lock */
};

/* One process of its. */
typedef struct {
  GSubprocess *process; /* (owned) */
  int pid;
  int socket;
  gint64 since_us;
} Life;

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* --- the port --- */

static gboolean
set_errno (GError **error, const char *what)
{
  int saved = errno;
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (saved), "%s: %s", what,
               g_strerror (saved));
  return FALSE;
}

static void
set_option (int fd, int level, int name, int value)
{
  (void)setsockopt (fd, level, name, &value, sizeof value);
}

/* -1 with errno. */
static int
bound (int fd, const struct sockaddr *address, socklen_t size)
{
  if (fd < 0 || bind (fd, address, size) == 0)
    return fd;
  const int saved = errno;
  close (fd);
  errno = saved;
  return -1;
}

/* The child's socket shares the port through SO_REUSEPORT, which requires the same user. */
static gboolean
reserve_port (MusterRuntime *self, GError **error)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_option (fd, SOL_SOCKET, SO_REUSEPORT, 1);
  self->reserved = bound (fd, (struct sockaddr *)&address, size);
  if (self->reserved < 0 || getsockname (self->reserved, (struct sockaddr *)&address, &size) != 0)
    return set_errno (error, "no free port on 127.0.0.1 for TensorFlow's runtime");
  self->port = ntohs (address.sin_port);
  self->definition = muster_server_def_alone (self->port);
  return TRUE;
}

/* SO_REUSEADDR lets it be bound beside what is left of connections of a server before, and after
 * that would let anybody else in: only the child is to share the port. */
static int
hold (const struct sockaddr *address, socklen_t size)
{
  int fd = socket (address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (address->sa_family == AF_INET6)
    set_option (fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  set_option (fd, SOL_SOCKET, SO_REUSEADDR, 1);
  fd = bound (fd, address, size);
  if (fd >= 0) {
    set_option (fd, SOL_SOCKET, SO_REUSEADDR, 0);
    set_option (fd, SOL_SOCKET, SO_REUSEPORT, 1);
  }
  return fd;
}

/* On all addresses, of IPv4 alone where there is no IPv6. -1 with errno. */
static int
hold_everywhere (guint16 port)
{
  const struct sockaddr_in6 v6 = {
      .sin6_family = AF_INET6, .sin6_port = htons (port), .sin6_addr = in6addr_any};
  const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons (port)};
  const int fd = hold ((const struct sockaddr *)&v6, sizeof v6);
  return fd < 0 && errno != EADDRINUSE ? hold ((const struct sockaddr *)&v4, sizeof v4) : fd;
}

/* Sets the phase of the start. Call with the lock held. */
static void
set_doing (MusterRuntime *self, const char *doing)
{
  self->doing = doing;
  self->since_us = now_us ();
}

/* Tries again until the port is free. */
static void
await_port (MusterRuntime *self)
{
  const gint64 until_us = now_us () + PORT_LIMIT;
  g_mutex_lock (&self->lock);
  set_doing (self, "waiting for its port");
  g_mutex_unlock (&self->lock);
  muster_log (G_LOG_LEVEL_MESSAGE, "runtime", "MESSAGE", "port %u is in use; waiting for it",
              self->port);
  do {
    if (!muster_clock_wait_until (muster_system_clock (), now_us () + PORT_POLL, self->stop, NULL))
      return;
    self->reserved = hold_everywhere (self->port);
  } while (self->reserved < 0 && errno == EADDRINUSE && now_us () < until_us);
}

/* A cluster's task alone has to wait for its port, which it does on the keeper's thread. */
static gboolean
reserve_task_port (MusterRuntime *self, GError **error)
{
  self->reserved = hold_everywhere (self->port);
  if (self->reserved < 0 && errno == EADDRINUSE)
    await_port (self);
  if (self->reserved >= 0)
    return TRUE;
  g_autofree char *what =
      g_strdup_printf ("can't use port %u of %s for TensorFlow's runtime", self->port, self->place);
  return set_errno (error, what);
}

/* Its own task of the cluster. */
static gboolean
take_address (MusterRuntime *self, const MusterClusterSpec *cluster, GError **error)
{
  const char *job = muster_cluster_spec_job (cluster);
  const guint index = muster_cluster_spec_index (cluster);
  const MusterClusterTask *own = muster_cluster_spec_own (cluster);
  g_autofree char *host = NULL;
  if (job == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the cluster doesn't say which task this is; use --task=JOB:INDEX");
  if (own == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s:%u has no address in the cluster; give it one, HOST:PORT", job, index);
  if (!muster_address_parse (own->address, &host, &self->port, error))
    return FALSE;
  if (self->port == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s:%u has port 0 in the cluster, but the others must know it; give it one",
                        job, index);
  self->place = g_strdup_printf ("%s:%u, '%s'", own->job, own->index, own->address);
  self->definition = muster_server_def_of_task (cluster);
  self->admission = muster_admission_new (cluster);
  return TRUE;
}

/* --- a process, from its start to its end --- */

/* "it has been loading its library for 1.3 s" (transfer full); the lock is held. */
static char *
describe_start (MusterRuntime *self)
{
  g_autofree char *duration = muster_format_duration (now_us () - self->since_us);
  return g_strdup_printf ("it has been %s for %s", self->doing, duration);
}

/* The child's output and TensorFlow's log go to stderr, as stdout is for results. */
static GSubprocess *
spawn (MusterRuntime *self, int socket, GError **error)
{
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  g_autofree char *port =
      g_strdup_printf ("%s%u", self->admission != NULL ? "cluster:" : "", self->port);
  int to_stderr = fcntl (STDERR_FILENO, F_DUPFD_CLOEXEC, HELPER_FD + 1);
  if (to_stderr >= 0)
    g_subprocess_launcher_take_stdout_fd (launcher, to_stderr);
  g_subprocess_launcher_take_fd (launcher, socket, HELPER_FD);
  g_subprocess_launcher_setenv (launcher, "TF_CPP_MIN_LOG_LEVEL", "2", FALSE);
  g_autoptr (GPtrArray) line = g_ptr_array_new ();
  g_ptr_array_add (line, self->helper);
  g_ptr_array_add (line, self->library);
  g_ptr_array_add (line, port);
  for (char **at = self->directories; at != NULL && *at != NULL; at++)
    g_ptr_array_add (line, *at);
  g_ptr_array_add (line, NULL);
  GSubprocess *process =
      g_subprocess_launcher_spawnv (launcher, (const char *const *)line->pdata, error);
  if (process == NULL)
    g_prefix_error (error, "'%s' can't be started: ", self->helper);
  return process;
}

static gboolean
send_all (int socket, const void *bytes, gsize size, GError **error)
{
  for (gsize done = 0; done < size;) {
    const gssize n = send (socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR)
      return set_errno (error, "can't send TensorFlow's runtime its cluster");
    done += (gsize)MAX (n, 0);
  }
  return TRUE;
}

/* Tells the child which server it is to be; then whose connections it is to take. */
static gboolean
define (MusterRuntime *self, int socket, GError **error)
{
  const struct timeval limit = {.tv_sec = SEND_LIMIT / MUSTER_SECOND};
  gsize size;
  const void *bytes = g_bytes_get_data (self->definition, &size);
  g_autofree char *line = g_strdup_printf ("%" G_GSIZE_FORMAT "\n", size);
  setsockopt (socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (!send_all (socket, line, strlen (line), error) || !send_all (socket, bytes, size, error))
    return FALSE;
  if (self->admission != NULL)
    muster_admission_set_socket (self->admission, socket);
  return TRUE;
}

/* Called on the keeper's thread: the kernel ends the child when the thread that created it ends. */
static gboolean
begin (MusterRuntime *self, Life *life, GError **error)
{
  int ends[2];
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return set_errno (error, "can't create a socket for TensorFlow's runtime");
  life->process = spawn (self, ends[1], error);
  life->socket = ends[0];
  life->since_us = now_us ();
  if (life->process == NULL)
    return FALSE;
  const char *pid = g_subprocess_get_identifier (life->process);
  life->pid = pid != NULL ? (int)g_ascii_strtoll (pid, NULL, 10) : 0;
  return define (self, life->socket, error);
}

/* Describes how the process ended. */
static char *
describe_end (GSubprocess *process)
{
  if (g_subprocess_get_if_signaled (process)) {
    int number = g_subprocess_get_term_sig (process);
    return g_strdup_printf ("was killed by signal %d (%s)", number, g_strsignal (number));
  }
  if (g_subprocess_get_if_exited (process))
    return g_strdup_printf ("ended with %d", g_subprocess_get_exit_status (process));
  return g_strdup ("ended");
}

/* Ends the process. Closing the socket would suffice, but the process may be stuck loading its
 * library; it has no state to save, so it is killed. Returns how it ended (transfer full). */
static char *
end (MusterRuntime *self, Life *life)
{
  if (self->admission != NULL)
    muster_admission_set_socket (self->admission, -1);
  if (life->socket >= 0)
    close (life->socket);
  life->socket = -1;
  if (life->process == NULL)
    return NULL;
  g_subprocess_force_exit (life->process);
  g_subprocess_wait (life->process, NULL, NULL);
  char *how = describe_end (life->process);
  g_clear_object (&life->process);
  return how;
}

/* Gives a process that closed its socket a moment to exit, so that its exit status is known. */
static void
await_exit (MusterRuntime *self, const Life *life)
{
  MusterClock *clock = muster_system_clock ();
  gint64 until_us = now_us () + EXIT_LIMIT;
  while (g_subprocess_get_identifier (life->process) != NULL && now_us () < until_us)
    if (!muster_clock_wait_until (clock, now_us () + EXIT_POLL, self->stop, NULL))
      break;
}

/* "failed CODE REASON" */
static void
set_failure (MusterRuntime *self, const char *line, GError **error)
{
  char *reason = NULL;
  gint64 code = g_ascii_strtoll (line, &reason, 10);
  muster_fail (error, muster_error_from_wire ((int)CLAMP (code, 0, 100)),
               "'%s' can't be used as TensorFlow: %s", self->library, g_strchug (reason));
}

static void
take_version (MusterRuntime *self, const char *version)
{
  g_mutex_lock (&self->lock);
  if (self->version == NULL)
    self->version = g_strdup (version);
  g_mutex_unlock (&self->lock);
}

/* Reads the final message of the start. */
static char *
await_word (MusterRuntime *self, const Life *life, GError **error)
{
  const gint64 deadline_us = life->since_us + self->start_limit_us;
  char *line;
  while ((line = muster_runtime_read_line (life->socket, deadline_us, self->stop, error)) != NULL &&
         !g_str_has_prefix (line, "serving ") && !g_str_has_prefix (line, "failed ")) {
    if (g_str_equal (line, "loaded")) { /* else: whom it has refused */
      g_mutex_lock (&self->lock);
      set_doing (self, "starting its server");
      g_mutex_unlock (&self->lock);
    }
    g_free (line);
  }
  return line;
}

/* Sets the error for a start that exceeded its time limit. */
static void
set_late (MusterRuntime *self, GError **error)
{
  g_autofree char *limit = muster_format_duration (self->start_limit_us);
  g_mutex_lock (&self->lock);
  g_autofree char *doing = describe_start (self);
  g_mutex_unlock (&self->lock);
  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "TensorFlow's runtime from '%s' didn't start within %s: %s", self->library, limit,
               doing);
}

static gboolean
await_serving (MusterRuntime *self, Life *life, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *line = await_word (self, life, &failure);
  if (line != NULL && g_str_has_prefix (line, "serving ")) {
    take_version (self, line + strlen ("serving "));
    return TRUE;
  }
  g_autofree char *how = NULL;
  if (line != NULL && g_str_has_prefix (line, "failed ")) {
    set_failure (self, line + strlen ("failed "), error);
  } else if (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
    set_late (self, error);
  } else {
    await_exit (self, life);
    how = end (self, life);
    /* not UNAVAILABLE, which callers wait for */
    muster_fail (error, MUSTER_ERROR_INTERNAL, "TensorFlow's runtime from '%s' %s during startup",
                 self->library, how);
  }
  return FALSE;
}

/* --- the keeper --- */

/* Takes failure. */
static void
set_state (MusterRuntime *self, State state, int pid, GError *failure)
{
  g_mutex_lock (&self->lock);
  self->state = state;
  if (state == STARTING)
    set_doing (self, "loading its library");
  self->pid = pid;
  self->n_starts += pid != 0;
  g_clear_error (&self->failure);
  self->failure = failure;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void G_GNUC_PRINTF (2, 3) report (MusterRuntime *self, const char *format, ...)
{
  if (self->report == NULL || g_cancellable_is_cancelled (self->stop))
    return;
  va_list values;
  va_start (values, format);
  g_autofree char *text = g_strdup_vprintf (format, values);
  va_end (values);
  self->report (text, self->user_data);
}

/* Reads what the child says while it serves: whom it has refused. TRUE: it has closed its socket;
 * FALSE: the runtime is to stop. */
static gboolean
listen_to (MusterRuntime *self, const Life *life)
{
  gint64 next_us = 0; /* when somebody who was refused is reported again */
  for (;;) {
    g_autoptr (GError) error = NULL;
    g_autofree char *line =
        muster_runtime_read_line (life->socket, MUSTER_WAIT_FOREVER, self->stop, &error);
    if (line == NULL)
      return muster_error_is (error, MUSTER_ERROR_UNAVAILABLE);
    if (!g_str_has_prefix (line, "refused ") || self->admission == NULL)
      continue;
    muster_admission_look_again (self->admission);
    if (now_us () < next_us)
      continue;
    next_us = now_us () + REFUSED_PAUSE;
    report (
        self,
        "refused a connection from %s, which is neither a machine of the cluster nor, on this one, "
        "a "
        "process of this user; if it is a task, let its name in TF_CONFIG resolve to that address",
        line + strlen ("refused "));
  }
}

/* Runs the process from its start to its end; returns how it ended (transfer full). NULL with an
 * error if it never served. */
static char *
live (MusterRuntime *self, guint n_before, GError **error)
{
  Life life = {.socket = -1};
  if (!begin (self, &life, error) || !await_serving (self, &life, error)) {
    g_free (end (self, &life));
    return NULL;
  }
  if (n_before == 0)
    report (self, "TensorFlow %s from '%s', as process %d", self->version, self->library, life.pid);
  set_state (self, SERVING, life.pid, NULL);
  if (n_before > 0)
    report (self,
            "TensorFlow's runtime restarted as process %d; its variables and sessions are lost",
            life.pid);
  if (listen_to (self, &life))
    await_exit (self, &life);
  g_autofree char *how = end (self, &life);
  return g_strdup_printf ("TensorFlow's runtime (process %d) %s", life.pid, how);
}

/* Returns FALSE if the keeper must stop. */
static gboolean
wait_before_restart (MusterRuntime *self, const char *why, gint64 pause_us)
{
  gint64 until_us = muster_clock_now_us (self->clock) + pause_us;
  g_autofree char *pause = muster_format_duration (pause_us);
  if (pause_us == 0) {
    set_state (self, STARTING, 0, NULL);
    report (self, "%s; restarting", why);
    return !g_cancellable_is_cancelled (self->stop);
  }
  set_state (
      self, RESTING, 0,
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "%s; retrying in %s", why, pause));
  report (self, "%s; retrying in %s", why, pause);
  if (!muster_clock_wait_until (self->clock, until_us, self->stop, NULL))
    return FALSE;
  set_state (self, STARTING, 0, NULL);
  return TRUE;
}

static gpointer
keep (gpointer data)
{
  MusterRuntime *self = data;
  gint64 pause_us = 0;
  g_autoptr (GError) in_use = NULL;
  if (self->reserved < 0 && !reserve_task_port (self, &in_use)) {
    set_state (self, OVER, 0, g_steal_pointer (&in_use));
    return NULL;
  }
  for (guint n = 0;; n++) {
    g_autoptr (GError) error = NULL;
    gint64 since_us = now_us ();
    g_autofree char *ended = live (self, n, &error);
    if (ended == NULL && n == 0) {
      set_state (self, OVER, 0, g_steal_pointer (&error));
      return NULL;
    }
    if (ended != NULL && now_us () - since_us >= GOOD_UPTIME)
      pause_us = 0;
    if (!wait_before_restart (self, ended != NULL ? ended : error->message, pause_us))
      return NULL;
    pause_us = CLAMP (pause_us * 2, FIRST_PAUSE, LAST_PAUSE);
  }
}

/* --- the object --- */

MusterRuntime *
muster_runtime_new (const MusterRuntimeOptions *options, GError **error)
{
  g_autoptr (MusterRuntime) self = g_new0 (MusterRuntime, 1);
  g_atomic_ref_count_init (&self->refs);
  self->library = g_strdup (options->library);
  self->helper = g_strdup (options->helper);
  self->directories = g_strdupv ((char **)options->directories);
  self->clock = g_object_ref (options->clock != NULL ? options->clock : muster_system_clock ());
  self->start_limit_us = options->start_limit_us != 0 ? options->start_limit_us : START_LIMIT;
  self->report = options->report;
  self->user_data = options->user_data;
  self->stop = g_cancellable_new ();
  self->reserved = -1;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  if (options->cluster != NULL ? !take_address (self, options->cluster, error)
                               : !reserve_port (self, error))
    return NULL;
  set_state (self, STARTING, 0, NULL);
  self->keeper = g_thread_new ("tensorflow", keep, self);
  return g_steal_pointer (&self);
}

MusterRuntime *
muster_runtime_ref (MusterRuntime *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_runtime_unref (MusterRuntime *self)
{
  if (self == NULL || muster_rpc_is_forked () || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_cancellable_cancel (self->stop);
  g_clear_pointer (&self->keeper, g_thread_join);
  if (self->reserved >= 0)
    close (self->reserved);
  muster_admission_free (self->admission);
  g_clear_pointer (&self->definition, g_bytes_unref);
  g_clear_error (&self->failure);
  g_clear_object (&self->stop);
  g_clear_object (&self->clock);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->version);
  g_free (self->place);
  g_free (self->library);
  g_free (self->helper);
  g_strfreev (self->directories);
  g_free (self);
}

guint16
muster_runtime_port (MusterRuntime *self)
{
  return self->port;
}

/* Call with the lock held. */
static gboolean
has_started (gpointer data)
{
  const MusterRuntime *self = data;
  return self->state != STARTING;
}

gboolean
muster_runtime_await (MusterRuntime *self, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  muster_about_to_block ();
  g_mutex_lock (&self->lock);
  (void)muster_wait_for (&self->changed, &self->lock, has_started, self, deadline_us, cancellable);
  State state = self->state;
  GError *failure = self->failure != NULL ? g_error_copy (self->failure) : NULL;
  g_autofree char *doing = state == STARTING ? describe_start (self) : NULL;
  g_mutex_unlock (&self->lock);
  if (failure != NULL)
    g_propagate_error (error, failure);
  else if (state != SERVING && !g_cancellable_set_error_if_cancelled (cancellable, error))
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "Deadline Exceeded: TensorFlow's runtime from '%s' is still starting: %s",
                 self->library, doing);
  return state == SERVING;
}

gboolean
muster_runtime_is_over (MusterRuntime *self)
{
  g_mutex_lock (&self->lock);
  gboolean is_over = self->state == OVER;
  g_mutex_unlock (&self->lock);
  return is_over;
}

int
muster_runtime_pid (MusterRuntime *self, guint *n_starts)
{
  g_mutex_lock (&self->lock);
  int pid = self->pid;
  if (n_starts != NULL)
    *n_starts = self->n_starts;
  g_mutex_unlock (&self->lock);
  return pid;
}

const char *
muster_runtime_version (MusterRuntime *self)
{
  g_mutex_lock (&self->lock);
  const char *version = self->version;
  g_mutex_unlock (&self->lock);
  return version;
}

const char *
muster_runtime_library (MusterRuntime *self)
{
  return self->library;
}
