// SPDX-License-Identifier: Apache-2.0
#include "ready/member_registry_private.h"
#include "ready/model_log_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define LEASE   (15 * MUSTER_SECOND)
#define TENTH   (LEASE / 10)
#define N_SLOTS 3

typedef struct {
  MusterFakeClock *clock;         /* (owned) */
  MusterMemberRegistry *registry; /* (owned) */
  guint n_told;                   /* how often something changed */
} Fixture;

static void
on_changed (const char *model G_GNUC_UNUSED, gboolean is_takeover G_GNUC_UNUSED, gpointer data)
{
  (*(guint *)data)++;
}

static void
fixture_start (Fixture *f)
{
  f->clock = muster_fake_clock_new ();
  f->registry = muster_member_registry_new (MUSTER_CLOCK (f->clock), LEASE, on_changed, &f->n_told);
}

static void
fixture_clear (Fixture *f)
{
  muster_member_registry_free (f->registry);
  g_object_unref (f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static const MusterMemberRequest any = {
    .model = "digits", .task = "", .who = "host:1", .slot = -1, .n_slots = N_SLOTS};

/* A member in any slot; its slot in *slot. */
static guint64
join (Fixture *f, guint *slot)
{
  g_autoptr (GError) error = NULL;
  guint64 id = muster_member_registry_join (f->registry, &any, slot, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return id;
}

static void
expect_refused (Fixture *f, const MusterMemberRequest *request, MusterError code, const char *words)
{
  g_autoptr (GError) error = NULL;
  guint slot;
  MUSTER_EXPECT_EQ (muster_member_registry_join (f->registry, request, &slot, &error), 0u);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, words);
}

/* The slots in words: "0 2 of 3". */
static char *
slots_of (Fixture *f)
{
  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (guint64));
  MusterMemberCounts counts;
  muster_member_registry_roster (f->registry, "digits", slots, ids, &counts);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < slots->len; i++)
    g_string_append_printf (text, "%u ", g_array_index (slots, guint32, i));
  g_string_append_printf (text, "of %u", counts.n_slots);
  return g_string_free (text, FALSE);
}

#define EXPECT_SLOTS(f, words)                                                                     \
  do {                                                                                             \
    g_autofree char *slots_ = slots_of (f);                                                        \
    MUSTER_EXPECT_STREQ (slots_, words);                                                           \
  } while (0)

static gboolean
report (Fixture *f, guint64 id, gint64 n_batches)
{
  return muster_member_registry_report (f->registry, id, n_batches, NULL);
}

static gint64
expire (Fixture *f, GArray *gone)
{
  return muster_member_registry_expire (f->registry, gone);
}

static GArray *
numbers (void)
{
  return g_array_new (FALSE, FALSE, sizeof (guint64));
}

/* The only model's. */
static MusterMembers *
look (Fixture *f)
{
  g_autoptr (GPtrArray) all = muster_member_registry_list (f->registry, G_MAXUINT);
  MUSTER_EXPECT_EQ (all->len, 1u);
  if (all->len != 1)
    return NULL;
  return g_ptr_array_steal_index (all, 0);
}

MUSTER_TEST (MemberRegistry, gives_the_lowest_slot_that_is_free)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot = 9;
  const guint64 first = join (&f, &slot);
  MUSTER_EXPECT_EQ (slot, 0u);
  join (&f, &slot);
  MUSTER_EXPECT_EQ (slot, 1u);

  MUSTER_EXPECT_TRUE (muster_member_registry_remove (f.registry, first, MUSTER_MEMBER_LEFT));

  EXPECT_SLOTS (&f, "1 of 3");
  join (&f, &slot);
  MUSTER_EXPECT_EQ (slot, 0u);
  join (&f, &slot);
  MUSTER_EXPECT_EQ (slot, 2u);
  EXPECT_SLOTS (&f, "0 1 2 of 3");
  MUSTER_EXPECT_EQ (f.n_told, 5u);
}

