import type { Generated, Received } from './scripted-model.ts'

export type Json = Record<string, unknown>

/** One API of vendors. */
export type Wire = {
  /** Name of the API in the table of calls. */
  readonly name: string
  read(body: Json): Received
  whole(generated: Generated, body: Json): Json
  /** Chunks of a streamed response. */
  events(generated: Generated, body: Json): (string | Buffer)[]
  readonly streamType: string
  /** Whether usage contains tokens of reasoning separately. */
  readonly reportsReasoning: boolean
}

export const sse = 'text/event-stream'

export function dataEvent(data: Json): string {
  return `data: ${JSON.stringify(data)}\n\n`
}

export function namedEvent(data: Json): string {
  return `event: ${data['type']}\n${dataEvent(data)}`
}
