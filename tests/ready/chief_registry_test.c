// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"
#include "ready/chief_registry_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define LEASE (15 * MUSTER_SECOND)

typedef struct {
  MusterFakeClock *clock;        /* (owned) */
  MusterChiefRegistry *registry; /* (owned) */
  GString *told;                 /* (owned) what changed, "digits claimed; digits changed" */
} Fixture;

static void
on_changed (const char *model, MusterModelChange change, gpointer data)
{
  static const char *const names[] = {
      [MUSTER_MODEL_CLAIMED] = "claimed",
      [MUSTER_MODEL_CHANGED] = "changed",
      [MUSTER_MODEL_READY] = "ready",
      [MUSTER_MODEL_PROGRESSED] = "progressed",
  };
  GString *told = data;
  g_string_append_printf (told, "%s%s %s", told->len > 0 ? "; " : "", model, names[change]);
}

static Fixture
fixture (void)
{
  Fixture f = {.clock = muster_fake_clock_new (), .told = g_string_new (NULL)};
  f.registry = muster_chief_registry_new (MUSTER_CLOCK (f.clock), LEASE);
  muster_chief_registry_set_listener (f.registry, on_changed, f.told);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  muster_chief_registry_free (f->registry);
  g_object_unref (f->clock);
  g_string_free (f->told, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static gint64
claim_as (Fixture *f, const char *who, gint64 epoch, gboolean take_over, GError **error)
{
  MusterClaim claim = {
      .model = "digits", .task = "worker:0", .epoch = epoch, .take_over = take_over};
  return muster_chief_registry_claim (f->registry, &claim, who, NULL, NULL, error);
}

static gint64
claim (Fixture *f, const char *who, gint64 epoch, GError **error)
{
  return claim_as (f, who, epoch, FALSE, error);
}

static gboolean
announce (Fixture *f, gint64 epoch, MusterChiefPhase phase, gint64 step, GError **error)
{
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = epoch;
  announced.phase = phase;
  announced.step = step;
  return muster_chief_registry_announce (f->registry, &announced, error);
}

#define EXPECT_CLAIM(f, who, asked, given)                                                         \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_EQ (claim (f, who, asked, &error_), (gint64)(given));                            \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
  } while (0)
#define EXPECT_REFUSED(call, code, words)                                                          \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_EQ ((gint64)(call), (gint64)0);                                                  \
    MUSTER_EXPECT_ERROR (error_, MUSTER_ERROR, code);                                              \
    MUSTER_EXPECT_TRUE (error_ != NULL && strstr (error_->message, words) != NULL);                \
  } while (0)
#define EXPECT_ANNOUNCED(f, epoch, phase, step)                                                    \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_TRUE (announce (f, epoch, phase, step, &error_));                                \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
  } while (0)

/* "worker:0 (host:1), restoring for 3.0 s; epoch 1", and what holds of the model. */
static char *
look (Fixture *f)
{
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f->registry, "digits");
  if (chief == NULL)
    return g_strdup ("nobody");
  g_autofree char *text = muster_announcement_describe (chief);
  return g_strdup_printf ("%s; epoch %d%s%s", text, (int)chief->epoch,
                          chief->prepared ? "; prepared" : "", chief->is_ready ? "; ready" : "");
}

#define EXPECT_POLL(f, words)                                                                      \
  do {                                                                                             \
    g_autofree char *seen_ = look (f);                                                             \
    MUSTER_EXPECT_STREQ (seen_, words);                                                            \
  } while (0)

static void
pass (Fixture *f, gint64 seconds)
{
  muster_fake_clock_pass (f->clock, seconds * MUSTER_SECOND);
}

MUSTER_TEST (ChiefRegistry, knows_no_chief_before_one_has_registered)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_POLL (&f, "nobody");
  g_autoptr (GPtrArray) all = muster_chief_registry_list (f.registry);
  MUSTER_EXPECT_EQ (all->len, 0u);
  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), MUSTER_WAIT_FOREVER);
}

MUSTER_TEST (ChiefRegistry, reports_who_the_chief_is_and_since_when_in_which_phase)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_POLL (&f, "worker:0 (host:1), starting for 0 µs; epoch 1");

  pass (&f, 5);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_RESTORING, -1);
  pass (&f, 2);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_RESTORING, -1); /* again: still the same phase */
  pass (&f, 1);

  EXPECT_POLL (&f, "worker:0 (host:1), restoring for 3.0 s; epoch 1");
  MUSTER_EXPECT_STREQ (f.told->str, "digits claimed; digits changed");
}

MUSTER_TEST (ChiefRegistry, reports_progress_and_readiness_from_what_waiters_receive)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 1);
  g_string_truncate (f.told, 0);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 2);
  muster_chief_registry_set_ready (f.registry, "digits", 1, TRUE);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 3);

  MUSTER_EXPECT_STREQ (f.told->str, "digits progressed; digits ready; digits changed");
}

MUSTER_TEST (ChiefRegistry, keeps_what_an_announcement_leaves_out)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = 1;
  announced.phase = MUSTER_CHIEF_TRAINING;
  announced.step = 700;
  announced.durable_step = 500;
  announced.durable = (char *)"/ckpt/model-500";
  announced.durable_age_us = 4 * MUSTER_SECOND;
  pass (&f, 10);
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));
  pass (&f, 3);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_UNKNOWN, -1);

  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f.registry, "digits");
  MUSTER_EXPECT_EQ (chief->phase, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_EQ (chief->step, (gint64)700);
  MUSTER_EXPECT_EQ (chief->durable_step, (gint64)500);
  MUSTER_EXPECT_STREQ (chief->durable, "/ckpt/model-500");
  MUSTER_EXPECT_EQ (chief->durable_age_us, 7 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (chief->phase_age_us, 3 * MUSTER_SECOND);
}

/* The machine may have started after it was saved. */
MUSTER_TEST (ChiefRegistry, knows_the_age_of_a_checkpoint_that_is_older_than_its_clock)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = 1;
  announced.durable_step = 500;
  announced.durable = (char *)"/ckpt/model-500";
  announced.durable_age_us = 1000000 * MUSTER_SECOND;
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));
  pass (&f, 3);

  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f.registry, "digits");
  MUSTER_EXPECT_EQ (chief->durable_age_us, 1000003 * MUSTER_SECOND);
}