MUSTER_TEST (MemberRegistry, refuses_more_members_than_slots)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  for (int i = 0; i < N_SLOTS; i++)
    join (&f, &slot);

  expect_refused (&f, &any, MUSTER_ERROR_RESOURCE_EXHAUSTED, "all 3 slots of 'digits'");
}

MUSTER_TEST (MemberRegistry, gives_the_slot_that_is_wanted_or_none)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autoptr (GError) error = NULL;
  guint slot;
  MusterMemberRequest wants = any;
  wants.slot = 2;
  wants.task = "worker:7";

  const guint64 id = muster_member_registry_join (f.registry, &wants, &slot, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (slot, 2u);
  expect_refused (&f, &wants, MUSTER_ERROR_FAILED_PRECONDITION,
                  "slot 2 of 'digits' has a living member, worker:7 (host:1)");
  MUSTER_EXPECT_TRUE (muster_member_registry_remove (f.registry, id, MUSTER_MEMBER_ENDED));
  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &wants, &slot, &error), 0u);
}

MUSTER_TEST (MemberRegistry, lets_one_that_comes_back_take_over_from_itself)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autoptr (GError) error = NULL;
  guint slot;
  const guint64 id = join (&f, &slot);
  MusterMemberRequest again = any;
  again.id = id;
  again.slot = 0;

  MUSTER_EXPECT_EQ (muster_member_registry_join (f.registry, &again, &slot, &error), id);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (f.n_told, 1u); /* nothing has changed for others */
  again.slot = 1;
  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &again, &slot, &error), id);
  again.slot = 0;
  again.id = id + 99;
  expect_refused (&f, &again, MUSTER_ERROR_FAILED_PRECONDITION, "has a living member");
}

MUSTER_TEST (MemberRegistry, doesnt_take_another_registrys_member_for_its_own)
{
  g_auto (Fixture) before = {0};
  g_auto (Fixture) f = {0};
  guint slot;
  fixture_start (&before);
  const guint64 id = join (&before, &slot);
  f.clock = muster_fake_clock_new ();
  muster_fake_clock_set_random (f.clock, 0.25);
  f.registry = muster_member_registry_new (MUSTER_CLOCK (f.clock), LEASE, NULL, NULL);
  join (&f, &slot);
  MusterMemberRequest again = any;
  again.id = id;
  again.slot = 0;

  expect_refused (&f, &again, MUSTER_ERROR_FAILED_PRECONDITION, "has a living member");
}

MUSTER_TEST (MemberRegistry, removes_the_silent_ones_when_their_lease_is_over)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  const guint64 silent = join (&f, &slot);
  const guint64 loud = join (&f, &slot);
  const gint64 joined_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
  MUSTER_EXPECT_EQ (expire (&f, gone), joined_us + LEASE - TENTH);
  muster_fake_clock_pass (f.clock, LEASE - TENTH);
  MUSTER_EXPECT_TRUE (report (&f, loud, 3));
  MUSTER_EXPECT_EQ (expire (&f, gone), joined_us + LEASE);
  MUSTER_EXPECT_EQ (gone->len, 0u);

  muster_fake_clock_pass (f.clock, TENTH);
  const gint64 next_us = expire (&f, gone);

  MUSTER_ASSERT_EQ (gone->len, 1u);
  MUSTER_EXPECT_EQ (g_array_index (gone, guint64, 0), silent);
  EXPECT_SLOTS (&f, "1 of 3");
  MUSTER_EXPECT_EQ (next_us, joined_us + 2 * (LEASE - TENTH));
  MUSTER_EXPECT_FALSE (report (&f, silent, 4));
  MUSTER_EXPECT_TRUE (report (&f, loud, 4));
}

