// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "rpc/messages/run_step_private.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* A request with something in every field, and a tensor large enough to travel by reference. */
typedef struct {
  MusterTensor *feeds[3];
  GBytes *message;
} Sample;

static const char *const names[] = {"x:0", "words", "large"};
static const char *const fetches[] = {"y:0", "w", "z:1"};
static const char *const in_full[] = {"y:0", "w:0", "z:1"};
static const char *const targets[] = {"train", "init"};

static void
sample_init (Sample *self, gboolean is_callable)
{
  static const gint64 dims[] = {100, 20};
  self->feeds[0] = muster_tensor_new_float (1.5f);
  self->feeds[1] = muster_tensor_new_strv ((const char *const[]){"a", "", "ccc", NULL});
  self->feeds[2] = muster_tensor_new (MUSTER_FLOAT, 2, dims);
  float *values = muster_tensor_data_mutable (self->feeds[2]);
  for (int i = 0; i < 2000; i++)
    values[i] = (float)i;
  g_autoptr (GBytes) options = g_bytes_new_static ("\x10\x05", 2);
  MusterFeed feeds[3];
  for (gsize i = 0; i < 3; i++)
    feeds[i] = (MusterFeed){names[i], self->feeds[i]};
  MusterStepRequest request = {
      .session_handle = "a handle",
      .step = {.feeds = feeds,
               .n_feeds = 3,
               .fetches = fetches,
               .n_fetches = 3,
               .targets = targets,
               .n_targets = 2,
               .options = options},
      .partial_run = "part",
      .store_errors_in_response_body = TRUE,
      .request_id = -7,
      .callable = 42,
      .bare_feeds = self->feeds,
      .n_bare_feeds = 3,
  };
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  if (is_callable)
    muster_step_request_encode_callable (&request, &rope, NULL);
  else
    muster_step_request_encode_run (&request, &rope, NULL);
  self->message = muster_rope_flatten (&rope);
}

static void
sample_clear (Sample *self)
{
  for (int i = 0; i < 3; i++)
    muster_tensor_unref (self->feeds[i]);
  g_bytes_unref (self->message);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sample, sample_clear)

MUSTER_TEST (StepRequest, of_run_comes_back_as_it_went)
{
  g_auto (Sample) f;
  sample_init (&f, FALSE);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterStepRequest) got = muster_step_request_decode_run (f.message, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (got->session_handle, "a handle");
  MUSTER_EXPECT_STREQ (got->partial_run, "part");
  MUSTER_EXPECT_TRUE (got->store_errors_in_response_body);
  MUSTER_EXPECT_EQ (got->request_id, -7);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (got->step.options, NULL),
                       g_bytes_get_size (got->step.options), "\x10\x05", 2);
  MUSTER_EXPECT_EQ (got->timeout_us, 5 * MUSTER_MILLISECOND);
  MUSTER_ASSERT_EQ (got->step.n_feeds, 3u);
  MUSTER_ASSERT_EQ (got->step.n_fetches, 3u);
  MUSTER_ASSERT_EQ (got->step.n_targets, 2u);
  for (gsize i = 0; i < 3; i++) {
    MUSTER_EXPECT_STREQ (got->step.feeds[i].name, names[i]);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (got->step.feeds[i].tensor, f.feeds[i]));
    MUSTER_EXPECT_STREQ (got->step.fetches[i], in_full[i]);
  }
  for (gsize i = 0; i < 2; i++)
    MUSTER_EXPECT_STREQ (got->step.targets[i], targets[i]);
}

MUSTER_TEST (StepRequest, of_a_callable_comes_back_as_it_went)
{
  g_auto (Sample) f;
  sample_init (&f, TRUE);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterStepRequest) got = muster_step_request_decode_callable (f.message, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (got->session_handle, "a handle");
  MUSTER_EXPECT_EQ (got->callable, 42);
  MUSTER_EXPECT_EQ (got->request_id, -7);
  MUSTER_EXPECT_EQ (got->step.n_feeds, 0u);
  MUSTER_ASSERT_EQ (got->n_bare_feeds, 3u);
  for (gsize i = 0; i < 3; i++)
    MUSTER_EXPECT_TRUE (muster_tensor_equal (got->bare_feeds[i], f.feeds[i]));
}

MUSTER_TEST (StepRequest, that_is_empty_has_nothing_in_it)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) empty = g_bytes_new (NULL, 0);
  g_autoptr (MusterStepRequest) run = muster_step_request_decode_run (empty, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterStepRequest) callable = muster_step_request_decode_callable (empty, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_STREQ (run->session_handle, "");
  MUSTER_EXPECT_NULL (run->partial_run);
  MUSTER_EXPECT_EQ (run->step.n_feeds + run->step.n_fetches + run->step.n_targets, 0u);
  MUSTER_EXPECT_STREQ (callable->session_handle, "");
}