MUSTER_TEST (ChiefRegistry, keeps_how_far_the_saves_are)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  g_autofree char *longest = g_strnfill (5000, 'x');
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  MusterSaveStatus saves = MUSTER_SAVE_STATUS_INIT;
  saves.step[MUSTER_SAVE_STAGED] = 700;
  saves.age_us[MUSTER_SAVE_STAGED] = MUSTER_SECOND;
  saves.saving = (char *)"/ckpt/model-700";
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = 1;
  announced.saves = &saves;
  MusterGoodput goodput = {.began_us = 9, .age_us = MUSTER_SECOND, .step = 700};
  announced.goodput = &goodput;
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));
  pass (&f, 3);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 710);

  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (f.registry, "digits");
  MUSTER_ASSERT_TRUE (chief->saves != NULL);
  MUSTER_EXPECT_EQ (chief->saves->step[MUSTER_SAVE_STAGED], 700);
  MUSTER_EXPECT_EQ (chief->saves->age_us[MUSTER_SAVE_STAGED], 4 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (chief->saves->saving_age_us, 3 * MUSTER_SECOND);
  MUSTER_ASSERT_TRUE (chief->goodput != NULL);
  MUSTER_EXPECT_EQ (chief->goodput->began_us, 9);
  MUSTER_EXPECT_EQ (chief->goodput->age_us, 4 * MUSTER_SECOND);
  MUSTER_EXPECT_STREQ (chief->saves->saving, "/ckpt/model-700");
  muster_chief_registry_release (f.registry, "digits", 1);
  g_autoptr (MusterAnnouncement) lost = muster_chief_registry_find (f.registry, "digits");
  MUSTER_EXPECT_FALSE (lost->alive);
  MUSTER_EXPECT_NULL (lost->saves->saving);
  saves.saving = longest;
  EXPECT_REFUSED (muster_chief_registry_announce (f.registry, &announced, &error_),
                  MUSTER_ERROR_INVALID_ARGUMENT, "checkpoint's name");
  saves.saving = NULL;
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));
  g_autoptr (MusterAnnouncement) later = muster_chief_registry_find (f.registry, "digits");
  MUSTER_EXPECT_NULL (later->saves->saving);
  EXPECT_CLAIM (&f, "host:2", 2, 2);
  g_autoptr (MusterAnnouncement) other = muster_chief_registry_find (f.registry, "digits");
  MUSTER_EXPECT_NULL (other->saves); /* it has none yet */
  MUSTER_EXPECT_TRUE (other->goodput != NULL);
}

MUSTER_TEST (ChiefRegistry, refuses_a_second_chief_while_the_first_is_alive)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);

  EXPECT_REFUSED (claim (&f, "host:2", 0, &error_), MUSTER_ERROR_FAILED_PRECONDITION,
                  "worker:0 (host:1), starting");
  EXPECT_REFUSED (claim (&f, "host:2", 1, &error_), MUSTER_ERROR_FAILED_PRECONDITION, "host:1");

  EXPECT_POLL (&f, "worker:0 (host:1), starting for 0 µs; epoch 1");
}

MUSTER_TEST (ChiefRegistry, gives_way_to_a_higher_epoch)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 4, 4);

  EXPECT_CLAIM (&f, "host:2", 7, 7);

  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 7");
  EXPECT_REFUSED (announce (&f, 4, MUSTER_CHIEF_TRAINING, 1, &error_),
                  MUSTER_ERROR_FAILED_PRECONDITION, "host:2");
}

MUSTER_TEST (ChiefRegistry, refuses_a_lower_epoch_even_if_no_chief_is_alive)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 5, 5);
  muster_chief_registry_release (f.registry, "digits", 5);

  EXPECT_REFUSED (claim (&f, "host:2", 4, &error_), MUSTER_ERROR_FAILED_PRECONDITION, "epoch 5");
  EXPECT_REFUSED (claim_as (&f, "host:2", 4, TRUE, &error_), MUSTER_ERROR_FAILED_PRECONDITION,
                  "epoch 5");
}

MUSTER_TEST (ChiefRegistry, gives_the_epoch_after_the_highest_to_who_asks_for_none)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 41, 41);
  muster_chief_registry_release (f.registry, "digits", 41);

  EXPECT_CLAIM (&f, "host:2", 0, 42);
}

MUSTER_TEST (ChiefRegistry, gives_the_same_epoch_again_once_its_holder_is_dead)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 3, 3);
  muster_chief_registry_release (f.registry, "digits", 3);

  EXPECT_CLAIM (&f, "host:2", 3, 3);

  MusterAnnouncement late = MUSTER_ANNOUNCEMENT_INIT;
  late.model = (char *)"digits";
  late.epoch = 3;
  late.who = (char *)"host:1";
  late.phase = MUSTER_CHIEF_TRAINING;
  EXPECT_REFUSED (muster_chief_registry_announce (f.registry, &late, &error_),
                  MUSTER_ERROR_FAILED_PRECONDITION, "host:2");
}

