// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupt.h"

#include "cli/output/log.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct _MusterInterrupt {
  GCancellable *work;  /* (owned) */
  GCancellable *ended; /* (owned) */
  sigset_t mask_before;
  int signals; /* a signalfd */
  gint signal; /* atomic: the first that arrived, or 0 */
  GThread *thread;
};

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static const char *running = "";

static void
say_signal (int number)
{
  const char *parts[] = {"muster ", running, ": ended by SIG", sigabbrev_np (number), "\n"};
  char line[64] = "";
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    g_strlcat (line, parts[i], sizeof line);
  (void)!write (STDERR_FILENO, line, strlen (line));
}

/* Also as a handler: it calls only what a handler may. */
G_GNUC_NORETURN static void
end_by_signal (int number)
{
  sigset_t one;
  say_signal (number);
  sigemptyset (&one);
  sigaddset (&one, number);
  signal (number, SIG_DFL);
  raise (number);
  pthread_sigmask (SIG_UNBLOCK, &one, NULL);
  _exit (128 + number); /* the first process of a container, where the default action is none */
}

void
muster_end_by_signal (int number)
{
  muster_cli_log_flush ();
  end_by_signal (number);
}

/* What is ignored, as by nohup, stays so. */
static gboolean
is_ignored (int number)
{
  struct sigaction action;
  return sigaction (number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void
muster_take_signals (const char *command)
{
  const struct sigaction action = {.sa_handler = end_by_signal};
  running = command;
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++)
    if (!is_ignored (ends[i]))
      sigaction (ends[i], &action, NULL);
}

static void
on_signal (MusterInterrupt *self)
{
  struct signalfd_siginfo info;
  if (read (self->signals, &info, sizeof info) != sizeof info)
    return;
  if (g_atomic_int_get (&self->signal) != 0)
    muster_end_by_signal ((int)info.ssi_signo);
  g_atomic_int_set (&self->signal, (int)info.ssi_signo);
  g_cancellable_cancel (self->work);
}

static gpointer
watch (gpointer data)
{
  MusterInterrupt *self = data;
  GPollFD fds[] = {{.fd = self->signals, .events = G_IO_IN}, {0}};
  if (!g_cancellable_make_pollfd (self->ended, &fds[1]))
    return NULL;
  while (!g_cancellable_is_cancelled (self->ended))
    if (g_poll (fds, G_N_ELEMENTS (fds), -1) > 0 && (fds[0].revents & G_IO_IN) != 0)
      on_signal (self);
  g_cancellable_release_fd (self->ended);
  return NULL;
}

static void
block_signals (MusterInterrupt *self)
{
  sigset_t set;
  sigemptyset (&set);
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++)
    if (!is_ignored (ends[i]))
      sigaddset (&set, ends[i]);
  pthread_sigmask (SIG_BLOCK, &set, &self->mask_before);
  self->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

MusterInterrupt *
muster_interrupt_new (void)
{
  MusterInterrupt *self = g_new0 (MusterInterrupt, 1);
  self->work = g_cancellable_new ();
  self->ended = g_cancellable_new ();
  block_signals (self);
  self->thread = g_thread_new ("interrupt", watch, self);
  return self;
}

GCancellable *
muster_interrupt_cancellable (MusterInterrupt *self)
{
  return self->work;
}

void
muster_interrupt_end (MusterInterrupt *self)
{
  g_cancellable_cancel (self->ended);
  g_thread_join (self->thread);
  if (self->signal != 0)
    muster_end_by_signal (self->signal);
  close (self->signals);
  pthread_sigmask (SIG_SETMASK, &self->mask_before, NULL);
  g_object_unref (self->work);
  g_object_unref (self->ended);
  g_free (self);
}
