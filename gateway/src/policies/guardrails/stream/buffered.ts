import { createSseParser, formatSseEvent } from '../../../net/http/sse.ts'
import { type Blocks, createBlocks } from './blocks.ts'
import { type CollectedTexts, collectTexts } from './collected-texts.ts'
import type { DeliveredStream } from './guarded-stream.ts'

/**
 * Holds a stream until it is complete and checked, then sends it as it came or with what guards made of its texts. Of what
 * is held there is one copy; it is taken apart once more only if something in it changes.
 */
export function bufferStream({
  reader,
  reading,
  source,
  check,
  maxBufferedBytes: maxHeldBytes,
  delivery,
  onRejected,
}: DeliveredStream): void {
  const blocks = createBlocks()
  const texts = collectTexts(reader, reading)
  let isReadable = true
  /** `passing`: what cannot be checked, because its guards fail open. */
  let state: 'collecting' | 'deciding' | 'passing' | 'over' = 'collecting'
  let isComplete = false
  const parser = createSseParser({
    maxEventBytes: maxHeldBytes,
    onEvent(event) {
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
    state = 'deciding'
    try {
      const outcome = await check(isReadable ? texts.contents() : undefined)
      switch (outcome.kind) {
        case 'rejected':
          state = 'over'
          source.cancel()
          onRejected(outcome.guard)
          delivery.refuse(outcome.rejection)
          return
        case 'changed':
          sendAll(rewritten(blocks, texts.rewriteTo(outcome.contents), maxHeldBytes))
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
      if (state === 'deciding') return false
      if (blocks.size > maxHeldBytes) {
        isReadable = false
        void decide()
        return false
      }
      if (isReadable) parser.push(chunk)
      return true
    },
    end() {
      isComplete = true
      if (state === 'passing') delivery.end()
      else if (state === 'collecting') void decide()
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