MUSTER_TEST (ChiefRegistry, finds_a_chief_that_comes_back_where_it_was)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 100);
  muster_chief_registry_release (f.registry, "digits", 1);

  EXPECT_CLAIM (&f, "host:1", 1, 1);

  EXPECT_POLL (&f, "worker:0 (host:1), training for 0 µs; epoch 1; prepared");
}

MUSTER_TEST (ChiefRegistry, counts_a_chief_that_comes_back_after_a_reset_as_starting)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 100);
  muster_chief_registry_release (f.registry, "digits", 1);
  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);

  EXPECT_CLAIM (&f, "host:1", 1, 1);

  EXPECT_POLL (&f, "worker:0 (host:1), starting for 0 µs; epoch 1");
}

MUSTER_TEST (ChiefRegistry, lets_nobody_claim_a_job_that_is_over)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_PREPARED, -1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 1000);
  muster_chief_registry_release (f.registry, "digits", 1);
  pass (&f, 3600);

  EXPECT_REFUSED (claim (&f, "host:2", 0, &error_), MUSTER_ERROR_OUT_OF_RANGE, "at step 1000");
  EXPECT_REFUSED (claim (&f, "host:2", 9, &error_), MUSTER_ERROR_OUT_OF_RANGE, "at step 1000");
  EXPECT_REFUSED (announce (&f, 1, MUSTER_CHIEF_TRAINING, 1, &error_),
                  MUSTER_ERROR_FAILED_PRECONDITION, "over");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 1000); /* once more does no harm */
}

MUSTER_TEST (ChiefRegistry, lets_a_job_that_is_over_be_taken_over)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 1000);

  MUSTER_EXPECT_EQ (claim_as (&f, "host:2", 0, TRUE, &error), (gint64)2);

  MUSTER_EXPECT_NO_ERROR (error);
  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 2");
}

MUSTER_TEST (ChiefRegistry, lets_a_living_chief_be_taken_over)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  EXPECT_CLAIM (&f, "host:1", 0, 1);

  MUSTER_EXPECT_EQ (claim_as (&f, "host:2", 0, TRUE, &error), (gint64)2);

  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 2");
}

MUSTER_TEST (ChiefRegistry, gives_the_new_chief_what_stood_before)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;
  MusterClaim next = {.model = "digits", .task = "worker:1"};
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 70);
  muster_chief_registry_release (f.registry, "digits", 1);
  pass (&f, 2);

  MUSTER_EXPECT_EQ (
      muster_chief_registry_claim (f.registry, &next, "host:2", NULL, &before, &error), (gint64)2);

  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_EXPECT_STREQ (before->who, "host:1");
  MUSTER_EXPECT_EQ (before->phase, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_EQ (before->step, (gint64)70);
  MUSTER_EXPECT_TRUE (before->prepared);
  MUSTER_EXPECT_FALSE (before->alive);
  MUSTER_EXPECT_EQ (before->lost_age_us, 2 * MUSTER_SECOND);
}

MUSTER_TEST (ChiefRegistry, counts_a_silent_chief_as_lost_when_its_lease_is_out)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  pass (&f, 10);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_INITIALISING, -1); /* renews */
  pass (&f, 14);
  EXPECT_POLL (&f, "worker:0 (host:1), initialising for 14.0 s; epoch 1");

  pass (&f, 5);

  EXPECT_POLL (&f, "worker:0 (host:1), lost 4.0 s ago, last phase initialising; epoch 1");
  EXPECT_CLAIM (&f, "host:2", 0, 2);
}

MUSTER_TEST (ChiefRegistry, reports_a_lease_that_has_run_out_when_asked_to)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  gint64 start_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), start_us + LEASE - LEASE / 10);
  muster_fake_clock_pass (f.clock, LEASE - LEASE / 10);
  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), start_us + LEASE);
  muster_fake_clock_pass (f.clock, LEASE / 10);
  g_string_truncate (f.told, 0);
  g_free (look (&f)); /* somebody looks first: the others are told all the same */
  MUSTER_EXPECT_STREQ (f.told->str, "");

  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), MUSTER_WAIT_FOREVER);

  MUSTER_EXPECT_STREQ (f.told->str, "digits changed");
  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_STREQ (f.told->str, "digits changed"); /* once */
}

/* It reads what has come in the meantime only after its clock. */
MUSTER_TEST (ChiefRegistry, ends_no_lease_because_the_server_slept)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 10);
  pass (&f, 100);
  const gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), now_us + LEASE / 10);
  EXPECT_REFUSED (claim (&f, "host:2", 0, &error_), MUSTER_ERROR_FAILED_PRECONDITION,
                  "its chief is worker:0 (host:1)");

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 10);
  pass (&f, 2);

  MUSTER_EXPECT_EQ (muster_chief_registry_expire (f.registry), now_us + LEASE - LEASE / 10);
  EXPECT_POLL (&f, "worker:0 (host:1), training for 1m42s; epoch 1; prepared");
}

MUSTER_TEST (ChiefRegistry, takes_a_silent_chief_back_when_nobody_claimed_meanwhile)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 10);
  g_free (look (&f));
  pass (&f, 18);
  g_free (look (&f));
  pass (&f, 2);
  EXPECT_POLL (&f, "worker:0 (host:1), lost 5.0 s ago, last phase training; epoch 1; prepared");
  g_string_truncate (f.told, 0);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 10);

  EXPECT_POLL (&f, "worker:0 (host:1), training for 20.0 s; epoch 1; prepared");
  MUSTER_EXPECT_STREQ (f.told->str, "digits changed");
}

MUSTER_TEST (ChiefRegistry, gives_no_lease_by_announcing_to_a_chief_that_let_go)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  muster_chief_registry_release (f.registry, "digits", 1);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 50);

  EXPECT_POLL (&f, "worker:0 (host:1), lost 0 µs ago, last phase over; epoch 1");
}

