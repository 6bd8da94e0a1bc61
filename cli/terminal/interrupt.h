// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterInterrupt ends work by SIGINT, SIGTERM and SIGHUP: the first cancels it, so that it clears
 * up, a second ends the process at once. A MusterLive does the same for what it displays. */

typedef struct _MusterInterrupt MusterInterrupt;

/* Must be called before any thread is started, so that all inherit the signal mask. */
MusterInterrupt *muster_interrupt_new (void);

/* For the work. */
GCancellable *muster_interrupt_cancellable (MusterInterrupt *self);

/* If a signal has arrived it doesn't return: the process ends by that signal. */
void muster_interrupt_end (MusterInterrupt *self);

/* From now on SIGINT, SIGTERM and SIGHUP end the process as muster_end_by_signal () does, unless
 * they are ignored. Borrows command, for the text. */
void muster_take_signals (const char *command);

/* Names a signal that all threads block on stderr, and ends the process by it; as the first process
 * of a container, which a signal's default action doesn't end, with 128 + number. */
void muster_end_by_signal (int number) G_GNUC_NORETURN;

G_END_DECLS