/* It reads what has come in the meantime only after its clock. */
MUSTER_TEST (MemberRegistry, removes_nobody_because_the_server_slept)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  const guint64 id = join (&f, &slot);
  muster_fake_clock_pass (f.clock, 10 * LEASE);
  const gint64 woken_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
  MUSTER_EXPECT_EQ (expire (&f, gone), woken_us + TENTH);

  MUSTER_EXPECT_TRUE (report (&f, id, 1));
  muster_fake_clock_pass (f.clock, TENTH);

  MUSTER_EXPECT_EQ (expire (&f, gone), woken_us + LEASE - TENTH);
  MUSTER_EXPECT_EQ (gone->len, 0u);
}

MUSTER_TEST (MemberRegistry, logs_few_of_those_that_come_and_go_and_all_that_are_silent)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  heard_begin (G_LOG_LEVEL_INFO);
  for (int i = 0; i < 1000; i++)
    muster_member_registry_remove (f.registry, join (&f, &slot), MUSTER_MEMBER_ENDED);
  for (int i = 0; i < 10; i++) {
    join (&f, &slot);
    muster_fake_clock_pass (f.clock, LEASE - TENTH);
    expire (&f, gone);
    muster_fake_clock_pass (f.clock, TENTH);
    expire (&f, gone);
  }

  MUSTER_EXPECT_LE (heard_count ("member-joined", NULL), 300U); /* in up to 30 s */
  MUSTER_EXPECT_LE (heard_count ("member-left", "*ended*"), 300U);
  MUSTER_EXPECT_EQ (heard_count ("member-left", "*silent*"), 10U);
  heard_end ();
}

MUSTER_TEST (MemberRegistry, waits_for_nothing_without_members)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  MUSTER_EXPECT_EQ (expire (&f, gone), MUSTER_WAIT_FOREVER);
  const guint64 id = join (&f, &slot);
  muster_member_registry_remove (f.registry, id, MUSTER_MEMBER_LEFT);
  muster_fake_clock_pass (f.clock, LEASE);

  MUSTER_EXPECT_EQ (expire (&f, gone), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (gone->len, 0u);
}

MUSTER_TEST (MemberRegistry, tells_who_is_there_since_when_and_how_fast)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  const guint64 id = join (&f, &slot);
  for (int i = 1; i <= 40; i++) { /* 5 a second, then 10 */
    muster_fake_clock_pass (f.clock, MUSTER_SECOND);
    report (&f, id, i <= 20 ? 5 * i : 100 + 10 * (i - 20));
  }

  g_autoptr (MusterMembers) all = look (&f);

  MUSTER_ASSERT_NOT_NULL (all);
  MUSTER_ASSERT_EQ (all->members->len, 1u);
  const MusterMember *member = all->members->pdata[0];
  MUSTER_EXPECT_STREQ (member->who, "host:1");
  MUSTER_EXPECT_EQ (member->age_us, 40 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (member->n_batches, 300);
  MUSTER_EXPECT_EQ (member->batches_per_second, 10.0);
}

MUSTER_TEST (MemberRegistry, doesnt_count_what_was_done_before_it_came_back_as_fast)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  MusterMemberRequest returns = any;
  returns.n_batches = 1000000;
  const guint64 id = muster_member_registry_join (f.registry, &returns, &slot, NULL);
  muster_fake_clock_pass (f.clock, MUSTER_SECOND);
  report (&f, id, 1000002);

  g_autoptr (MusterMembers) all = look (&f);

  MUSTER_ASSERT_TRUE (all != NULL && all->members->len == 1);
  MUSTER_EXPECT_EQ (((MusterMember *)all->members->pdata[0])->batches_per_second, 2.0);
}

