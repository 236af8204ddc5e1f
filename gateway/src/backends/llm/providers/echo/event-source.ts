import type { BodySink, BodySource } from '../../../../net/http/body.ts'

/**
 * A body with one chunk per event and at most one chunk per turn of the event loop, like a network
 * connection.
 */
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
