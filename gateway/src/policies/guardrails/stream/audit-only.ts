import { asError } from '../../../lib/thrown.ts'
import type { BodySource, BodyTransform } from '../../../net/http/body.ts'
import { withTransform } from '../../../net/http/body.ts'
import type { Rejection } from '../guard.ts'
import type { GuardedStream } from './guarded-stream.ts'
import { isEnd } from './read-event.ts'
import { createTextCollector } from './text-collector.ts'

/** Maximum size of the buffered end of a stream. */
const maxEndingBytes = 1024 * 1024

export type AuditedStream = GuardedStream & {
  refusalEvent(rejection: Rejection): string
  onRejected(guard: string): void
}

/**
 * Forwards a stream and collects its texts for audit-only guards. The events that mark the stream as complete
 * are delayed until the verdict, because a failed check of a guard that fails closed ends the stream with an
 * error.
 */
export function auditStream(stream: AuditedStream): BodySource {
  const { api, source, check, maxBufferedBytes, refusalEvent, onRejected } = stream
  const transform: BodyTransform = (sink) => {
    const ending: Uint8Array[] = []
    let size = 0
    let endingBytes = 0
    let isEnding = false
    const texts = createTextCollector(stream, (event) => {
      if (isEnd(event, api)) isEnding = true
    })

    async function finish(): Promise<void> {
      try {
        const outcome = await check(texts.contents())
        if (outcome.kind === 'rejected') {
          onRejected(outcome.guard)
          // The empty line terminates a partially sent event.
          sink.write(Buffer.from(`\n${refusalEvent(outcome.rejection)}`))
        } else for (const chunk of ending) sink.write(chunk)
        sink.end()
      } catch (error) {
        sink.fail(asError(error))
      }
    }

    return {
      write(chunk) {
        size += chunk.byteLength
        if (size > maxBufferedBytes) texts.invalidate()
        texts.push(chunk)
        if (!isEnding || endingBytes > maxEndingBytes) return sink.write(chunk)
        ending.push(chunk)
        endingBytes += chunk.byteLength
        if (endingBytes <= maxEndingBytes) return true
        return ending
          .splice(0)
          .map((piece) => sink.write(piece))
          .every(Boolean)
      },
      end: () => void finish(),
      fail: (error) => sink.fail(error),
    }
  }
  return withTransform(source, transform)
}