MUSTER_TEST (MemberRegistry, remembers_the_last_that_left_and_why)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  for (int i = 0; i < 20; i++)
    muster_member_registry_remove (f.registry, join (&f, &slot), MUSTER_MEMBER_ENDED);
  muster_member_registry_remove (f.registry, join (&f, &slot), MUSTER_MEMBER_LEFT);
  join (&f, &slot);
  muster_fake_clock_pass (f.clock, LEASE - TENTH);
  expire (&f, gone);
  muster_fake_clock_pass (f.clock, TENTH);
  expire (&f, gone);
  muster_fake_clock_pass (f.clock, MUSTER_SECOND);

  g_autoptr (MusterMembers) all = look (&f);

  MUSTER_ASSERT_NOT_NULL (all);
  MUSTER_EXPECT_EQ (all->n_members, 0u);
  MUSTER_ASSERT_EQ (all->left->len, 10u);
  const char *const whys[] = {"silent for 15.0 s", "left",
                              "its process ended, or its connection broke"};
  for (guint i = 0; i < G_N_ELEMENTS (whys); i++) {
    g_autofree char *why = muster_member_why (all->left->pdata[i]);
    MUSTER_EXPECT_STREQ (why, whys[i]);
  }
  MUSTER_EXPECT_EQ (((MusterMember *)all->left->pdata[0])->age_us, LEASE);
  MUSTER_EXPECT_EQ (((MusterMember *)all->left->pdata[0])->left_age_us, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_member_registry_n_joined (f.registry), 22u);
  MUSTER_EXPECT_EQ (muster_member_registry_n_left (f.registry, MUSTER_MEMBER_ENDED), 20u);
}

MUSTER_TEST (MemberRegistry, keeps_a_slot_that_is_taken_over_from_others_but_has_no_task_there)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  const guint64 task = join (&f, &slot);
  MusterMemberRequest takeover = any;
  takeover.slot = 1;
  takeover.is_takeover = TRUE;
  const guint64 taken = muster_member_registry_join (f.registry, &takeover, &slot, NULL);
  MUSTER_EXPECT_EQ (slot, 1u);
  EXPECT_SLOTS (&f, "0 1 of 3");
  expect_refused (&f, &takeover, MUSTER_ERROR_FAILED_PRECONDITION, "slot 1 of 'digits'");
  MUSTER_EXPECT_EQ (f.n_told, 2u);

  g_autoptr (MusterMembers) before = look (&f);
  MUSTER_EXPECT_TRUE (muster_member_registry_remove (f.registry, taken, MUSTER_MEMBER_LEFT));
  g_autoptr (MusterMembers) after = look (&f);

  MUSTER_ASSERT_TRUE (before != NULL && after != NULL);
  MUSTER_EXPECT_EQ (before->n_members, 1u);
  MUSTER_ASSERT_EQ (before->members->len, 1u);
  MUSTER_EXPECT_EQ (((MusterMember *)before->members->pdata[0])->id, task);
  MUSTER_EXPECT_EQ (after->left->len, 0u);
  EXPECT_SLOTS (&f, "0 of 3");
  MUSTER_EXPECT_EQ (f.n_told, 3u);
  MUSTER_EXPECT_EQ (muster_member_registry_n_joined (f.registry), 1u);
  MUSTER_EXPECT_EQ (muster_member_registry_n_left (f.registry, MUSTER_MEMBER_LEFT), 0u);
}

MUSTER_TEST (MemberRegistry, forgets_a_model_that_only_had_slots_taken_over)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  MusterMemberRequest takeover = any;
  takeover.is_takeover = TRUE;
  const guint64 taken = muster_member_registry_join (f.registry, &takeover, &slot, NULL);

  MUSTER_EXPECT_TRUE (muster_member_registry_remove (f.registry, taken, MUSTER_MEMBER_ENDED));

  g_autoptr (GPtrArray) all = muster_member_registry_list (f.registry, 1);
  MUSTER_EXPECT_EQ (all->len, 0u);
}

static gboolean
is_gathering (Fixture *f)
{
  MusterMemberCounts counts;
  muster_member_registry_count (f->registry, "digits", &counts);
  return counts.is_gathering;
}

static guint
n_needed (Fixture *f)
{
  MusterMemberCounts counts;
  muster_member_registry_count (f->registry, "digits", &counts);
  return counts.min_tasks;
}

