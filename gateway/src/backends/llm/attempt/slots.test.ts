import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureGateway,
  fixtureGateway,
  jsonReply,
  open,
} from '../../../../test/fixtures/llm.ts'
import { readAll } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { LlmConfig } from '../config/config.ts'

const config = (concurrency: object): LlmConfig => ({
  models: ['a', 'b'].map((name) => ({
    name,
    provider: 'openai',
    params: { baseUrl: `http://${name}` },
    concurrency: { max: 1, ...concurrency },
  })),
  virtualModels: [
    {
      name: 'v',
      routing: {
        failover: {
          targets: [
            { model: 'a', priority: 0 },
            { model: 'b', priority: 1 },
          ],
        },
      } as never,
    },
  ],
})

const works = () => jsonReply(completion('hi'))
const ofModel = (model: string) => ({ body: { ...chatBody, model } })
const hosts = (gateway: FixtureGateway) => gateway.sent.map(({ origin }) => origin.slice(7)).join(' ')

describe('concurrency of a model', () => {
  it('is occupied until the end of the response, and refuses further calls without a queue', async () => {
    const gateway = fixtureGateway(config({}), works)
    const { reply, exchange } = await open(gateway, ofModel('a'))
    const { status, text, headers } = await call(gateway, ofModel('a'))
    expect([status, headers['retry-after'], JSON.parse(text).error]).toMatchObject([
      503,
      '1',
      { code: 'model_busy', message: expect.stringContaining('"a" has reached its limit of 1 concurrent') },
    ])
    await readAll(reply.body, 1e6, 'internal')
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect((await call(gateway, ofModel('a'))).status).toBe(200)
    expect(gateway.metered).toContain('queued a refused')
  })

  it('leads to another target first', async () => {
    const gateway = fixtureGateway(config({ queue: 5 }), works)
    await open(gateway, ofModel('a'))
    expect((await call(gateway, ofModel('v'))).status).toBe(200)
    expect(hosts(gateway)).toBe('a b')
  })

  it('makes calls wait for the first target if all are occupied', async () => {
    const gateway = fixtureGateway(config({ queue: 5 }), works)
    const [one] = [await open(gateway, ofModel('a')), await open(gateway, ofModel('b'))]
    const waiting = call(gateway, ofModel('v'))
    await new Promise(setImmediate)
    gateway.llm.llmRequest.onEnd?.(one.exchange)
    expect((await waiting).status).toBe(200)
    expect(hosts(gateway)).toBe('a b a')
    expect(gateway.metered).toContain('queued a served')
  })

  it('waits once, and reports the limit after the time', async () => {
    const gateway = fixtureGateway(config({ queue: 5, timeout: '10ms' }), works)
    await open(gateway, ofModel('a'))
    await open(gateway, ofModel('b'))
    expect((await call(gateway, ofModel('v'))).status).toBe(503)
    expect(gateway.metered.filter((line) => line.startsWith('queued'))).toEqual([
      'queued a refused',
      'queued b refused',
    ])
  })

  it.each<[string, () => Reply, number]>([
    ['an error of the provider', () => jsonReply({}, 500), 500],
    ['an unreadable response', () => jsonReply('<html>'), 502],
    [
      'an unexpected error',
      () => {
        throw new Error('defect')
      },
      500,
    ],
  ])('is released after %s', async (_, answer, expected) => {
    const answers = [answer, answer]
    const gateway = fixtureGateway(config({}), () => (answers.shift() ?? works)())
    for (const status of [expected, expected, 200])
      expect((await call(gateway, ofModel('a'))).status).toBe(status)
  })

  it('is released after a request that the target does not support', async () => {
    const models = config({}).models.map((model) => ({ ...model, provider: 'anthropic' }))
    const gateway = fixtureGateway({ models }, works)
    for (let request = 0; request < 2; request += 1) {
      const { status } = await call(gateway, { body: { ...chatBody, model: 'a', n: 2 } })
      expect(status).toBe(400)
    }
  })
})
