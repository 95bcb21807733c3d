import { z } from 'zod';
import { AppError, type ErrorDetails, errorKinds } from '../base/errors.ts';

/**
 * What goes over a port as text: a closed set of JSON objects in each direction, checked where they arrive. Telemetry
 * goes as binary messages (telemetry-frame.ts).
 *
 * The client speaks first, with `hello`, and may send calls behind it without waiting for the answer. Ids are chosen by
 * the client, rise with every call and subscription, and are never used twice on one port.
 */

/** The longest text a server takes; a request is small. */
export const maxRequestChars = 1 << 20;
/** The longest text a client takes; a report is large. */
export const maxReplyChars = 1 << 28;

/** The name under which telemetry is subscribed to, beside those of contract/topics.ts. */
export const telemetryTopic = 'telemetry';

/** It has to fit the header of a telemetry message. */
const idSchema = z.number().int().min(1).max(0xffff_ffff);

const errorSchema = z.strictObject({
  kind: z.enum(errorKinds),
  message: z.string(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  remedy: z.string().optional(),
});
export type ErrorMessage = z.infer<typeof errorSchema>;

/** `hello` is the one shape that later versions may add to: the answer to it is about the version, not the shape. */
export const clientMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('hello'), contractVersion: z.number() }),
  z.strictObject({ type: z.literal('call'), id: idSchema, method: z.string(), params: z.unknown() }),
  /** `topic` is a name of contract/topics.ts or {@link telemetryTopic}. */
  z.strictObject({ type: z.literal('subscribe'), id: idSchema, topic: z.string(), params: z.unknown() }),
  z.strictObject({ type: z.literal('unsubscribe'), id: idSchema }),
  /** How many messages of a subscription the client has dealt with since its start. */
  z.strictObject({ type: z.literal('ack'), id: idSchema, received: z.number().int().min(0) }),
]);
export type ClientMessage = z.infer<typeof clientMessageSchema>;

export const serverMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('hello'), contractVersion: z.number() }),
  z.strictObject({ type: z.literal('result'), id: idSchema, result: z.unknown() }),
  z.strictObject({ type: z.literal('error'), id: idSchema, error: errorSchema }),
  /** Values of a topic, oldest first; a state topic sends one at a time. */
  z.strictObject({ type: z.literal('event'), id: idSchema, values: z.array(z.unknown()) }),
  /** A subscription that the server ends, or never began. */
  z.strictObject({ type: z.literal('ended'), id: idSchema, error: errorSchema }),
  /** The last message of a connection that the server ends. */
  z.strictObject({ type: z.literal('refused'), error: errorSchema }),
]);
export type ServerMessage = z.infer<typeof serverMessageSchema>;

/** A message as it was meant, or in words why it is none. */
export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/** Reads one text message of at most `maxChars` UTF-16 units. Never throws. */
export function parseMessage<T>(schema: z.ZodType<T>, text: string, maxChars: number): Parsed<T> {
  if (text.length > maxChars) {
    return { ok: false, reason: `a message of ${text.length} characters is too long` };
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'a message is not JSON' };
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    return { ok: false, reason: `a message has no known shape (${firstIssue(parsed.error)})` };
  }
  return { ok: true, value: parsed.data };
}

/** Where and what the first thing is that a schema found wrong, for a message to people: `settings.bql: expected …`. */
export function firstIssue(error: z.ZodError): string {
  const issue = error.issues[0];
  if (issue === undefined) return 'unknown';
  const path = issue.path.map(String).join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}

export function errorToMessage(error: AppError): ErrorMessage {
  return {
    kind: error.kind,
    message: error.message,
    details: plainDetails(error.details),
    ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
  };
}

export function errorFromMessage(message: ErrorMessage): AppError {
  return new AppError(message.kind, message.message, {
    details: message.details,
    ...(message.remedy === undefined ? {} : { remedy: message.remedy }),
  });
}

/** JSON has no NaN and no infinity; they cross as words. */
function plainDetails(details: ErrorDetails): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
    ]),
  );
}
