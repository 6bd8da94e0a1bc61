// SPDX-License-Identifier: Apache-2.0
/* Numbers that TensorFlow's requests are known by, in place of its own.
 *
 * TensorFlow draws them from a generator of each thread, which it seeds with 32 bits, and has new
 * threads for each step. A task refuses a number that is among the last 100,000 ("The same RunGraph
 * (Worker) request was received twice"): seen once in about 75,000 steps.
 * Then the step fails, or the part of it on the other task waits for the refused one for ever. */
#include <stdint.h>
#include <sys/random.h>

/* tsl::random::ThreadLocalNew64 () */
uint64_t muster_random_number (void) __asm__("_ZN3tsl6random16ThreadLocalNew64Ev");

__attribute__ ((visibility ("default"))) uint64_t
muster_random_number (void)
{
  uint64_t number;
  while (getrandom (&number, sizeof number, 0) != sizeof number)
    ;
  return number;
}
