import type { JsonObject } from '../../../../lib/json/json.ts'

/** Response of echo: one object, or the serialized events of a stream. */
export type EchoReply =
  | { kind: 'whole'; body: JsonObject }
  | { kind: 'stream'; events: readonly string[] }
  /** The response would block the event loop. */
  | { kind: 'tooLarge'; message: string }
