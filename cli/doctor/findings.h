// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* What `muster doctor` has found: a list that checks add to, printed with the worst and the
 * likeliest cause first. */

typedef enum {
  MUSTER_FINDING_ERROR,   /* the job stands still, or wouldn't resume */
  MUSTER_FINDING_WARNING, /* it goes on, with a loss or at risk */
} MusterSeverity;

/* What was checked, causes before their effects: that order decides between findings of one
 * severity. */
typedef enum {
  MUSTER_CHECK_SECRET,    /* files of tokens, keys and certificates */
  MUSTER_CHECK_TASKS,     /* of a cluster, whose master and chief need them, or of an elastic job */
  MUSTER_CHECK_MASTER,    /* whether one answers */
  MUSTER_CHECK_ACCESS,    /* whether it lets this caller in */
  MUSTER_CHECK_DIRECTORY, /* whether it is there, can be written, and is one job's */
  MUSTER_CHECK_SPACE,     /* for the next checkpoint */
  MUSTER_CHECK_CHECKPOINT, /* whether there is a whole one to resume from */
  MUSTER_CHECK_CHIEF,
  MUSTER_CHECK_WAIT,
  MUSTER_CHECK_STEP,
  MUSTER_CHECK_SAVE,
  MUSTER_CHECK_LIMIT,
  MUSTER_CHECK_CLOCK,
  MUSTER_CHECK_VERSION,
  MUSTER_CHECK_GOODPUT,
  MUSTER_CHECK_FILES, /* what dead processes have left */
  MUSTER_N_CHECKS,
} MusterCheck;

typedef struct {
  MusterSeverity severity;
  MusterCheck check;
  char *what, *where, *remedy; /* (owned) */
} MusterFinding;

typedef struct _MusterFindings MusterFindings;

MusterFindings *muster_findings_new (void);
void muster_findings_free (MusterFindings *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFindings, muster_findings_free)

/* Adds one: where it is, the remedy, and what it is. */
void muster_findings_add (MusterFindings *self, MusterSeverity severity, MusterCheck check,
                          const char *where, const char *remedy, const char *what, ...)
    G_GNUC_PRINTF (6, 7);
/* Adds an error with the remedy that its message ends in ("WHAT: CAUSE; REMEDY"), or else this one.
 */
void muster_findings_add_error (MusterFindings *self, MusterSeverity severity, MusterCheck check,
                                const char *where, const GError *error, const char *remedy);
/* Adds a place that was looked at, and its state in a few words. */
void muster_findings_add_place (MusterFindings *self, const char *place, const char *state, ...)
    G_GNUC_PRINTF (3, 4);

/* Adds all of another's, which is empty then. */
void muster_findings_take (MusterFindings *self, MusterFindings *other);

/* All of them, the worst first (element-type MusterFinding); borrowed until another is added. */
const GArray *muster_findings_list (MusterFindings *self);

/* Prints them to stdout. */
void muster_findings_print (MusterFindings *self);
void muster_findings_print_json (MusterFindings *self);

G_END_DECLS
