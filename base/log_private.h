// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log.h"

G_BEGIN_DECLS

/* The log: GLib's structured logging, domain "Muster". A program sees it by GLib's own means
 * (g_log_set_writer_func (), G_MESSAGES_DEBUG); the command has a writer of its own.
 *
 * Levels: CRITICAL and WARNING for what an operator must know, MESSAGE for what the user of a
 * training should read, INFO for events, DEBUG for each request. Messages below WARNING are off
 * unless they are asked for: by muster_log_set_level (), or by G_MESSAGES_DEBUG with "Muster" or
 * "all". What is off costs one atomic read. */

#define MUSTER_LOG_DOMAIN "Muster"

/* Logs a message with fields: keys that begin with "MUSTER_", each with a text; NULL and "" are
 * left out. The message comes last, with its arguments as of printf ():
 *
 *   muster_log (G_LOG_LEVEL_INFO, "claim", "MUSTER_MODEL", model, "MUSTER_EPOCH",
 *               MUSTER_LOG_INT (epoch), "MESSAGE", "'%s' has a chief", model);
 *
 * event is a static word, hyphenated, listed in docs/serving.md. Arguments are evaluated only if
 * the level is on. Never with a secret. Any thread. */
#define muster_log(level, event, ...)                                                              \
  G_STMT_START                                                                                     \
  {                                                                                                \
    if (muster_log_enabled (level))                                                                \
      muster_log_write ((level), (event), __VA_ARGS__);                                            \
  }                                                                                                \
  G_STMT_END

/* Numbers as a field's text, which lives as long as the block around them. */
#define MUSTER_LOG_INT(number) muster_log_int ((char[24]){0}, (gint64)(number))
#define MUSTER_LOG_SECONDS(us) muster_log_seconds ((char[24]){0}, (us))

const char *muster_log_int (char text[24], gint64 number);
const char *muster_log_seconds (char text[24], gint64 us);

/* For muster_log (). */
void muster_log_write (GLogLevelFlags level, const char *event, ...);

/* The least severe level that is on, as a number; 0: not determined yet. Atomic. */
extern guint muster_log_least_severe;

gboolean muster_log_determine (GLogLevelFlags level);

static inline gboolean
muster_log_enabled (GLogLevelFlags level)
{
  const guint least = __atomic_load_n (&muster_log_least_severe, __ATOMIC_RELAXED);
  return (guint)level <= least || (least == 0 && muster_log_determine (level));
}

/* A bound on messages of one kind that a client can cause. Zero-initialised, it may be static. */
typedef struct {
  guint most; /* messages in ten seconds; 0: five */
  GMutex lock;
  gint64 began_us; /* of the current ten seconds */
  guint n;         /* messages in them */
  guint left_out;  /* messages since the last that was let through */
} MusterLogLimit;

#define MUSTER_LOG_COUNT_SIZE 12

/* TRUE if one more message may be logged. left_out becomes the number of messages that weren't
 * before it, as text for the field MUSTER_LEFT_OUT; "" for none. */
gboolean muster_log_limit_allow (MusterLogLimit *self, gint64 now_us,
                                 char left_out[MUSTER_LOG_COUNT_SIZE]);

/* The same now, for a message of this level: FALSE, and nothing is counted, if the level is off. */
gboolean muster_log_bounded (GLogLevelFlags level, MusterLogLimit *limit,
                             char left_out[MUSTER_LOG_COUNT_SIZE]);

G_END_DECLS