MUSTER_TEST (MemberRegistry, gathers_those_that_a_registry_before_it_had)
{
  g_auto (Fixture) before = {0}, f = {0};
  fixture_start (&before);
  fixture_start (&f);
  /* Another number for the registry, as a restarted server draws. */
  muster_member_registry_free (f.registry);
  muster_fake_clock_set_random (f.clock, 0.25);
  f.registry = muster_member_registry_new (MUSTER_CLOCK (f.clock), LEASE, on_changed, &f.n_told);
  guint slot;
  g_autoptr (GArray) gone = numbers ();
  MusterMemberRequest returns = any;
  returns.slot = 1;
  returns.id = join (&before, &slot);

  join (&f, &slot); /* a new one doesn't know of any */
  MUSTER_EXPECT_FALSE (is_gathering (&f));
  returns.min_tasks = 3;
  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &returns, &slot, NULL), 0u);
  MUSTER_EXPECT_TRUE (is_gathering (&f));
  MUSTER_EXPECT_EQ (n_needed (&f), 0u);

  muster_fake_clock_pass (f.clock, MUSTER_GATHER_US - 1);
  const guint n_told = f.n_told;
  expire (&f, gone);
  MUSTER_EXPECT_TRUE (is_gathering (&f));
  MUSTER_EXPECT_EQ (f.n_told, n_told);
  muster_fake_clock_pass (f.clock, 1);
  expire (&f, gone);
  MUSTER_EXPECT_FALSE (is_gathering (&f));
  MUSTER_EXPECT_EQ (n_needed (&f), 3u);
  MUSTER_EXPECT_GT (f.n_told, n_told);
  returns.slot = 2; /* one that is late */
  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &returns, &slot, NULL), 0u);
  MUSTER_EXPECT_FALSE (is_gathering (&f));
}

MUSTER_TEST (MemberRegistry, knows_one_of_its_own_that_comes_back_too_late)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  MusterMemberRequest returns = any;
  returns.slot = 0;
  returns.id = join (&f, &slot);
  muster_member_registry_remove (f.registry, returns.id, MUSTER_MEMBER_SILENT);

  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &returns, &slot, NULL), 0u);
  MUSTER_EXPECT_FALSE (is_gathering (&f));
}

MUSTER_TEST (MemberRegistry, forgets_a_model_an_hour_after_its_last_member)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  guint slot;
  muster_member_registry_remove (f.registry, join (&f, &slot), MUSTER_MEMBER_LEFT);
  muster_fake_clock_pass (f.clock, 3600 * MUSTER_SECOND - 1);
  muster_members_free (look (&f));

  muster_fake_clock_pass (f.clock, 1);

  g_autoptr (GPtrArray) all = muster_member_registry_list (f.registry, 1);
  MUSTER_EXPECT_EQ (all->len, 0u);
}

MUSTER_TEST (MemberRegistry, takes_the_number_of_slots_from_the_members_that_are_there)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autoptr (GError) error = NULL;
  guint slot;
  const guint64 id = join (&f, &slot);
  MusterMemberRequest more = any;
  more.n_slots = 64;
  expect_refused (&f, &more, MUSTER_ERROR_INVALID_ARGUMENT, "'digits' has 3 slots, not 64");

  muster_member_registry_remove (f.registry, id, MUSTER_MEMBER_LEFT);

  MUSTER_EXPECT_NE (muster_member_registry_join (f.registry, &more, &slot, &error), 0u);
  MUSTER_EXPECT_NO_ERROR (error);
  EXPECT_SLOTS (&f, "0 of 64");
}

/* A member that asks for so many tasks. */
static guint64
join_for (Fixture *f, gint min_tasks)
{
  MusterMemberRequest request = any;
  guint slot;
  request.min_tasks = min_tasks;
  const guint64 id = muster_member_registry_join (f->registry, &request, &slot, NULL);
  MUSTER_EXPECT_TRUE (id != 0);
  return id;
}

static void
expect_tasks (Fixture *f, guint n_tasks, guint min_tasks)
{
  MusterMemberCounts counts;
  muster_member_registry_count (f->registry, "digits", &counts);
  MUSTER_EXPECT_EQ (counts.n_tasks, n_tasks);
  MUSTER_EXPECT_EQ (counts.min_tasks, min_tasks);
}

