// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* The members of a model's job, as values: the request of one, and what it or the job is at one
 * instant, for rosters, status and logs. */

typedef enum {
  MUSTER_MEMBER_STAYS,
  MUSTER_MEMBER_LEFT,   /* it announced that */
  MUSTER_MEMBER_ENDED,  /* its process ended, or its connection broke */
  MUSTER_MEMBER_SILENT, /* it wasn't renewed */
  MUSTER_N_MEMBER_ENDS,
} MusterMemberEnd;

/* "left", "ended", "silent": for metrics and logs. */
const char *muster_member_end_name (MusterMemberEnd end);

typedef struct {
  guint64 id;
  guint slot;
  char *task;    /* (owned) may be empty, as may who */
  char *who;     /* (owned) */
  gint64 age_us; /* how long it has been a member, or was one */
  gint64 n_batches;
  double batches_per_second; /* over the last ten seconds or more */
  gboolean is_takeover;      /* of a slot by a task that has another one: it isn't a task */
  MusterMemberEnd end;
  gint64 silent_us;   /* since its last report */
  gint64 left_age_us; /* since it left */
} MusterMember;

/* "its process ended, or its connection broke"; NULL of one that stays. (transfer full) */
char *muster_member_why (const MusterMember *member);

/* What a task asks for. */
typedef struct {
  const char *model;
  const char *task;
  const char *who;
  gint slot; /* -1: any */
  gint n_slots;
  guint64 id;       /* of a member that comes back; else 0 */
  gint64 n_batches; /* that it has done before */
  gint min_tasks;   /* the job needs at least as many tasks; 0: any number */
  gboolean is_takeover;
} MusterMemberRequest;

/* How many tasks the job of a model has. */
typedef struct {
  guint n_slots;
  guint n_tasks;
  guint min_tasks;       /* the job waits while it has fewer; 0 while it gathers its tasks */
  gboolean is_gathering; /* after a restart of the server */
} MusterMemberCounts;

/* "waiting for tasks: 1 of at least 2" (transfer full) */
char *muster_waiting_for_tasks (guint n_tasks, guint min_tasks);
/* The same; NULL of a job that has enough. (transfer full) */
char *muster_member_counts_why (const MusterMemberCounts *counts);

/* The members of a model, by slot, and the last few that left, the latest first. */
typedef struct {
  char *model; /* (owned) */
  guint n_slots;
  guint n_members;    /* as many as members, or more */
  guint min_tasks;    /* the job waits while it has fewer tasks */
  GPtrArray *members; /* (owned) (element-type MusterMember) */
  GPtrArray *left;    /* (owned) (element-type MusterMember) */
} MusterMembers;

void muster_members_free (MusterMembers *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMembers, muster_members_free)

/* Free what a member owns, and also the member (for a list of them). */
void muster_member_clear (MusterMember *self);
void muster_member_free (gpointer member);

/* Events of the log: a member of that model has joined, or taken a slot over; it has left. Those
 * that clients can cause at will are bounded. */
void muster_member_log_joined (const char *model, const MusterMember *member);
void muster_member_log_left (const char *model, const MusterMember *member);

G_END_DECLS
