import type { JsonObject } from '../../../../lib/json.ts'

/** What the echo says: one object, or the events of a stream, each as it goes over the wire. */
export type EchoAnswer = { kind: 'whole'; body: JsonObject } | { kind: 'stream'; events: readonly string[] }