static void
expect_code (const char *data, gsize size, MusterError code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_autoptr (MusterStepRequest) got = muster_step_request_decode_run (bytes, &error);
  MUSTER_EXPECT_TRUE (got == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

static void
expect_refused (const char *data, gsize size)
{
  expect_code (data, size, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (StepRequest, that_is_malformed_is_refused)
{
  expect_refused ("\x0a\x02\xff\xfe", 4); /* a handle that isn't UTF-8 */
  expect_refused ("\x1a\x02"
                  "a\0",
                  4);             /* a fetch with a NUL in it */
  expect_refused ("\x18\x01", 2); /* a fetch that is a number */
  expect_refused ("\x0a\x7f"
                  "ab",
                  4);                                     /* longer than the message */
  expect_refused ("\x0b", 1);                             /* a group */
  expect_refused ("\x12\x03\x0a\x01x", 5);                /* a feed without a tensor */
  expect_refused ("\x12\x02\x12\x05", 4);                 /* a feed whose tensor runs out of it */
  expect_refused ("\x2a\x02\x10\x05\x2a\x02\x10\x06", 8); /* options that come twice */
  expect_refused ("\x3a\x00", 2);                         /* a flag that is bytes */
  expect_refused ("\x2a\x01\x10", 3);                     /* options that are cut short */
  expect_refused ("\x2a\x02\x12\x00", 4);                 /* a timeout that is bytes */
}

/* Four floats, and then as many as alone would just be believed. */
#define FOUR "\x08\1\x12\4\x12\2\x08\4"
#define MANY "\x08\1\x12\x08\x12\6\x08\xfe\xff\xff\xff\1"

MUSTER_TEST (StepCodecs, believe_claims_of_all_tensors_together_only_up_to_a_bound)
{
  static const char run[] = "\x12\x0d\x0a\1x\x12\x08" FOUR "\x12\x11\x0a\1y\x12\x0c" MANY;
  static const char callable[] = "\x1a\x08" FOUR "\x1a\x0c" MANY;
  static const char response[] = "\x0a\x08" FOUR "\x0a\x0c" MANY;
  g_autoptr (GError) callable_error = NULL, response_error = NULL;
  g_autoptr (GBytes) callable_bytes = g_bytes_new_static (callable, sizeof callable - 1);
  g_autoptr (GBytes) response_bytes = g_bytes_new_static (response, sizeof response - 1);
  MusterTensor *tensors[2] = {NULL};
  expect_code (run, sizeof run - 1, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_NULL (muster_step_request_decode_callable (callable_bytes, &callable_error));
  MUSTER_EXPECT_ERROR (callable_error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_FALSE (
      muster_step_response_decode_callable (response_bytes, 2, tensors, NULL, &response_error));
  MUSTER_EXPECT_ERROR (response_error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

/* Whatever is cut or changed: an error or a request, never anything worse. */
static void
decode_all (GBytes *bytes)
{
  MusterTensor *tensors[3] = {0};
  GError *errors[4] = {0};
  g_autoptr (MusterStepRequest) run = muster_step_request_decode_run (bytes, &errors[0]);
  MUSTER_EXPECT_TRUE ((run == NULL) == (errors[0] != NULL));
  g_autoptr (MusterStepRequest) callable = muster_step_request_decode_callable (bytes, &errors[1]);
  MUSTER_EXPECT_TRUE ((callable == NULL) == (errors[1] != NULL));
  gboolean good = muster_step_response_decode_run (bytes, names, 3, tensors, NULL, &errors[2]);
  MUSTER_EXPECT_TRUE (good == (errors[2] == NULL));
  for (int i = 0; i < 3; i++)
    g_clear_pointer (&tensors[i], muster_tensor_unref);
  good = muster_step_response_decode_callable (bytes, 3, tensors, NULL, &errors[3]);
  MUSTER_EXPECT_TRUE (good == (errors[3] == NULL));
  for (int i = 0; i < 3; i++)
    g_clear_pointer (&tensors[i], muster_tensor_unref);
  for (int i = 0; i < 4; i++)
    g_clear_error (&errors[i]);
}

static GBytes *
sample_response (Sample *f, gboolean is_callable)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) metadata = g_bytes_new_static ("\x0a\x00", 2);
  if (is_callable)
    muster_step_response_encode_callable (&rope, f->feeds, 3, metadata, NULL);
  else
    muster_step_response_encode_run (&rope, names, f->feeds, 3, metadata, NULL);
  return muster_rope_flatten (&rope);
}

static void
cut_and_change (GBytes *message)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (message, &size);
  /* The exact size at each cut, so that a sanitizer sees a read past it. */
  for (gsize n = 0; n < size; n += n < 600 ? 1 : 97) {
    g_autoptr (GBytes) cut = g_bytes_new (data, n);
    decode_all (cut);
  }
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  for (int round = 0; round < 5000; round++) {
    guint8 *copy = g_memdup2 (data, size);
    int n_changes = g_rand_int_range (rand, 1, 4);
    gsize reach = round % 2 == 0 ? MIN (size, 200) : size;
    for (int i = 0; i < n_changes; i++)
      copy[g_rand_int_range (rand, 0, (gint32)reach)] = (guint8)g_rand_int (rand);
    g_autoptr (GBytes) changed = g_bytes_new_take (copy, size);
    decode_all (changed);
  }
}

MUSTER_TEST (StepCodecs, survive_any_truncation_and_any_change)
{
  for (int is_callable = 0; is_callable < 2; is_callable++) {
    g_auto (Sample) f;
    sample_init (&f, is_callable);
    g_autoptr (GBytes) response = sample_response (&f, is_callable);
    cut_and_change (f.message);
    cut_and_change (response);
  }
}

MUSTER_TEST (StepResponse, brings_tensors_in_the_order_of_the_fetches)
{
  g_auto (Sample) f;
  sample_init (&f, FALSE);
  g_autoptr (GBytes) message = sample_response (&f, FALSE);
  static const char *const values_changed[] = {"large", "x:0", "words"};
  MusterTensor *tensors[3] = {0};
  g_autoptr (GBytes) metadata = NULL;
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (
      muster_step_response_decode_run (message, values_changed, 3, tensors, &metadata, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[0], f.feeds[2]));
  MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[1], f.feeds[0]));
  MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[2], f.feeds[1]));
  MUSTER_EXPECT_EQ (g_bytes_get_size (metadata), 2u);
  for (int i = 0; i < 3; i++)
    muster_tensor_unref (tensors[i]);
}

MUSTER_TEST (StepResponse, of_a_callable_brings_tensors_in_order)
{
  g_auto (Sample) f;
  sample_init (&f, TRUE);
  g_autoptr (GBytes) message = sample_response (&f, TRUE);
  MusterTensor *tensors[3] = {0};
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_step_response_decode_callable (message, 3, tensors, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 3; i++) {
    MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[i], f.feeds[i]));
    muster_tensor_unref (tensors[i]);
  }
}