MUSTER_TEST (ChiefRegistry, lets_only_the_present_chief_leave)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 1, 1);
  EXPECT_CLAIM (&f, "host:2", 2, 2);

  muster_chief_registry_release (f.registry, "digits", 1);
  muster_chief_registry_release (f.registry, "elsewhere", 2);

  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 2");
}

MUSTER_TEST (ChiefRegistry, remembers_that_a_chief_died_while_preparing)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_INITIALISING, -1);

  muster_chief_registry_release (f.registry, "digits", 1);
  pass (&f, 100);

  EXPECT_POLL (&f, "worker:0 (host:1), lost 1m40s ago, last phase initialising; epoch 1");
}

MUSTER_TEST (ChiefRegistry, keeps_readiness_only_of_what_is_prepared)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  muster_chief_registry_set_ready (f.registry, "digits", 1, TRUE); /* too early */
  EXPECT_POLL (&f, "worker:0 (host:1), starting for 0 µs; epoch 1");

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_PREPARED, -1);
  EXPECT_POLL (&f, "worker:0 (host:1), prepared for 0 µs; epoch 1; prepared");
  muster_chief_registry_set_ready (f.registry, "digits", 1, TRUE);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 1);
  EXPECT_POLL (&f, "worker:0 (host:1), training for 0 µs; epoch 1; prepared; ready");

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_RESTORING, -1); /* it prepares once more */
  EXPECT_POLL (&f, "worker:0 (host:1), restoring for 0 µs; epoch 1");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_PREPARED, -1);
  EXPECT_POLL (&f, "worker:0 (host:1), prepared for 0 µs; epoch 1; prepared");
}

MUSTER_TEST (ChiefRegistry, receives_readiness_only_from_the_present_epoch)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 1, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_PREPARED, -1);
  muster_chief_registry_set_ready (f.registry, "digits", 1, TRUE);
  EXPECT_CLAIM (&f, "host:2", 2, 2);
  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 2");
  EXPECT_ANNOUNCED (&f, 2, MUSTER_CHIEF_PREPARED, -1);

  muster_chief_registry_set_ready (f.registry, "digits", 1, TRUE);

  EXPECT_POLL (&f, "worker:0 (host:2), prepared for 0 µs; epoch 2; prepared");
}

MUSTER_TEST (ChiefRegistry, knows_after_a_reset_no_phase_but_the_highest_epoch)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 8, 8);
  EXPECT_ANNOUNCED (&f, 8, MUSTER_CHIEF_PREPARED, -1);
  muster_chief_registry_set_ready (f.registry, "digits", 8, TRUE);
  muster_chief_registry_release (f.registry, "digits", 8);

  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);

  EXPECT_POLL (&f, "worker:0 (host:1), lost 0 µs ago, last phase unknown; epoch 8");
  EXPECT_REFUSED (claim (&f, "host:2", 7, &error_), MUSTER_ERROR_FAILED_PRECONDITION, "epoch 8");
  EXPECT_CLAIM (&f, "host:2", 0, 9);
}

MUSTER_TEST (ChiefRegistry, believes_a_chief_after_a_reset_once_it_prepares_again)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 70);
  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);
  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 70); /* it only renews its lease */
  EXPECT_POLL (&f, "worker:0 (host:1), unknown for 0 µs; epoch 1");

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_RESTORING, -1);
  EXPECT_POLL (&f, "worker:0 (host:1), restoring for 0 µs; epoch 1");
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 70);
  EXPECT_POLL (&f, "worker:0 (host:1), training for 0 µs; epoch 1; prepared");
}

MUSTER_TEST (ChiefRegistry, believes_in_any_case_that_a_chief_prepares)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_INITIALISING, -1);
  muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);

  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_INITIALISING, -1);

  EXPECT_POLL (&f, "worker:0 (host:1), initialising for 0 µs; epoch 1");
}

MUSTER_TEST (ChiefRegistry, leaves_a_chief_alone_that_claimed_during_the_reset)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_CLAIM (&f, "host:1", 1, 1);
  guint64 n_claims = muster_chief_registry_n_claims (f.registry);
  EXPECT_CLAIM (&f, "host:2", 2, 2);

  muster_chief_registry_reset (f.registry, n_claims, NULL);

  EXPECT_POLL (&f, "worker:0 (host:2), starting for 0 µs; epoch 2");
}

MUSTER_TEST (ChiefRegistry, keeps_the_graph_of_the_last_chief)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  MusterClaim mine = {.model = "digits"};
  MUSTER_ASSERT_TRUE (muster_chief_registry_claim (f.registry, &mine, NULL, graph, NULL, &error) >
                      0);

  g_autoptr (MusterGraph) kept = muster_chief_registry_graph (f.registry, "digits");
  g_autoptr (MusterGraph) none = muster_chief_registry_graph (f.registry, "elsewhere");

  MUSTER_EXPECT_TRUE (kept == graph);
  MUSTER_EXPECT_NULL (none);
}

static gboolean
has_graph (Fixture *f)
{
  g_autoptr (MusterGraph) graph = muster_chief_registry_graph (f->registry, "digits");
  return graph != NULL;
}

