import type { JsonObject } from '../../../../lib/json/json.ts'

/** The answer of echo: one object, or the events of a stream, each as it goes over the wire. */
export type EchoReply =
  | { kind: 'whole'; body: JsonObject }
  | { kind: 'stream'; events: readonly string[] }
  /** The answer would occupy the event loop. */
  | { kind: 'tooLarge'; message: string }
