// Prints the kernel probes (lines for /sys/kernel/tracing/kprobe_events) that show what comes to fq_codel and what it answers,
// with the times that fq_codel itself has read from the clock: a probe's own time is that of the probe, and on a busy
// machine the two lie milliseconds apart. Where things lie in the kernel's structs stands in its own description of its
// types (BTF).
//   node fq-codel-probe.mjs     (sch_fq_codel is loaded or built in)
// Probes: enter, when a packet has been put in; leave, when one was asked for (skb is 0: there was none). Times are in CoDel's
// unit of 1,024 ns. A packet's wait is that which CoDel noted last with its flow, which is the first of the new ones, or
// where there are none (new is then the list itself, `newlist` bytes into the qdisc) of the old ones.
import { existsSync, readFileSync } from 'node:fs';
import { Btf } from './btf.mjs';

const kernel = new Btf(readFileSync('/sys/kernel/btf/vmlinux'));
// Some kernels have it built in.
const ofModule = '/sys/kernel/btf/sch_fq_codel';
const types = existsSync(ofModule) ? new Btf(readFileSync(ofModule), kernel) : kernel;
const offset = (struct, ...path) => {
  let type = types.struct(struct);
  let sum = 0;
  for (const name of path) {
    sum += types.offsetOf(type, name);
    const member = types.members(type).find((each) => each.name === name);
    if (member !== undefined) type = types.plain(member.typeId);
  }
  return sum;
};

/** CoDel's time of arrival, in what the qdisc may write into a packet. */
const arrival =
  offset('sk_buff', 'cb') + offset('qdisc_skb_cb', 'data') + offset('codel_skb_cb', 'enqueue_time');
const scheduler = offset('Qdisc', 'privdata');
const newFlows = scheduler + offset('fq_codel_sched_data', 'new_flows');
const oldFlows = scheduler + offset('fq_codel_sched_data', 'old_flows');
/** From where a flow is linked to the wait that CoDel noted with it. */
const wait = offset('fq_codel_flow', 'cvars', 'ldelay') - offset('fq_codel_flow', 'flowchain');

const read = (at, from) => `${at < 0 ? at : `+${at}`}(${from})`;
const data = (skb) => read(offset('sk_buff', 'data'), skb);
const members = {
  enter: [
    ['skb', '$arg1', 'x64'],
    ['at', read(arrival, '$arg1'), 'u32'],
    ['len', read(offset('sk_buff', 'len'), '$arg1'), 'u32'],
    // What its queue is chosen by. TCP gives a connection another one after a time-out.
    ['hash', read(offset('sk_buff', 'hash'), '$arg1'), 'u32'],
    // Of an Ethernet frame: its type, and IPv4's type of service and ports.
    ['type', read(12, data('$arg1')), 'x16'],
    ['tos', read(15, data('$arg1')), 'u8'],
    ['ports', read(34, data('$arg1')), 'x32'],
  ],
  leave: [
    ['skb', '$retval', 'x64'],
    ['at', read(arrival, '$retval'), 'u32'],
    ['tos', read(15, data('$retval')), 'u8'],
    ['qdisc', '$arg1', 'x64'],
    ['newlist', `\\${newFlows}`, 'u32'],
    ['new', read(newFlows, '$arg1'), 'x64'],
    ['newwait', read(wait, read(newFlows, '$arg1')), 'u32'],
    ['oldwait', read(wait, read(oldFlows, '$arg1')), 'u32'],
  ],
};
for (const [name, its] of Object.entries(members)) {
  const values = its.map(([key, value, type]) => `${key}=${value}:${type}`).join(' ');
  console.log(`r4:${name} fq_codel_${name === 'enter' ? 'enqueue' : 'dequeue'} ${values}`);
}