MUSTER_TEST (StepResponse, gives_one_tensor_to_each_of_two_equal_fetches)
{
  g_auto (Sample) f;
  sample_init (&f, FALSE);
  static const char *const twice[] = {"x:0", "x"};
  for (gsize n_sent = 1; n_sent <= 2; n_sent++) { /* masters differ in how often they send it */
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    MusterTensor *sent[] = {f.feeds[0], f.feeds[0]};
    muster_step_response_encode_run (&rope, twice, sent, n_sent, NULL, NULL);
    g_autoptr (GBytes) message = muster_rope_flatten (&rope);
    MusterTensor *tensors[2] = {0};
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_TRUE (muster_step_response_decode_run (message, twice, 2, tensors, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    for (int i = 0; i < 2; i++) {
      MUSTER_EXPECT_TRUE (muster_tensor_equal (tensors[i], f.feeds[0]));
      muster_tensor_unref (tensors[i]);
    }
  }
}

static void
expect_internal (GBytes *message, const char *const *wanted, gsize n_wanted)
{
  MusterTensor *tensors[4] = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (
      muster_step_response_decode_run (message, wanted, n_wanted, tensors, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  for (int i = 0; i < 4; i++)
    MUSTER_EXPECT_TRUE (tensors[i] == NULL);
}

MUSTER_TEST (StepResponse, that_lacks_a_fetch_or_has_another_is_an_internal_error)
{
  g_auto (Sample) f;
  sample_init (&f, FALSE);
  g_autoptr (GBytes) message = sample_response (&f, FALSE);
  static const char *const more[] = {"x:0", "words", "large", "missing"};
  static const char *const other[] = {"x:0", "words", "other"};

  expect_internal (message, more, 4);
  expect_internal (message, names, 2);
  expect_internal (message, other, 3);
}

MUSTER_TEST (StepResponse, with_an_error_in_its_body_is_that_error)
{
  static const char text[] = "uninitialized value \xff [[{{node a}}]]";
  g_autoptr (GError) sent =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, text);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_step_response_encode_error (&rope, sent);
  g_autoptr (GBytes) message = muster_rope_flatten (&rope);
  MusterTensor *tensor = NULL;
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_FALSE (muster_step_response_decode_run (message, names, 1, &tensor, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (error->message, "uninitialized value \uFFFD [[{{node a}}]]");
}