/* A server would run out of memory for the graphs of its past jobs. */
MUSTER_TEST (ChiefRegistry, keeps_no_graph_that_nobody_needs)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  const MusterClaim mine = {.model = "digits"};
  static const struct {
    MusterChiefPhase phase;
    gboolean leaves, is_reset, is_kept;
  } cases[] = {
      {MUSTER_CHIEF_RESTORING, FALSE, TRUE, TRUE}, /* it prepares the model again */
      {MUSTER_CHIEF_RESTORING, TRUE, FALSE, FALSE},
      {MUSTER_CHIEF_TRAINING, TRUE, FALSE, TRUE}, /* the next one may continue */
      {MUSTER_CHIEF_TRAINING, TRUE, TRUE, FALSE},
      {MUSTER_CHIEF_OVER, FALSE, FALSE, FALSE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = fixture ();
    MUSTER_TRACE ("%d", (int)i);
    MUSTER_ASSERT_EQ (muster_chief_registry_claim (f.registry, &mine, NULL, graph, NULL, NULL), 1);
    EXPECT_ANNOUNCED (&f, 1, cases[i].phase, 1);
    if (cases[i].leaves)
      muster_chief_registry_release (f.registry, "digits", 1);
    if (cases[i].is_reset)
      muster_chief_registry_reset (f.registry, muster_chief_registry_n_claims (f.registry), NULL);
    MUSTER_EXPECT_EQ (has_graph (&f), cases[i].is_kept);
  }
}

typedef struct {
  const char *op;
  const char *node;
  const char *shared_name;
  const char *container;
  const char *device;
} Variable;

/* Claims a model whose graph has this variable: its epoch, or 0 with an error. */
static gint64
claim_with (Fixture *f, const MusterClaim *claim, const Variable *variable, GError **error)
{
  g_autoptr (GError) own = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, variable->op, variable->node);
  muster_graph_builder_attr_string (builder, "shared_name", variable->shared_name);
  muster_graph_builder_attr_string (builder, "container", variable->container);
  if (*variable->device != '\0')
    muster_graph_builder_device (builder, variable->device);
  muster_graph_builder_node (builder, "NoOp", "init");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &own);
  MUSTER_EXPECT_NO_ERROR (own);
  return muster_chief_registry_claim (f->registry, claim, "host:1", graph, NULL, error);
}

static const Variable of_digits = {"VarHandleOp", "w", "w", "", ""};
static const MusterClaim digits_claim = {.model = "digits", .task = "chief:0"};

MUSTER_TEST (ChiefRegistry, refuses_a_model_that_would_overwrite_a_living_chiefs_variables)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  const Variable same = {"VarHandleOp", "another/node", "w", "", ""};
  const MusterClaim other = {.model = "other"};
  const MusterClaim overwriting = {.model = "other", .take_over = TRUE, .spares_living = TRUE};
  const MusterClaim whoever = {.model = "other", .take_over = TRUE};
  MUSTER_ASSERT_TRUE (claim_with (&f, &digits_claim, &of_digits, &error) == 1);

  EXPECT_REFUSED (claim_with (&f, &other, &same, &error_), MUSTER_ERROR_ALREADY_EXISTS,
                  "the variable 'w' of 'other' is also one of 'digits', whose chief is chief:0 "
                  "(host:1), starting for 0 µs");
  EXPECT_REFUSED (claim_with (&f, &overwriting, &same, &error_), MUSTER_ERROR_ALREADY_EXISTS, "w");
  MUSTER_EXPECT_FALSE (muster_chief_registry_knows (f.registry, "other"));
  MUSTER_EXPECT_EQ (claim_with (&f, &digits_claim, &of_digits, NULL), 0); /* its own rules hold */
  MUSTER_EXPECT_EQ (claim_with (&f, &whoever, &same, &error), 1);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (ChiefRegistry, grants_a_model_whose_variables_are_nobody_elses)
{
  static const Variable others[] = {
      {"VarHandleOp", "w", "v", "", ""},       {"VariableV2", "w", "", "", ""},
      {"VarHandleOp", "w", "w", "mine", ""},   {"VarHandleOp", "w", "", "", ""},
      {"VarHandleOp", "w", "w", "", "/cpu:7"}, {"NoOp", "w", "w", "", ""},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    g_auto (Fixture) f = fixture ();
    g_autoptr (GError) error = NULL;
    const MusterClaim other = {.model = "other"};
    MUSTER_ASSERT_TRUE (claim_with (&f, &digits_claim, &of_digits, &error) == 1);
    MUSTER_EXPECT_EQ (claim_with (&f, &other, &others[i], &error), 1);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (ChiefRegistry, keeps_a_model_of_which_a_reset_clears_no_container)
{
  static const struct {
    const char *own, *cleared;
    gboolean is_kept;
  } cases[] = {{"", "other", TRUE},
               {"", "localhost", FALSE},
               {"mine", "localhost", TRUE},
               {"mine", "mine", FALSE}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = fixture ();
    const Variable variable = {"VarHandleOp", "w", "w", cases[i].own, "/job:worker"};
    const char *const containers[] = {"another", cases[i].cleared, NULL};
    MUSTER_TRACE ("%s of %s", cases[i].cleared, cases[i].own);
    MUSTER_ASSERT_EQ (claim_with (&f, &digits_claim, &variable, NULL), 1);
    EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 70);

    muster_chief_registry_reset (f.registry, 1, containers);

    g_autoptr (MusterAnnouncement) after = muster_chief_registry_find (f.registry, "digits");
    MUSTER_EXPECT_EQ (after->prepared, cases[i].is_kept);
    MUSTER_EXPECT_EQ (after->phase == MUSTER_CHIEF_TRAINING, cases[i].is_kept);
  }
}

MUSTER_TEST (ChiefRegistry, believes_no_model_of_an_unknown_graph_after_a_reset_of_a_container)
{
  static const struct {
    MusterChiefPhase before, after;
  } cases[] = {{MUSTER_CHIEF_TRAINING, MUSTER_CHIEF_UNKNOWN},
               {MUSTER_CHIEF_OVER, MUSTER_CHIEF_OVER}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = fixture ();
    const char *const containers[] = {"another", NULL};
    EXPECT_CLAIM (&f, "host:1", 0, 1); /* without a graph */
    EXPECT_ANNOUNCED (&f, 1, cases[i].before, 70);

    muster_chief_registry_reset (f.registry, 1, containers);

    g_autoptr (MusterAnnouncement) after = muster_chief_registry_find (f.registry, "digits");
    MUSTER_EXPECT_EQ (after->phase, cases[i].after);
  }
}

/* A silence may have to be seen twice before it counts. */
static void
outlast_lease (Fixture *f)
{
  pass (f, 16);
  (void)muster_chief_registry_expire (f->registry);
  pass (f, 16);
}

MUSTER_TEST (ChiefRegistry, grants_the_variables_of_a_chief_that_is_gone)
{
  for (int how = 0; how < 3; how++) {
    g_auto (Fixture) f = fixture ();
    g_autoptr (GError) error = NULL;
    const MusterClaim other = {.model = "other"};
    MUSTER_ASSERT_TRUE (claim_with (&f, &digits_claim, &of_digits, &error) == 1);
    if (how == 0)
      muster_chief_registry_release (f.registry, "digits", 1);
    else if (how == 1)
      EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_OVER, 3);
    else
      outlast_lease (&f);
    MUSTER_EXPECT_EQ (claim_with (&f, &other, &of_digits, &error), 1);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

/* Claims with a graph of these bytes, and returns what stood before (transfer full). */
static MusterAnnouncement *
claim_with_graph (Fixture *f, const char *bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) content = g_bytes_new_static (bytes, strlen (bytes));
  g_autoptr (MusterGraph) graph = muster_graph_new (content);
  const MusterClaim mine = {.model = "digits", .take_over = TRUE};
  MusterAnnouncement *before = NULL;
  MUSTER_EXPECT_GT (muster_chief_registry_claim (f->registry, &mine, NULL, graph, &before, &error),
                    0);
  MUSTER_EXPECT_NO_ERROR (error);
  return before;
}

MUSTER_TEST (ChiefRegistry, tells_a_claimant_what_the_chief_before_has_left)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterAnnouncement) none = claim_with_graph (&f, "one");
  MUSTER_EXPECT_NULL (none);
  MusterAnnouncement announced = {.model = (char *)"digits",
                                  .epoch = 1,
                                  .phase = MUSTER_CHIEF_PREPARED,
                                  .step = 7,
                                  .durable_step = -1,
                                  .holder = (char *)"me, in /run"};
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));

  g_autoptr (MusterAnnouncement) first = claim_with_graph (&f, "one");
  MUSTER_EXPECT_TRUE (first->prepared && first->same_graph && !first->failed);
  MUSTER_EXPECT_STREQ (first->holder, "me, in /run");

  announced = (MusterAnnouncement){
      .model = (char *)"digits", .epoch = 2, .step = -1, .durable_step = -1, .failed = TRUE};
  MUSTER_ASSERT_TRUE (muster_chief_registry_announce (f.registry, &announced, &error));
  g_autoptr (MusterAnnouncement) second = claim_with_graph (&f, "two");
  MUSTER_EXPECT_TRUE (!second->prepared && !second->same_graph && second->failed);
  MUSTER_EXPECT_NULL (second->holder); /* it held nothing */

  g_autoptr (MusterAnnouncement) third = claim_with_graph (&f, "two");
  MUSTER_EXPECT_TRUE (third->same_graph && !third->failed);
}

