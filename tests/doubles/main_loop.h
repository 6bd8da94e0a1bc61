// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* The caller's main loop, and what came back to it. */
typedef struct {
  GMainContext *context;
  GThread *thread;
  GAsyncResult *result; /* (owned) (nullable) the last one */
  guint n_back;
  gboolean in_context; /* each callback was on the caller's thread, in its context */
} MusterMainLoop;

MusterMainLoop muster_main_loop_new (void);
void muster_main_loop_clear (MusterMainLoop *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterMainLoop, muster_main_loop_clear)

/* A GAsyncReadyCallback whose user_data is the loop. */
void muster_main_loop_back (GObject *source, GAsyncResult *result, gpointer user_data);

/* Iterates until n calls have come back; ends the process after 30 s. */
void muster_main_loop_until (MusterMainLoop *self, guint n);

G_END_DECLS
