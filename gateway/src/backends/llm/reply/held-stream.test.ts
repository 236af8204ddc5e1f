import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { streamReply } from '../../../../test/fixtures/llm.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { type BodySink, readAll } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { awaitContent } from './held-stream.ts'

function attemptOf(endpoint: Endpoint): Attempt {
  return { call: { endpoint }, translation: undefined, usage: undefined } as unknown as Attempt
}

const role = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
const content = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
const done = 'data: [DONE]\n\n'
const cut = new GatewayError('upstream_reset', 'cut')

async function textOf(reply: Reply): Promise<string> {
  return (await readAll(reply.body, 1e6, 'internal')).toString()
}

/** A stream whose chunks the test sends. */
function openStream() {
  let sink: BodySink | undefined
  const calls: string[] = []
  const reply: Reply = {
    ...streamReply([]),
    body: {
      start(to) {
        sink = to
      },
      resume: () => calls.push('resume'),
      cancel: () => calls.push('cancel'),
    },
  }
  return { reply, calls, send: (text: string) => sink?.write(Buffer.from(text)), end: () => sink?.end() }
}

describe('a stream before its first content', () => {
  it('is replayed unchanged for any chunks, or fails', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<string[]>(
          [role, content, done],
          [role, done],
          [role],
          [role, 'data: {"error":{}}\n\n'],
          [],
        ),
        fc.array(fc.nat(400), { maxLength: 8 }),
        async (events, cuts) => {
          const text = events.join('')
          const ends = [...new Set(cuts.map((at) => at % (text.length + 1))), text.length].sort(
            (a, b) => a - b,
          )
          const chunks = ends.map((to, index) => text.slice(ends[index - 1] ?? 0, to))
          const result = Promise.resolve(awaitContent(attemptOf('chat'), streamReply(chunks)))
          if (events.includes(done)) expect(await textOf(await result)).toBe(text)
          else await expect(result).rejects.toThrow(GatewayError)
        },
      ),
    )
  })

  it.each<[string, Endpoint, string[]]>([
    ['a tool call without arguments', 'chat', ['data: {"choices":[{"delta":{"tool_calls":[{}]}}]}\n\n']],
    ['a completion', 'completions', ['data: {"choices":[{"text":"hi"}]}\n\n']],
    ['a thought', 'messages', ['event: a\ndata: {"delta":{"thinking":"hm"}}\n\n']],
    ['a delta of a response', 'responses', ['event: a\ndata: {"delta":"hi"}\n\n']],
  ])('starts with %s', async (_, endpoint, chunks) => {
    const reply = await awaitContent(attemptOf(endpoint), streamReply(chunks, cut))
    await expect(textOf(reply)).rejects.toBe(cut)
  })

  it('fails with a failed response', async () => {
    const failed = 'event: response.failed\ndata: {"type":"response.failed"}\n\n'
    await expect(awaitContent(attemptOf('responses'), streamReply([failed]))).rejects.toThrow('before')
  })

  it('is not delayed for other responses', () => {
    for (const reply of [
      { ...streamReply([]), status: 500 },
      { ...streamReply([]), headers: { 'content-type': 'application/json' } },
    ])
      expect(awaitContent(attemptOf('chat'), reply)).toBe(reply)
  })

  it('starts at a number of bytes, with back pressure until it is read', async () => {
    const { reply, calls, send } = openStream()
    const held = awaitContent(attemptOf('chat'), reply)
    const comment = `: ${'-'.repeat(40_000)}\n`
    expect([send(comment), send(comment)]).toEqual([true, false])
    const { body } = await held
    if (body === undefined || body instanceof Uint8Array) return expect.unreachable()
    body.start({ write: () => true, end() {}, fail() {} })
    expect(calls).toEqual(['resume'])
  })

  it('starts after a time without content', async () => {
    vi.useFakeTimers()
    const { reply, send, end } = openStream()
    const held = awaitContent(attemptOf('chat'), reply)
    send(role)
    await vi.advanceTimersByTimeAsync(15_000)
    const started = await held
    end()
    expect(await textOf(started)).toBe(role)
    vi.useRealTimers()
  })
})