/* What `muster prepare --overwrite` and `muster finish` claim with: a word that was meant for what
 * is left of a job doesn't end one that trains. */
MUSTER_TEST (ChiefRegistry, takes_a_model_over_from_the_living_only_where_asked)
{
  g_auto (Fixture) f = fixture ();
  MusterClaim sparing = {.model = "digits", .take_over = TRUE, .spares_living = TRUE};
  EXPECT_CLAIM (&f, "host:1", 0, 1);
  EXPECT_ANNOUNCED (&f, 1, MUSTER_CHIEF_TRAINING, 7);

  EXPECT_REFUSED (muster_chief_registry_claim (f.registry, &sparing, "host:2", NULL, NULL, &error_),
                  MUSTER_ERROR_FAILED_PRECONDITION, "end it first (SIGTERM)");
  EXPECT_POLL (&f, "worker:0 (host:1), training for 0 µs; epoch 1; prepared");
  MUSTER_EXPECT_EQ (muster_chief_registry_claim (f.registry, &sparing, "host:1", NULL, NULL, NULL),
                    2); /* it has lost its session */
  sparing.epoch = 3;
  MUSTER_EXPECT_EQ (muster_chief_registry_claim (f.registry, &sparing, "host:2", NULL, NULL, NULL),
                    3);
  EXPECT_ANNOUNCED (&f, 3, MUSTER_CHIEF_OVER, 9);
  sparing.epoch = 0;
  MUSTER_EXPECT_EQ (muster_chief_registry_claim (f.registry, &sparing, "host:3", NULL, NULL, NULL),
                    4);
}

MUSTER_TEST (ChiefRegistry, tells_a_chief_whose_run_failed_from_a_lost_one)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.task = (char *)"worker:0";
  chief.phase = MUSTER_CHIEF_TRAINING;
  chief.lost_age_us = 3 * MUSTER_SECOND;
  g_autofree char *lost = muster_announcement_describe (&chief);
  chief.failed = TRUE;
  g_autofree char *failed = muster_announcement_describe (&chief);

  MUSTER_EXPECT_STREQ (lost, "worker:0, lost 3.0 s ago, last phase training");
  MUSTER_EXPECT_STREQ (failed, "worker:0, failed 3.0 s ago, last phase training");
}