MUSTER_TEST (MemberRegistry, needs_as_many_tasks_as_the_present_member_that_asks_for_the_most)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  expect_tasks (&f, 0, 0);

  join_for (&f, 2);
  const guint64 more = join_for (&f, 3);
  join_for (&f, 0);

  expect_tasks (&f, 3, 3);
  g_autoptr (MusterMembers) job = look (&f);
  MUSTER_ASSERT_NOT_NULL (job);
  MUSTER_EXPECT_EQ (job->min_tasks, 3u);
  muster_member_registry_remove (f.registry, more, MUSTER_MEMBER_LEFT);
  expect_tasks (&f, 2, 2);
}

MUSTER_TEST (MemberRegistry, refuses_what_makes_no_sense)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autofree char *long_name = g_strnfill (257, 'x');
  const struct {
    MusterMemberRequest request;
    const char *words;
  } cases[] = {
      {{"", "", "", -1, 1, 0, 0, 0, FALSE}, "model's name is empty"},
      {{"a\nb", "", "", -1, 1, 0, 0, 0, FALSE}, "isn't printable"},
      {{long_name, "", "", -1, 1, 0, 0, 0, FALSE}, "257 bytes"},
      {{"m", "\x01", "", -1, 1, 0, 0, 0, FALSE}, "member's task"},
      {{"m", "", long_name, -1, 1, 0, 0, 0, FALSE}, "member's process"},
      {{"m", "", "", -1, 0, 0, 0, 0, FALSE}, "invalid number of slots 0"},
      {{"m", "", "", -1, MUSTER_MAX_SLOTS + 1, 0, 0, 0, FALSE}, "invalid number of slots"},
      {{"m", "", "", -2, 4, 0, 0, 0, FALSE}, "invalid slot -2"},
      {{"m", "", "", 4, 4, 0, 0, 0, FALSE}, "invalid slot 4 of 'm' (use 0 to 3"},
      {{"m", "", "", -1, 4, 0, -1, 0, FALSE}, "invalid number of batches"},
      {{"m", "", "", -1, 4, 0, 0, -1, FALSE}, "invalid number of tasks -1"},
      {{"m", "", "", -1, 4, 0, 0, 5, FALSE},
       "invalid number of tasks 5 that 'm' needs (use 0 to 4"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    expect_refused (&f, &cases[i].request, MUSTER_ERROR_INVALID_ARGUMENT, cases[i].words);
  MUSTER_EXPECT_EQ (f.n_told, 0u);
}

/* The role `run` suffices for a chief that announces as fast as it can, under any names. */
MUSTER_TEST (ModelLog, bounds_what_chiefs_can_write)
{
  static const char *const events[] = {"checkpoint", "save-failed", "training", "chief-lost",
                                       "ready"};
  MusterSaveStatus saves = {0};
  const MusterAnnouncement before = {.model = (char *)"digits",
                                     .phase = MUSTER_CHIEF_PREPARED,
                                     .prepared = TRUE,
                                     .durable_step = -1};
  heard_begin (G_LOG_LEVEL_INFO);

  for (gint64 i = 0; i < 2000; i++) {
    MusterAnnouncement now = before;
    now.phase = MUSTER_CHIEF_TRAINING;
    now.durable_step = i;
    now.durable = (char *)"model.ckpt";
    now.saves = &saves;
    saves.n_failed = 1;
    muster_model_log_change (&before, &now);
    muster_model_log_lost (&now);
    muster_model_log_ready ("digits", 1, TRUE);
  }

  for (gsize i = 0; i < G_N_ELEMENTS (events); i++) {
    MUSTER_TRACE ("%s", events[i]);
    MUSTER_EXPECT_GE (heard_count (events[i], NULL), 100U);
    MUSTER_EXPECT_LE (heard_count (events[i], NULL),
                      400U); /* 100 in ten seconds, on a slow machine */
  }
  heard_end ();
}
