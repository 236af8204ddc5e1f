import { expect, it } from 'vitest'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import { processDuplex } from './duplex.ts'
import { initialProgress } from './progress.ts'

type Part = Parameters<typeof processDuplex>[0]

/** Sends chunks to a processor that fails then; resolves with the body that continues without it. */
async function bodyAfterFailure(chunks: readonly string[], budgetBytes: number): Promise<string[]> {
  let left = budgetBytes
  let sink: BodySink | undefined
  const acquire = (bytes: number) => {
    left -= bytes
    return left >= 0
  }
  const source: BodySource = {
    start(to) {
      sink = to
    },
    resume: () => sink?.end(),
    cancel() {},
    budget: { acquire },
  }
  const stubs: object = {
    direction: 'request',
    progress: initialProgress,
    isFirst: false,
    limits: { deadlineMs: 1000, maxBufferBytes: 100, failsOpen: true },
    session: { end: undefined, send: () => true, resume() {} },
    encoder: { body: () => new Uint8Array(0) },
    owner: { context: {}, now: () => 0, onSent() {}, onAborted() {}, onDone() {} },
  }
  const part = stubs as Part
  const head = await processDuplex(part, source, undefined)
  for (const chunk of chunks) sink?.write(Buffer.from(chunk))
  if (head.kind !== 'body' || head.body instanceof Uint8Array) throw new Error('no body')
  const { body } = head
  const seen: string[] = []
  const read = new Promise<void>((resolve, reject) => {
    body.start({ write: (chunk) => seen.push(String(chunk)) > 0, end: () => resolve(), fail: reject })
  })
  part.handler?.ended({ kind: 'failed', reason: '' })
  await read
  return seen
}

it('a message continues without the processor if its chunks are retained', async () => {
  expect(await bodyAfterFailure(['ab', 'c', 'd'], 4)).toEqual(['ab', 'cd'])
})

it('a message without memory for its chunks does not continue without the processor', async () => {
  await expect(bodyAfterFailure(['ab', 'c', 'd'], 3)).rejects.toThrow('external processing failed')
})
