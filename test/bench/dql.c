/*
 * Dynamic queue limits in C, from the facts of which src/bql/dql.ts is made too, to compare the two (dql.bench.ts).
 *   dql PACKETS BATCH
 * BATCH packets of changing sizes are queued and then completed at once, with now and then one left over. Prints nanoseconds a
 * packet and a sum over all limits, which the other side must arrive at too.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_OBJECT 268435455u
#define MAX_LIMIT 1879048192u

struct limits {
  uint32_t queued, adjusted, last_object;
  uint32_t limit, completed, carried_over, queued_before, last_object_before, lowest_slack;
  int64_t slack_start;
  uint32_t most, least;
  int64_t hold;
  uint32_t stall_threshold;
};

static inline uint32_t above(uint32_t a, uint32_t b) {
  return (int32_t)(a - b) > 0 ? a - b : 0;
}

__attribute__((noinline)) static int queue(struct limits *l, uint32_t count) {
  if (count > MAX_OBJECT) return 0;
  l->last_object = count;
  l->queued += count;
  return 1;
}

__attribute__((noinline)) static void complete(struct limits *l, uint32_t count, int64_t now) {
  uint32_t queued = l->queued, inflight = queued - l->completed;
  if (count > inflight) abort();
  uint32_t completed = l->completed + count, limit = l->limit, over = above(inflight, limit);
  uint32_t in_progress = queued - completed, was_in_progress = l->queued_before - l->completed;
  int all_before_done = (int32_t)(completed - l->queued_before) >= 0;

  if ((over && !in_progress) || (l->carried_over && all_before_done)) {
    limit += above(completed, l->queued_before) + l->carried_over;
    l->slack_start = now;
    l->lowest_slack = UINT32_MAX;
  } else if (in_progress && was_in_progress && !all_before_done) {
    uint32_t slack = above(limit + l->carried_over, 2 * count);
    uint32_t of_last = l->carried_over ? above(l->last_object_before, l->carried_over) : 0;
    if (of_last > slack) slack = of_last;
    if (slack < l->lowest_slack) l->lowest_slack = slack;
    if (now > l->slack_start + l->hold) {
      limit = above(limit, l->lowest_slack);
      l->slack_start = now;
      l->lowest_slack = UINT32_MAX;
    }
  }
  if (limit < l->least) limit = l->least;
  if (limit > l->most) limit = l->most;
  if (limit != l->limit) {
    l->limit = limit;
    over = 0;
  }
  l->adjusted = limit + completed;
  l->carried_over = over;
  l->last_object_before = l->last_object;
  l->completed = completed;
  l->queued_before = queued;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  uint32_t packets = (uint32_t)atol(argv[1]), batch = (uint32_t)atol(argv[2]);
  static struct limits l = {.lowest_slack = UINT32_MAX, .most = MAX_LIMIT, .hold = 1000};
  double best = 1e300;
  uint32_t sum = 0;
  for (int round = 0; round < 400; round++) {
    struct timespec begin, end;
    uint32_t turn = 0;
    sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint32_t i = 0; i < packets; i += batch) {
      uint32_t bytes = 0;
      for (uint32_t k = 0; k < batch; k++) {
        uint32_t size = 64 + ((i + k) & 1023);
        queue(&l, size);
        bytes += size;
      }
      /* One in eight completes only half, so that every branch is taken. */
      uint32_t inflight = l.queued - l.completed;
      complete(&l, (turn++ & 7) == 0 ? inflight - (bytes >> 1) : inflight, (i >> 4) + 1);
      sum += l.limit + (l.adjusted - l.queued);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / packets;
    if (ns < best) best = ns;
  }
  printf("%.3f %u\n", best, sum);
  return 0;
}
