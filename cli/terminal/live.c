// SPDX-License-Identifier: Apache-2.0
/* The lines that a waiting command redraws on a terminal, and prints elsewhere at each change;
 * and the signals that end it. */
#include "cli/terminal/live.h"

#include "cli/output/json.h"
#include "cli/output/log.h"
#include "cli/output/notify.h"
#include "cli/output/progress.h"
#include "cli/output/rows.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/report.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_US        MUSTER_SECOND
#define REPEAT_US      (30 * MUSTER_SECOND)
#define DEFAULT_WIDTH  80
#define DEFAULT_HEIGHT 24
#define HIDE_CURSOR    "\033[?25l"
#define SHOW_CURSOR    "\033[?25h"
#define UP_AND_ERASE   "\033[%uA\r\033[J"

typedef enum {
  SHOWS_BLOCK,
  SHOWS_LINES,
  SHOWS_JSON,
  SHOWS_NOTHING,
} Shows;

struct _MusterLive {
  const char *doing;               /* static */
  const MusterCliOptions *options; /* (not owned) */
  Shows shows;
  gboolean coloured;
  gint64 started_us;
  gint64 deadline_us;
  GCancellable *operation; /* (owned) cancels the verb */
  GCancellable *ended;     /* (owned) ends the thread */
  GThread *thread;
  sigset_t mask_before;
  int signals;         /* a signalfd */
  int signal;          /* used by the thread until it is joined: the signal received; 0: none */
  gboolean is_seen_to; /* used by the thread: a callback has handled the signal */
  MusterLiveSignal on_signal; /* (nullable) */
  gpointer signal_data;
  MusterLiveTick tick; /* (nullable) */
  gpointer tick_data;

  GMutex lock;
  GPtrArray *rows;              /* (owned) guarded by lock, as are all below */
  char *summary;                /* (owned) (nullable) */
  guint64 restored, to_restore; /* bytes; 0: nothing is being restored */
  gint64 restoring_us;          /* since when */
  gint64 printed_us;            /* the last line */
  guint drawn;                  /* lines of the block drawn on the terminal */
  char *line;                   /* (owned) (nullable) shown instead of the block */
};

/* "digits at grpc://chief:2222" */
static char *
subject_of (const MusterLive *self)
{
  g_autofree char *text =
      g_strdup_printf ("%s %s at %s", self->doing, self->options->model, self->options->target);
  return muster_cli_one_line (text);
}

/* "9m46s left", or the elapsed time if there is no limit. */
static char *
time_of (const MusterLive *self, gint64 now_us)
{
  gboolean forever = self->deadline_us == MUSTER_WAIT_FOREVER;
  gint64 left_us = muster_deadline_remaining (self->deadline_us, now_us);
  /* round up to whole seconds */
  gint64 us = forever ? now_us - self->started_us : left_us + MUSTER_SECOND - 1;
  g_autofree char *text = muster_rows_seconds (us);
  return g_strdup_printf (forever ? "for %s" : "%s left", text);
}

static void
erase (MusterLive *self)
{
  if (self->drawn == 0)
    return;
  fprintf (stderr, UP_AND_ERASE SHOW_CURSOR, self->drawn);
  fflush (stderr);
  self->drawn = 0;
}

/* The progress bar of a restore, or "". */
static char *
bar_of (const MusterLive *self, gint64 now_us, guint width)
{
  const gint64 took_us = now_us - self->restoring_us;
  if (self->to_restore == 0 || self->restored >= self->to_restore || took_us < MUSTER_SECOND)
    return g_strdup ("");
  g_autofree char *line = muster_progress_line (
      "  reading", self->restored, self->to_restore,
      (double)self->restored * MUSTER_SECOND / (double)took_us, width, self->coloured);
  return g_strconcat (line, "\n", NULL);
}

