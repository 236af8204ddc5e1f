import type { BodySink, BodySource } from '../../../../net/http/body.ts'

/** A body of one chunk for each event, as a network would deliver them: never two in one turn of the event loop. */
export function eventSource(events: readonly string[]): BodySource {
  let sink: BodySink | undefined
  let next = 0
  let scheduled = false
  let over = false

  function schedule(): void {
    if (scheduled || over) return
    scheduled = true
    setImmediate(deliver)
  }

  function deliver(): void {
    scheduled = false
    if (over || !sink) return
    const event = events[next]
    if (event === undefined) {
      over = true
      sink.end()
      return
    }
    next += 1
    if (sink.write(Buffer.from(event))) schedule()
  }

  return {
    start(reader) {
      sink = reader
      schedule()
    },
    resume: schedule,
    cancel() {
      over = true
    },
  }
}