MUSTER_TEST (ChiefRegistry, lists_all_models_by_name)
{
  g_auto (Fixture) f = fixture ();
  const char *const names[] = {"zebra", "ant", "moth"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    MusterClaim mine = {.model = names[i]};
    MUSTER_EXPECT_EQ (muster_chief_registry_claim (f.registry, &mine, "host:1", NULL, NULL, NULL),
                      (gint64)1);
  }

  g_autoptr (GPtrArray) all = muster_chief_registry_list (f.registry);

  MUSTER_ASSERT_EQ (all->len, 3u);
  MUSTER_EXPECT_STREQ (((MusterAnnouncement *)all->pdata[0])->model, "ant");
  MUSTER_EXPECT_STREQ (((MusterAnnouncement *)all->pdata[2])->model, "zebra");
}

static gint64
claim_model (Fixture *f, const char *model, const char *task, GError **error)
{
  MusterClaim mine = {.model = model, .task = task};
  return muster_chief_registry_claim (f->registry, &mine, "host:1", NULL, NULL, error);
}

MUSTER_TEST (ChiefRegistry, refuses_names_that_are_empty_long_or_unprintable)
{
  g_auto (Fixture) f = fixture ();
  g_autofree char *longest = g_strnfill (256, 'm');
  g_autofree char *longer = g_strnfill (257, 'm');
  g_autoptr (GError) error = NULL;

  EXPECT_REFUSED (claim_model (&f, "", "", &error_), MUSTER_ERROR_INVALID_ARGUMENT, "empty");
  EXPECT_REFUSED (claim_model (&f, longer, "", &error_), MUSTER_ERROR_INVALID_ARGUMENT, "257");
  EXPECT_REFUSED (claim_model (&f, "a\nb", "", &error_), MUSTER_ERROR_INVALID_ARGUMENT, "a\\nb");
  EXPECT_REFUSED (claim_model (&f, "a\xff", "", &error_), MUSTER_ERROR_INVALID_ARGUMENT, "\\377");
  EXPECT_REFUSED (claim_model (&f, "m", longer, &error_), MUSTER_ERROR_INVALID_ARGUMENT, "task");
  MUSTER_EXPECT_EQ (claim_model (&f, longest, "", &error), (gint64)1);
  MUSTER_EXPECT_EQ (claim_model (&f, "Ziffern – ähnlich", "", &error), (gint64)1);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (ChiefRegistry, refuses_epochs_that_cannot_be)
{
  g_auto (Fixture) f = fixture ();
  EXPECT_REFUSED (claim (&f, "host:1", -1, &error_), MUSTER_ERROR_INVALID_ARGUMENT, "epoch");
  EXPECT_REFUSED (claim (&f, "host:1", G_MAXINT64, &error_), MUSTER_ERROR_INVALID_ARGUMENT,
                  "epoch");
}

MUSTER_TEST (ChiefRegistry, refuses_an_announcement_that_makes_no_sense)
{
  g_auto (Fixture) f = fixture ();
  g_autofree char *endless = g_strnfill (4097, 'd');
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = 1;
  EXPECT_REFUSED (muster_chief_registry_announce (f.registry, &announced, &error_),
                  MUSTER_ERROR_FAILED_PRECONDITION, "is not claimed on this server");
  EXPECT_CLAIM (&f, "host:1", 1, 1);

  announced.phase = (MusterChiefPhase)8;
  EXPECT_REFUSED (muster_chief_registry_announce (f.registry, &announced, &error_),
                  MUSTER_ERROR_INVALID_ARGUMENT, "phase 8");
  announced.phase = MUSTER_CHIEF_RESTORING;
  announced.detail = endless;
  EXPECT_REFUSED (muster_chief_registry_announce (f.registry, &announced, &error_),
                  MUSTER_ERROR_INVALID_ARGUMENT, "detail");
  EXPECT_POLL (&f, "worker:0 (host:1), starting for 0 µs; epoch 1");
}

/* Ten thousand models, "model 0" and so on, with living chiefs of epoch 1. */
static void
fill (Fixture *f)
{
  for (int i = 0; i < 10000; i++) {
    g_autofree char *name = g_strdup_printf ("model %d", i);
    MUSTER_ASSERT_TRUE (claim_model (f, name, "", NULL) == 1);
  }
}

static gint64
claim_epoch (Fixture *f, const char *model, gint64 epoch, GError **error)
{
  const MusterClaim mine = {.model = model, .task = "", .epoch = epoch};
  return muster_chief_registry_claim (f->registry, &mine, "host:1", NULL, NULL, error);
}

static void
set_phase (Fixture *f, const char *model, gint64 epoch, MusterChiefPhase phase)
{
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)model;
  announced.epoch = epoch;
  announced.phase = phase;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f->registry, &announced, NULL));
}

static gboolean
is_known (Fixture *f, const char *model)
{
  g_autoptr (MusterAnnouncement) found = muster_chief_registry_find (f->registry, model);
  return found != NULL;
}

MUSTER_TEST (ChiefRegistry, keeps_ten_thousand_models_at_most)
{
  g_auto (Fixture) f = fixture ();
  fill (&f);

  EXPECT_REFUSED (claim_model (&f, "one more", "", &error_), MUSTER_ERROR_RESOURCE_EXHAUSTED,
                  "10000");
  muster_chief_registry_release (f.registry, "model 7", 1);
  MUSTER_EXPECT_EQ (claim_model (&f, "model 7", "", NULL), (gint64)2);
}

