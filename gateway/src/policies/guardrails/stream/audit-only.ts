import { asError } from '../../../lib/thrown.ts'
import type { BodySource, BodyTransform } from '../../../net/http/body.ts'
import { withTransform } from '../../../net/http/body.ts'
import { createSseParser } from '../../../net/http/sse.ts'
import type { Rejection } from '../guard.ts'
import { collectTexts } from './collected-texts.ts'
import type { GuardedStream } from './guarded-stream.ts'
import { isEnd } from './read-event.ts'

/** An end that goes on for longer is none. */
const maxEndingBytes = 1024 * 1024

export type AuditedStream = GuardedStream & {
  refusalEvent(rejection: Rejection): string
  onRejected(guard: string): void
}

/**
 * Lets a stream pass while its texts are collected, for guards that only note what they find. What makes it look complete
 * waits for their verdict, because a check that fails closed ends even such a stream in another way.
 */
export function auditStream(stream: AuditedStream): BodySource {
  const {
    api,
    reader,
    reading,
    source,
    check,
    maxBufferedBytes: maxHeldBytes,
    refusalEvent,
    onRejected,
  } = stream
  const transform: BodyTransform = (sink) => {
    const texts = collectTexts(reader, reading)
    const held: Uint8Array[] = []
    let size = 0
    let heldBytes = 0
    let isReadable = true
    let isEnding = false
    const parser = createSseParser({
      maxEventBytes: maxHeldBytes,
      onEvent(event) {
        if (isEnd(event, api)) isEnding = true
        if (!isReadable) return
        try {
          texts.add(event)
        } catch {
          isReadable = false
        }
      },
      onError() {
        isReadable = false
      },
    })

    async function decide(): Promise<void> {
      try {
        const outcome = await check(isReadable ? texts.contents() : undefined)
        if (outcome.kind === 'rejected') {
          onRejected(outcome.guard)
          // The empty line closes an event of which only the beginning was sent.
          sink.write(Buffer.from(`\n${refusalEvent(outcome.rejection)}`))
        } else for (const chunk of held) sink.write(chunk)
        sink.end()
      } catch (error) {
        sink.fail(asError(error))
      }
    }

    return {
      write(chunk) {
        size += chunk.byteLength
        if (size > maxHeldBytes) isReadable = false
        parser.push(chunk)
        if (!isEnding || heldBytes > maxEndingBytes) return sink.write(chunk)
        held.push(chunk)
        heldBytes += chunk.byteLength
        if (heldBytes > maxEndingBytes)
          return held
            .splice(0)
            .map((piece) => sink.write(piece))
            .every(Boolean)
        return true
      },
      end: () => void decide(),
      fail: (error) => sink.fail(error),
    }
  }
  return withTransform(source, transform)
}
