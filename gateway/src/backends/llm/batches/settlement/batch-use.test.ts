import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { Body } from '../../../../net/http/body.ts'
import { readAll, sourceOf, withTransform } from '../../../../net/http/body.ts'
import type { Prices } from '../../catalog/prices.ts'
import type { Candidate } from '../../models/candidate.ts'
import { watchResults } from '../results/watch-results.ts'
import { createResultSum, useOfBatch, useOfMessageBatch } from './batch-use.ts'

const candidate = { model: 'm', target: { configuredModel: 'c', provider: { name: 'openai' } } } as Candidate

/** A price of one picodollar for each token of batches. */
const prices: Prices = (_, names, usage) => {
  if (names[0] === 'tiered' && usage.batch === 'sum') return { kind: 'cost', amount: 1n, basis: 'unclear' }
  return usage.batch === undefined
    ? { kind: 'missing' }
    : { kind: 'cost', amount: BigInt(usage.totalTokens), basis: 'tokens' }
}
const pricing = { prices, candidate }
const usage = { input_tokens: 70, output_tokens: 30, total_tokens: 100 }
const free = { usage: { totalTokens: 0 }, cost: { amount: 0n, status: 'exact' } }

describe('the use of a batch', () => {
  it.each<[string, JsonObject, object | undefined]>([
    ['in progress', { status: 'in_progress', usage }, undefined],
    ['being cancelled', { status: 'cancelling', usage }, undefined],
    [
      'completed',
      { status: 'completed', output_file_id: 'f', usage },
      { usage: { totalTokens: 100 }, cost: { amount: 100n, status: 'exact' } },
    ],
    ['cancelled with usage', { status: 'cancelled', usage }, { usage: { totalTokens: 100 } }],
    ['failed', { status: 'failed' }, free],
    ['with failed requests only', { status: 'completed', request_counts: { completed: 0 } }, free],
    ['with results elsewhere', { status: 'completed', output_file_id: null }, undefined],
    [
      'cancelled with results elsewhere',
      { status: 'cancelled', request_counts: { completed: 1 } },
      undefined,
    ],
    ['expired without results', { status: 'expired', usage: null, output_file_id: null }, free],
    ['whose results have the usage', { status: 'completed', output_file_id: 'f' }, undefined],
    [
      'whose usage is not counted',
      { status: 'completed', output_file_id: 'f', usage: { input_tokens: 0 } },
      undefined,
    ],
    [
      'of a model with prices by size',
      { status: 'completed', output_file_id: 'f', usage, model: 'tiered' },
      undefined,
    ],
    [
      'of a model with prices by size, without results',
      { status: 'cancelled', usage, model: 'tiered' },
      { cost: { status: 'estimated' } },
    ],
  ])('of OpenAI: %s', (_title, value, use) => {
    const found = useOfBatch(value, pricing)
    if (use === undefined) expect(found).toBeUndefined()
    else expect(found).toMatchObject(use)
  })

  it('of Anthropic is known without succeeded requests only', () => {
    const ended = (succeeded: number) => ({ processing_status: 'ended', request_counts: { succeeded } })
    expect(useOfMessageBatch(ended(0), pricing)).toMatchObject(free)
    expect(useOfMessageBatch(ended(1), pricing)).toBeUndefined()
    const counts = { processing_status: 'canceling', request_counts: { succeeded: 0 } }
    expect(useOfMessageBatch(counts, pricing)).toBeUndefined()
  })
})

describe('the sum of results', () => {
  const chat = (tokens: number) => ({
    response: {
      status_code: 200,
      body: { model: 'm', usage: { prompt_tokens: tokens, completion_tokens: 1 } },
    },
  })

  it('contains each successful result', () => {
    const sum = createResultSum('chat', pricing)
    for (const result of [
      chat(5),
      { error: { code: 'x' } },
      { response: { status_code: 400, body: {} } },
      chat(7),
    ])
      sum.add(result)
    expect(sum.use).toMatchObject({ usage: { inputTokens: 12, outputTokens: 2 }, cost: { amount: 14n } })
  })

  it('contains succeeded messages', () => {
    const sum = createResultSum('messages', pricing)
    const message = { model: 'm', usage: { input_tokens: 3, output_tokens: 2 } }
    for (const type of ['succeeded', 'errored', 'canceled', 'expired']) sum.add({ result: { type, message } })
    expect(sum.use).toMatchObject({ usage: { totalTokens: 5 } })
  })

  it.each([[undefined], [{ response: { status_code: 200, body: {} } }], [{ result: { type: 'succeeded' } }]])(
    'is unknown after %j',
    (result) => {
      const sum = createResultSum('chat', pricing)
      sum.add(chat(5))
      sum.add(result)
      sum.add(chat(5))
      expect(sum.use).toBeUndefined()
    },
  )
})

describe('results on their way', () => {
  async function watched(body: Body, cut: number) {
    const seen: unknown[] = []
    const source = withTransform(sourceOf(body), (sink) => ({
      ...sink,
      write(chunk) {
        for (let start = 0; start < chunk.length; start += cut) sink.write(chunk.subarray(start, start + cut))
        return true
      },
      end: () => sink.end(),
      fail: (error) => sink.fail(error),
    }))
    const watching = watchResults(source, {
      result: (value) => seen.push(value),
      end: () => seen.push('end'),
    })
    return { bytes: await readAll(watching, 1e9, 'upstream_too_large'), seen }
  }

  it.each([1, 3, 1000])('are read in chunks of %i bytes and forwarded unchanged', async (cut) => {
    const body = Buffer.from('{"a":1}\r\n\n{"b":"ü"}\n[]\n{"c":3}')
    const { bytes, seen } = await watched(body, cut)
    expect(bytes).toEqual(body)
    expect(seen).toEqual([{ a: 1 }, { b: 'ü' }, undefined, { c: 3 }, 'end'])
  })

  it('are unknown beyond the limit of a line', async () => {
    const body = Buffer.from(`{"a":"${'x'.repeat(33 * 1024 * 1024)}"}\n{"b":2}\n`)
    const { bytes, seen } = await watched(body, 1024 * 1024)
    expect(bytes.length).toBe(body.length)
    expect(seen).toEqual([undefined, { b: 2 }, 'end'])
  })
})
