import { createSseParser, formatSseEvent } from '../../../net/http/sse.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import type { CollectedTexts } from './collected-texts.ts'
import type { DeliveredStream } from './guarded-stream.ts'
import { createTextCollector } from './text-collector.ts'

/** `passing`: forwards the rest of a stream that is not readable, because its guards fail open. */
type BufferState = 'collecting' | 'checking' | 'passing' | 'over'

/**
 * Buffers a stream until it is complete and checked, then sends it unchanged or with the modified texts. The
 * stream is buffered once and parsed again only for modifications.
 */
export function bufferStream(stream: DeliveredStream): void {
  const { source, check, maxBufferedBytes, delivery, onRejected } = stream
  const blocks = createBlocks()
  const texts = createTextCollector(stream)
  let state: BufferState = 'collecting'
  let isComplete = false

  async function checkAll(): Promise<void> {
    state = 'checking'
    try {
      const outcome = await check(texts.contents())
      switch (outcome.kind) {
        case 'rejected':
          state = 'over'
          source.cancel()
          onRejected(outcome.guard)
          delivery.refuse(outcome.rejection)
          return
        case 'changed':
          sendAll(rewritten(blocks, texts.rewriteTo(outcome.contents), maxBufferedBytes))
          break
        case 'pass':
          sendAll(blocks.drain())
          break
      }
      if (isComplete) delivery.end()
      else {
        state = 'passing'
        source.resume()
      }
    } catch (error) {
      state = 'over'
      source.cancel()
      delivery.fail(error)
    }
  }

  function sendAll(pieces: Iterable<Uint8Array>): void {
    for (const piece of pieces) delivery.writeRaw(piece)
  }

  source.start({
    write(chunk) {
      if (state === 'over') return true
      if (state === 'passing') return delivery.writeRaw(chunk)
      blocks.add(chunk)
      if (state === 'checking') return false
      if (blocks.size > maxBufferedBytes) {
        texts.invalidate()
        void checkAll()
        return false
      }
      texts.push(chunk)
      return true
    },
    end() {
      isComplete = true
      if (state === 'passing') delivery.end()
      else if (state === 'collecting') void checkAll()
    },
    fail(error) {
      if (state !== 'over') delivery.fail(error)
    },
  })
}

function rewritten(
  blocks: Blocks,
  rewrite: ReturnType<CollectedTexts['rewriteTo']>,
  maxEventBytes: number,
): Buffer[] {
  const pieces: Buffer[] = []
  let text = ''
  const parser = createSseParser({
    maxEventBytes,
    onEvent(event) {
      text += formatSseEvent(rewrite(event))
    },
  })
  for (const block of blocks.drain()) {
    text = ''
    parser.push(block)
    if (text !== '') pieces.push(Buffer.from(text))
  }
  return pieces
}