/* Leaves the last column free: a wrapped line can't be redrawn. */
static void
measure (guint *width, guint *height)
{
  struct winsize size = {0};
  gboolean is_known = ioctl (STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  *width = is_known && size.ws_col > 1 ? size.ws_col - 1U : DEFAULT_WIDTH - 1U;
  *height = is_known && size.ws_row > 2 ? size.ws_row - 1U : DEFAULT_HEIGHT - 1U;
}

/* The rows of the components that are waited for. */
static char *
block_of (MusterLive *self, gint64 now_us)
{
  guint width, height;
  measure (&width, &height);
  g_autofree char *bar = bar_of (self, now_us, width);
  g_autofree char *subject = subject_of (self);
  g_autofree char *time = time_of (self, now_us);
  g_autofree char *head = g_strdup_printf ("%s, %s", subject, time);
  g_autofree char *block =
      muster_rows_draw (head, self->rows, now_us, width, height - (*bar != '\0'), self->coloured);
  return g_strconcat (block, bar, NULL);
}

static void
draw (MusterLive *self, gint64 now_us)
{
  g_autofree char *block =
      self->line != NULL ? g_strconcat (self->line, "\n", NULL) : block_of (self, now_us);
  g_autoptr (GString) out = g_string_new (self->drawn == 0 ? HIDE_CURSOR : NULL);
  if (self->drawn > 0)
    g_string_append_printf (out, UP_AND_ERASE, self->drawn);
  const gsize begin = out->len;
  g_string_append (out, block);
  fputs (out->str, stderr);
  fflush (stderr);
  self->drawn = 0;
  for (const char *at = out->str + begin; *at != '\0'; at++)
    self->drawn += *at == '\n';
}

static void
print_line (MusterLive *self, gint64 now_us, gboolean again)
{
  g_autofree char *subject = subject_of (self);
  g_autofree char *time = time_of (self, now_us);
  const char *colon = self->summary != NULL ? ": " : "";
  const char *summary = self->summary != NULL ? self->summary : "";
  fprintf (stderr, again ? "%s%s%s (%s)\n" : "%s%s%s\n", subject, colon, summary, time);
  fflush (stderr);
  self->printed_us = now_us;
}

static void
on_tick (MusterLive *self)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  muster_notify ("WATCHDOG=1");
  g_mutex_lock (&self->lock);
  if (self->shows == SHOWS_BLOCK)
    draw (self, now_us);
  else if (self->shows == SHOWS_LINES && self->line == NULL &&
           now_us - self->printed_us >= REPEAT_US)
    print_line (self, now_us, TRUE);
  g_mutex_unlock (&self->lock);
  if (self->tick != NULL && (self->shows == SHOWS_BLOCK || self->shows == SHOWS_LINES))
    self->tick (self->tick_data);
}

static void
on_signal (MusterLive *self)
{
  struct signalfd_siginfo info;
  if (read (self->signals, &info, sizeof info) != sizeof info)
    return;
  g_mutex_lock (&self->lock);
  erase (self);
  g_mutex_unlock (&self->lock);
  if (info.ssi_signo == SIGTSTP) {
    raise (SIGSTOP); /* the next tick after it continues draws it again */
    return;
  }
  if (self->signal != 0 || self->is_seen_to)
    muster_end_by_signal ((int)info.ssi_signo);
  self->is_seen_to =
      self->on_signal != NULL && self->on_signal ((int)info.ssi_signo, self->signal_data);
  if (self->is_seen_to)
    return;
  self->signal = (int)info.ssi_signo;
  g_cancellable_cancel (self->operation);
}

/* The milliseconds until the next redraw or report; -1: never. Many waiters run side by side, and
 * each wakeup takes CPU time. */
static int
next_tick_ms (MusterLive *self, gint64 watchdog_us)
{
  gint64 left_us = self->shows == SHOWS_BLOCK ? TICK_US : MUSTER_WAIT_FOREVER;
  if (self->shows == SHOWS_LINES) {
    g_mutex_lock (&self->lock);
    left_us = self->printed_us + REPEAT_US - muster_clock_now_us (muster_system_clock ());
    g_mutex_unlock (&self->lock);
    left_us = MAX (left_us, TICK_US); /* if nothing is due */
  }
  if (watchdog_us > 0)
    left_us = MIN (left_us, watchdog_us / 2);
  if (left_us == MUSTER_WAIT_FOREVER)
    return -1;
  return (int)MIN ((left_us - 1) / MUSTER_MILLISECOND + 1, G_MAXINT);
}

static gpointer
watch (gpointer data)
{
  MusterLive *self = data;
  GPollFD fds[] = {{.fd = self->signals, .events = G_IO_IN}, {0}};
  if (!g_cancellable_make_pollfd (self->ended, &fds[1]))
    return NULL;
  const gint64 watchdog_us = muster_notify_watchdog_us ();
  while (!g_cancellable_is_cancelled (self->ended)) {
    int n = g_poll (fds, G_N_ELEMENTS (fds), next_tick_ms (self, watchdog_us));
    if (n > 0 && (fds[0].revents & G_IO_IN) != 0)
      on_signal (self);
    else if (n == 0 && self->signal == 0)
      on_tick (self);
  }
  g_cancellable_release_fd (self->ended);
  return NULL;
}

static void
block_signals (MusterLive *self)
{
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
  sigset_t set;
  sigemptyset (&set);
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++) {
    struct sigaction action;
    gboolean is_ignored =
        sigaction (numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!is_ignored) /* nohup ignores it */
      sigaddset (&set, numbers[i]);
  }
  pthread_sigmask (SIG_BLOCK, &set, &self->mask_before);
  self->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The log's lines stand above the display. */
static void
print_log (const char *line, gpointer user_data)
{
  muster_live_say (user_data, stderr, line);
}