MUSTER_TEST (ChiefRegistry, forgets_the_model_that_was_lost_first_for_another)
{
  g_auto (Fixture) f = fixture ();
  fill (&f);
  muster_chief_registry_release (f.registry, "model 8", 1);
  pass (&f, 1);
  muster_chief_registry_release (f.registry, "model 7", 1);
  g_string_truncate (f.told, 0);

  MUSTER_EXPECT_EQ (claim_model (&f, "one more", "", NULL), (gint64)2);

  MUSTER_EXPECT_STREQ (f.told->str, "model 8 changed; one more claimed");
  MUSTER_EXPECT_FALSE (is_known (&f, "model 8"));
  MUSTER_EXPECT_TRUE (is_known (&f, "model 7"));
}

/* What ten thousand dead names once did: nobody else could ever claim. */
MUSTER_TEST (ChiefRegistry, has_room_after_ten_thousand_chiefs_that_died)
{
  g_auto (Fixture) f = fixture ();
  fill (&f);
  for (int i = 0; i < 4; i++) {
    pass (&f, 14);
    (void)muster_chief_registry_expire (f.registry);
  }

  EXPECT_CLAIM (&f, "host:2", 0, 2);
}

MUSTER_TEST (ChiefRegistry, forgets_no_prepared_model_and_jobs_that_are_over_last)
{
  g_auto (Fixture) f = fixture ();
  fill (&f);
  set_phase (&f, "model 1", 1, MUSTER_CHIEF_PREPARED);
  set_phase (&f, "model 2", 1, MUSTER_CHIEF_OVER);
  muster_chief_registry_release (f.registry, "model 1", 1);
  muster_chief_registry_release (f.registry, "model 2", 1);
  pass (&f, 1);
  muster_chief_registry_release (f.registry, "model 3", 1);

  MUSTER_EXPECT_EQ (claim_model (&f, "one more", "", NULL), (gint64)2);
  MUSTER_EXPECT_FALSE (is_known (&f, "model 3"));
  MUSTER_EXPECT_TRUE (is_known (&f, "model 2"));
  MUSTER_EXPECT_EQ (claim_model (&f, "and another", "", NULL), (gint64)2);
  MUSTER_EXPECT_FALSE (is_known (&f, "model 2"));
  EXPECT_REFUSED (claim_model (&f, "a third", "", &error_), MUSTER_ERROR_RESOURCE_EXHAUSTED,
                  "10000");
  MUSTER_EXPECT_TRUE (is_known (&f, "model 1"));
}

/* A chief that was replaced doesn't get its model back because the model was forgotten. */
MUSTER_TEST (ChiefRegistry, refuses_epochs_below_those_of_forgotten_models)
{
  g_auto (Fixture) f = fixture ();
  fill (&f);
  MUSTER_EXPECT_EQ (claim_epoch (&f, "model 8", 5, NULL), (gint64)5);
  muster_chief_registry_release (f.registry, "model 8", 5);
  MUSTER_EXPECT_EQ (claim_model (&f, "one more", "", NULL), (gint64)6);
  muster_chief_registry_release (f.registry, "model 9", 1);
  muster_chief_registry_release (f.registry, "model 10", 1);

  EXPECT_REFUSED (claim_epoch (&f, "model 8", 4, &error_), MUSTER_ERROR_FAILED_PRECONDITION,
                  "may be a replaced chief's");
  MUSTER_EXPECT_EQ (claim_epoch (&f, "model 8", 5, NULL), (gint64)5);
  MUSTER_EXPECT_EQ (claim_model (&f, "new", "", NULL), (gint64)6);
}

/* Whoever claims the highest epoch there is takes none from others. */
MUSTER_TEST (ChiefRegistry, has_epochs_left_above_the_highest_that_can_be_claimed)
{
  g_auto (Fixture) f = fixture ();
  const gint64 highest = G_MAXINT64 / 2;
  fill (&f);
  MUSTER_EXPECT_EQ (claim_epoch (&f, "model 8", highest, NULL), highest);
  muster_chief_registry_release (f.registry, "model 8", highest);

  MUSTER_EXPECT_EQ (claim_model (&f, "one more", "", NULL), highest + 1);

  muster_chief_registry_release (f.registry, "one more", highest + 1);
  MUSTER_EXPECT_EQ (claim_epoch (&f, "one more", highest + 1, NULL), highest + 1);
  EXPECT_REFUSED (claim_epoch (&f, "one more", highest + 2, &error_), MUSTER_ERROR_INVALID_ARGUMENT,
                  "epoch");
}

/* Many claim at once: each epoch is given once, and the board ends with the highest. */
static gpointer
claim_often (gpointer data)
{
  Fixture *f = data;
  gint64 last = 0;
  for (int i = 0; i < 500; i++) {
    gint64 epoch = claim_as (f, "host:1", 0, TRUE, NULL);
    MUSTER_EXPECT_GT (epoch, last);
    last = epoch;
    announce (f, epoch, MUSTER_CHIEF_PREPARED, i, NULL);
    muster_chief_registry_set_ready (f->registry, "digits", epoch, TRUE);
    g_free (look (f));
    muster_chief_registry_release (f->registry, "digits", epoch);
  }
  return NULL;
}

MUSTER_TEST (ChiefRegistry, may_be_used_from_any_thread)
{
  g_auto (Fixture) f = fixture ();
  g_clear_pointer (&f.registry, muster_chief_registry_free);
  f.registry = muster_chief_registry_new (MUSTER_CLOCK (f.clock), LEASE);
  GThread *threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("chief", claim_often, &f);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);

  MUSTER_EXPECT_EQ (muster_chief_registry_n_claims (f.registry), (guint64)2000);
  MUSTER_EXPECT_EQ (claim_as (&f, "host:1", 0, TRUE, NULL), (gint64)2001);
}
