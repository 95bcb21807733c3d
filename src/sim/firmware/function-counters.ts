/** What a function has seen, both ways. */
export class FunctionCounters {
  /** Messages that came over the bulk OUT endpoint (frames, NTBs), and frames that went on to the link. */
  messagesFromHost = 0;
  framesFromHost = 0;
  bytesFromHost = 0;
  /** Messages or frames from the host that were no such thing: too short, too long, an NTB with errors. */
  malformedFromHost = 0;
  /** Messages (frames, NTBs) that the host has fetched, and frames in them. */
  messagesToHost = 0;
  framesToHost = 0;
  bytesToHost = 0;
  /** Frames that the packet filter kept back, that found the queue for the host full, or the interface closed. */
  filtered = 0;
  dropped = 0;
  closedDrops = 0;
}
