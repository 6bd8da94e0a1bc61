// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/log_private.h"

G_BEGIN_DECLS

/* Messages in ten seconds of one kind of event that comes and goes with models and their tasks: a
 * large job begins with as many. */
#define MUSTER_LOG_EVENTS 100

/* muster_log () of an event that clients can cause as often as they like: at most `most` messages
 * of this place in ten seconds; the next that is let through tells how many weren't. */
#define muster_log_at_most(most_allowed, level, event, ...)                                        \
  G_STMT_START                                                                                     \
  {                                                                                                \
    static MusterLogLimit limit_ = {.most = (most_allowed)};                                       \
    char left_out_[MUSTER_LOG_COUNT_SIZE];                                                         \
    if (muster_log_bounded ((level), &limit_, left_out_))                                          \
      muster_log_write ((level), (event), "MUSTER_LEFT_OUT", left_out_, __VA_ARGS__);              \
  }                                                                                                \
  G_STMT_END

G_END_DECLS