MusterLive *
muster_live_new (const char *doing, const MusterCliOptions *options, gboolean json_lines)
{
  MusterLive *self = g_new0 (MusterLive, 1);
  gboolean is_terminal = muster_cli_is_terminal (stderr);
  self->doing = doing;
  self->options = options;
  self->shows = options->json    ? (json_lines ? SHOWS_JSON : SHOWS_NOTHING)
                : options->quiet ? SHOWS_NOTHING
                : is_terminal    ? SHOWS_BLOCK
                                 : SHOWS_LINES;
  self->coloured = is_terminal && g_getenv ("NO_COLOR") == NULL;
  self->started_us = muster_clock_now_us (muster_system_clock ());
  self->deadline_us = muster_deadline_after (self->started_us, options->timeout_us);
  self->operation = g_cancellable_new ();
  self->ended = g_cancellable_new ();
  self->rows = g_ptr_array_new ();
  g_mutex_init (&self->lock);
  block_signals (self);
  return self;
}

void
muster_live_begin (MusterLive *self, MusterLiveSignal signal, gpointer user_data)
{
  self->on_signal = signal;
  self->signal_data = user_data;
  self->thread = g_thread_new ("live", watch, self);
  muster_cli_log_print_by (print_log, self);
}

GCancellable *
muster_live_cancellable (MusterLive *self)
{
  return self->operation;
}

static void
print_json (GPtrArray *reasons, const char *summary)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "event", "waiting");
  muster_json_add_string (builder, "waiting", summary);
  muster_cli_reasons_json (builder, reasons);
  muster_json_print_line (builder);
}

static void
begin_again (MusterLive *self, gint64 now_us)
{
  g_clear_pointer (&self->line, g_free);
  g_clear_pointer (&self->summary, g_free);
  self->started_us = now_us;
  self->deadline_us = muster_deadline_after (now_us, self->options->timeout_us);
}

void
muster_live_progress (const char *message, const MusterReadiness *readiness G_GNUC_UNUSED,
                      GPtrArray *reasons, gpointer user_data)
{
  MusterLive *self = user_data;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const MusterReason *job = reasons == NULL ? NULL : muster_reasons_find (reasons, "job");
  if (job != NULL &&
      strcmp (job->state, "over") == 0) /* the wait is over; the operation's error says why */
    return;
  g_autofree char *summary = muster_rows_summary (message, reasons);
  g_mutex_lock (&self->lock);
  if (self->line != NULL) /* the model was ready before, and another wait begins */
    begin_again (self, now_us);
  /* A report may say in other ways what the summary says already. */
  const gboolean is_new = g_strcmp0 (summary, self->summary) != 0;
  g_free (self->summary);
  self->summary = g_steal_pointer (&summary);
  g_ptr_array_unref (self->rows);
  self->rows = muster_rows_new (message, reasons);
  if (is_new)
    muster_notify_status (self->summary);
  if (self->shows == SHOWS_BLOCK)
    draw (self, now_us);
  else if (self->shows == SHOWS_LINES && is_new)
    print_line (self, now_us, FALSE);
  else if (self->shows == SHOWS_JSON)
    print_json (reasons, self->summary);
  g_mutex_unlock (&self->lock);
}

void
muster_live_set_tick (MusterLive *self, MusterLiveTick tick, gpointer user_data)
{
  self->tick = tick;
  self->tick_data = user_data;
}

/* Drawn at the next tick. */
void
muster_live_restoring (guint64 done, guint64 total, gpointer user_data)
{
  MusterLive *self = user_data;
  g_mutex_lock (&self->lock);
  if (self->to_restore != total || done < self->restored)
    self->restoring_us = muster_clock_now_us (muster_system_clock ());
  self->restored = done;
  self->to_restore = total;
  g_mutex_unlock (&self->lock);
}

guint
muster_live_width (MusterLive *self)
{
  guint width, height;
  measure (&width, &height);
  return self->shows == SHOWS_BLOCK ? width : 0;
}

gboolean
muster_live_is_coloured (MusterLive *self)
{
  return self->coloured;
}

void
muster_live_line (MusterLive *self, const char *line)
{
  g_mutex_lock (&self->lock);
  g_free (self->line);
  self->line = g_strdup (line);
  if (self->shows == SHOWS_BLOCK)
    draw (self, muster_clock_now_us (muster_system_clock ()));
  g_mutex_unlock (&self->lock);
}

void
muster_live_say (MusterLive *self, FILE *to, const char *text)
{
  g_mutex_lock (&self->lock);
  erase (self);
  muster_cli_say (to, "%s\n", text);
  if (self->shows == SHOWS_BLOCK && self->line != NULL)
    draw (self, muster_clock_now_us (muster_system_clock ()));
  g_mutex_unlock (&self->lock);
}

void
muster_live_end (MusterLive *self)
{
  muster_cli_log_print_by (NULL, NULL);
  g_cancellable_cancel (self->ended);
  g_thread_join (self->thread);
  erase (self);
  if (self->signal != 0)
    muster_end_by_signal (self->signal);
  close (self->signals);
  pthread_sigmask (SIG_SETMASK, &self->mask_before, NULL);
  g_object_unref (self->operation);
  g_object_unref (self->ended);
  g_mutex_clear (&self->lock);
  g_ptr_array_unref (self->rows);
  g_free (self->summary);
  g_free (self->line);
  g_free (self);
}
