// SPDX-License-Identifier: Apache-2.0
/* Requests and responses of RunStep and RunCallable, decoded, encoded and decoded again; the first
 * byte picks one of the four. */
#include "base/error.h"
#include "rpc/messages/run_step_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { RUN_REQUEST, CALLABLE_REQUEST, RUN_RESPONSE, CALLABLE_RESPONSE, N_KINDS };

static const char *const fetches[] = {"a:0", "b:0"};
#define N_FETCHES G_N_ELEMENTS (fetches)

static MusterStepRequest *
decode_request (guint kind, GBytes *message, GError **error)
{
  return kind == RUN_REQUEST ? muster_step_request_decode_run (message, error)
                             : muster_step_request_decode_callable (message, error);
}

static GBytes *
encode_request (guint kind, const MusterStepRequest *request)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  if (kind == RUN_REQUEST)
    g_assert_true (muster_step_request_encode_run (request, &rope, NULL));
  else
    g_assert_true (muster_step_request_encode_callable (request, &rope, NULL));
  return muster_rope_flatten (&rope);
}

static void
compare_names (const char *const *a, gsize n_a, const char *const *b, gsize n_b)
{
  g_assert_cmpuint (n_a, ==, n_b);
  for (gsize i = 0; i < n_a; i++)
    g_assert_cmpstr (a[i], ==, b[i]);
}

/* They are written in full. */
static void
compare_fetches (const MusterStep *in_full, const MusterStep *step)
{
  g_assert_cmpuint (in_full->n_fetches, ==, step->n_fetches);
  for (gsize i = 0; i < step->n_fetches; i++) {
    const char *name = step->fetches[i];
    g_autofree char *full = g_strconcat (name, strchr (name, ':') != NULL ? NULL : ":0", NULL);
    g_assert_cmpstr (in_full->fetches[i], ==, full);
  }
}

static void
compare_tensors (MusterTensor *const *a, MusterTensor *const *b, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_assert_true (muster_tensor_equal (a[i], b[i]));
}

static void
compare_steps (const MusterStep *a, const MusterStep *b)
{
  g_assert_cmpuint (a->n_feeds, ==, b->n_feeds);
  for (gsize i = 0; i < a->n_feeds; i++) {
    g_assert_cmpstr (a->feeds[i].name, ==, b->feeds[i].name);
    g_assert_true (muster_tensor_equal (a->feeds[i].tensor, b->feeds[i].tensor));
  }
  compare_fetches (a, b);
  compare_names (a->targets, a->n_targets, b->targets, b->n_targets);
}

static void
try_request (guint kind, GBytes *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepRequest) request = decode_request (kind, message, &error);
  g_assert_true ((request == NULL) == (error != NULL));
  if (request == NULL)
    return;
  g_autoptr (GBytes) encoded = encode_request (kind, request);
  g_autoptr (MusterStepRequest) again = decode_request (kind, encoded, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (again->session_handle, ==, request->session_handle);
  compare_steps (&again->step, &request->step);
  g_assert_cmpint (again->timeout_us, ==, request->timeout_us);
  g_assert_cmpstr (again->partial_run, ==, request->partial_run);
  g_assert_cmpuint (again->n_bare_feeds, ==, request->n_bare_feeds);
  compare_tensors (again->bare_feeds, request->bare_feeds, request->n_bare_feeds);
  g_assert_cmpint (again->request_id, ==, request->request_id);
  g_assert_cmpint (again->callable, ==, request->callable);
}

static gboolean
decode_response (guint kind, GBytes *message, MusterTensor **tensors, GBytes **metadata,
                 GError **error)
{
  return kind == RUN_RESPONSE
             ? muster_step_response_decode_run (message, fetches, N_FETCHES, tensors, metadata,
                                                error)
             : muster_step_response_decode_callable (message, N_FETCHES, tensors, metadata, error);
}

static void
free_tensors (MusterTensor **tensors)
{
  for (gsize i = 0; i < N_FETCHES; i++)
    g_clear_pointer (&tensors[i], muster_tensor_unref);
}

static void
try_response (guint kind, GBytes *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) metadata = NULL, metadata_again = NULL;
  MusterTensor *tensors[N_FETCHES] = {NULL}, *again[N_FETCHES] = {NULL};
  const gboolean is_good = decode_response (kind, message, tensors, &metadata, &error);
  g_assert_true (is_good == (error == NULL));
  if (!is_good) {
    for (gsize i = 0; i < N_FETCHES; i++)
      g_assert_null (tensors[i]);
    g_assert_null (metadata);
    return;
  }
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  if (kind == RUN_RESPONSE)
    muster_step_response_encode_run (&rope, fetches, tensors, N_FETCHES, metadata, NULL);
  else
    muster_step_response_encode_callable (&rope, tensors, N_FETCHES, metadata, NULL);
  g_autoptr (GBytes) encoded = muster_rope_flatten (&rope);
  (void)decode_response (kind, encoded, again, &metadata_again, &error);
  g_assert_no_error (error);
  compare_tensors (again, tensors, N_FETCHES);
  free_tensors (tensors);
  free_tensors (again);
}

const gsize muster_fuzz_n_picks = 1;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  const guint kind = data[0] % N_KINDS;
  g_autoptr (GBytes) message = g_bytes_new_static (data + 1, size - 1);
  if (kind <= CALLABLE_REQUEST)
    try_request (kind, message);
  else
    try_response (kind, message);
  return 0;
}

static void
seed (guint8 kind, MusterRope *rope)
{
  g_autoptr (GBytes) bytes = muster_rope_flatten (rope);
  muster_fuzz_seed (&kind, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

void
muster_fuzz_seeds (void)
{
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) word = muster_tensor_new_string ("word");
  g_autoptr (GBytes) few = g_bytes_new_static ("\x10\x64", 2);
  g_autoptr (GError) failure = g_error_new (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "gone");
  MusterTensor *tensors[N_FETCHES] = {one, word};
  const MusterFeed feeds[N_FETCHES] = {{fetches[0], one}, {fetches[1], word}};
  const MusterStepRequest request = {
      .session_handle = "handle",
      .step = {.feeds = feeds,
               .n_feeds = N_FETCHES,
               .fetches = fetches,
               .n_fetches = N_FETCHES,
               .targets = fetches,
               .n_targets = 1,
               .options = few},
      .partial_run = "part",
      .store_errors_in_response_body = TRUE,
      .request_id = 7,
      .callable = 8,
      .bare_feeds = tensors,
      .n_bare_feeds = N_FETCHES,
  };
  g_auto (MusterRope) run = MUSTER_ROPE_INIT, callable = MUSTER_ROPE_INIT,
                      answer = MUSTER_ROPE_INIT, refusal = MUSTER_ROPE_INIT,
                      bare = MUSTER_ROPE_INIT;
  muster_step_request_encode_run (&request, &run, NULL);
  muster_step_request_encode_callable (&request, &callable, NULL);
  muster_step_response_encode_run (&answer, fetches, tensors, N_FETCHES, few, NULL);
  muster_step_response_encode_error (&refusal, failure);
  muster_step_response_encode_callable (&bare, tensors, N_FETCHES, few, NULL);
  seed (RUN_REQUEST, &run);
  seed (CALLABLE_REQUEST, &callable);
  seed (RUN_RESPONSE, &answer);
  seed (RUN_RESPONSE, &refusal);
  seed (CALLABLE_RESPONSE, &bare);
}
