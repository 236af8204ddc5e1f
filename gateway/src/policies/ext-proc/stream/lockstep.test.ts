import { expect, it } from 'vitest'
import type { BodySource } from '../../../net/http/body.ts'
import { processChunks } from './lockstep.ts'
import { initialProgress } from './progress.ts'

it('an error while a chunk is sent fails the session and aborts the body', async () => {
  const seen: string[] = []
  const source: BodySource = {
    start(sink) {
      sink.write(Buffer.from('chunk'))
    },
    resume() {},
    cancel() {
      seen.push('source cancelled')
    },
  }
  const part: object = {
    direction: 'request',
    progress: initialProgress,
    isFirst: false,
    limits: { deadlineMs: 1000, maxBufferBytes: 100, failsOpen: true },
    session: { end: undefined, fail: (reason: string) => seen.push(reason) },
    encoder: {
      body() {
        throw new Error('secret')
      },
    },
    owner: { context: {}, onAborted: () => seen.push('aborted'), onDone() {} },
  }
  const body = processChunks(part as Parameters<typeof processChunks>[0], source)
  const error = await new Promise<Error>((resolve) => {
    body.start({ write: () => true, end() {}, fail: resolve })
  })
  expect(error.message).toBe('external processing failed')
  expect(seen).toEqual(['the body could not be processed', 'source cancelled', 'aborted'])
})
