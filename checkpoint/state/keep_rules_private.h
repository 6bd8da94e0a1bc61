// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Which checkpoints of a directory stay: a decision without I/O, from the checkpoints, the rules
 * and the time of the last one that was preserved. A saver decides so with each checkpoint that it
 * publishes, `muster checkpoint prune` by hand, and `muster checkpoint list` explains by it.
 *
 *   standing     newest          best      every N hours, N steps       goes
 *   MANAGED      counts, may be  may be    once it isn't a newest one   if nothing keeps it
 *   PINNED       -               may be    -                            never
 *   PRESERVED    -               may be    -                            never
 *   UNMANAGED    -               may be    -                            never (by this saver)
 *
 * A checkpoint stays for any one reason; all that hold are given. */

typedef struct {
  int newest;            /* this many of the newest; 0: all */
  double every_s;        /* one in each period of so many seconds; 0: none for its time */
  gboolean by_last_kept; /* such a period begins with the last preserved one (CheckpointManager's
                            rule); else it follows the one before (Saver's) */
  gint64 every_steps;    /* the first at or after each multiple of it; 0: none for its step */
  int best;              /* this many of the best; 0: none for its value */
  char *metric;          /* (owned) (nullable) the name of the value that best ones are chosen by */
  gboolean least_is_best;
} MusterKeepRules;

void muster_keep_rules_clear (MusterKeepRules *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterKeepRules, muster_keep_rules_clear)
/* *self must be cleared or zero. */
void muster_keep_rules_copy (const MusterKeepRules *from, MusterKeepRules *self);

/* Fills in what isn't set (0, NULL) from those recorded (nullable), for steps and the best; below 0
 * becomes none. */
void muster_keep_rules_inherit (MusterKeepRules *self, const MusterKeepRules *recorded);

/* Reads "NAME[:OUTPUT]:max" or ":min" into the rules. INVALID_ARGUMENT. */
gboolean muster_keep_rules_parse_metric (MusterKeepRules *self, const char *spec, GError **error);
/* A metric's name as it is recorded (transfer full): a tensor "x:0" is "x". INVALID_ARGUMENT for an
 * empty one, and one with control characters or invalid UTF-8. */
char *muster_keep_metric_name (const char *name, GError **error);

typedef enum {
  MUSTER_KEEP_MANAGED,
  MUSTER_KEEP_PINNED,    /* by a person */
  MUSTER_KEEP_PRESERVED, /* by an earlier decision */
  MUSTER_KEEP_UNMANAGED, /* of a saver that hasn't taken over the directory */
} MusterKeepStanding;

/* Why a checkpoint stays: a set. Empty: it goes. */
enum {
  MUSTER_KEEP_FOR_LATEST = 1 << 0, /* a restart takes it */
  MUSTER_KEEP_FOR_NEWEST = 1 << 1,
  MUSTER_KEEP_FOR_BEST = 1 << 2,
  MUSTER_KEEP_FOR_STEP = 1 << 3,
  MUSTER_KEEP_FOR_TIME = 1 << 4,
  MUSTER_KEEP_FOR_PIN = 1 << 5,
  MUSTER_KEEP_FOR_GOOD = 1 << 6,   /* it was preserved before, or its time is infinite */
  MUSTER_KEEP_FOR_OTHERS = 1 << 7, /* it isn't this saver's to remove */
  MUSTER_KEEP_FOR_READER = 1 << 8, /* an evaluator has it */
};

typedef struct {
  MusterKeepStanding standing;
  gint64 step;  /* -1: unknown */
  double time;  /* seconds since 1970; INFINITY: it is never removed */
  double value; /* of the metric; one that isn't finite is never best, as NAN: none yet */
  gboolean is_latest;
  gboolean is_held; /* by an evaluator: it stays, whatever its value will be */
  gboolean is_left; /* of a branch that the job has left: its steps are counted by themselves */
  guint reasons;    /* set by the decision: a set of MUSTER_KEEP_FOR_… */
} MusterKeepOne;

/* Decides for all of them, oldest first, and sets their reasons. *mark is the time of the last
 * preserved one, or by the Saver's rule the beginning of its period, and moves on with each that is
 * kept for its time. Of two equal values the newer is the better. */
void muster_keep_decide (const MusterKeepRules *rules, MusterKeepOne *all, gsize n, double *mark);

/* TRUE if it stays for good from now on: kept for its step or time, and no newest one. */
gboolean muster_keep_is_for_good (const MusterKeepOne *one);
/* TRUE if a state file lists it. */
gboolean muster_keep_is_listed (const MusterKeepOne *one);

/* Why one stays for good from now on, as words (transfer full) (nullable): "every 6 h". */
char *muster_keep_explain_good (const MusterKeepRules *rules, const MusterKeepOne *one);
/* The reasons as words (transfer full): "newest", "best (accuracy 0.97)", "every 1000 steps". Why
 * it was pinned or preserved is the caller's, each (nullable). */
char **muster_keep_explain (const MusterKeepRules *rules, const MusterKeepOne *one,
                            const char *pinned, const char *preserved);

G_END_DECLS
